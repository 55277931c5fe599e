// Mathematical functions of one operand.

#include <algorithm>
#include <iterator>
#include <type_traits>

#include "ops/elementwise/elementwise_util.h"
#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/schema_util.h"
#include "ops/upgrade_util.h"

namespace tessera::ops {
namespace {

// Abs and Neg of the smallest number wrap around to itself.
template <ScalarFunction F, typename T>
T integer_function(T x) {
  using U = std::make_unsigned_t<T>;
  const auto negated = static_cast<T>(static_cast<U>(U{0} - static_cast<U>(x)));
  if constexpr (F == ScalarFunction::kNeg) return negated;
  if constexpr (F == ScalarFunction::kAbs) return x < T{0} ? negated : x;
  if constexpr (F == ScalarFunction::kSign) return static_cast<T>(x > T{0} ? 1 : x < T{0} ? -1 : 0);
}

template <ScalarFunction F, typename Integers>
Status numeric_unary_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  if (is_float(input->dtype)) return float_unary_kernel<F>(context);
  return dispatch(Integers{}, input->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    return map_unary<T, T>(context, integer_function<F, T>);
  });
}

Status infer_neg(InferContext& context) {
  TESSERA_TRY(infer_same_as_first(context));
  const auto value = known_value(context.inputs[0]);
  if (!value) return {};
  DimTensor negated{value->scalar, {}};
  for (const Dim& element : value->elements) negated.elements.push_back(Dim(0) - element);
  set_value(context, 0, std::move(negated));
  return {};
}

struct Row {
  std::string_view name;
  std::vector<int> versions;
  KernelFn kernel;
  DTypeSet types = kFloatTypes;
  InferFn infer = infer_same_as_first;
  std::string_view unspecified = {};
};

// The standard calls the operand "X" in some operators and "input" in others.
bool operand_is_x(std::string_view name) {
  constexpr std::string_view kNames[] = {"Abs",   "Neg",  "Sqrt", "Reciprocal",
                                         "Floor", "Ceil", "Round"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

}  // namespace

std::vector<OpSchema> unary_ops() {
  using S = ScalarFunction;
  const std::vector<int> basic{1, 6, 13};
  const std::vector<int> trigonometric{7, 22};
  const std::vector<int> hyperbolic{9, 22};
  const Row rows[] = {
      {"Abs", basic, numeric_unary_kernel<S::kAbs, IntegerTypes>, kNumericTypes,
       infer_same_as_first, "the smallest integer of a type stays itself"},
      {"Neg", basic, numeric_unary_kernel<S::kNeg, SignedTypes>, kFloatTypes | kSignedTypes,
       infer_neg, "the smallest integer of a type stays itself"},
      {"Sign",
       {9, 13},
       numeric_unary_kernel<S::kSign, IntegerTypes>,
       kNumericTypes,
       infer_same_as_first,
       "a NaN stays"},
      {"Sqrt", basic, float_unary_kernel<S::kSqrt>},
      {"Exp", basic, float_unary_kernel<S::kExp>},
      {"Log", basic, float_unary_kernel<S::kLog>},
      {"Erf", {9, 13}, float_unary_kernel<S::kErf>},
      {"Reciprocal", basic, float_unary_kernel<S::kReciprocal>},
      {"Floor", basic, float_unary_kernel<S::kFloor>},
      {"Ceil", basic, float_unary_kernel<S::kCeil>},
      {"Round", {11, 22}, float_unary_kernel<S::kRound>},
      {"Sin", trigonometric, float_unary_kernel<S::kSin>},
      {"Cos", trigonometric, float_unary_kernel<S::kCos>},
      {"Tan", trigonometric, float_unary_kernel<S::kTan>},
      {"Asin", trigonometric, float_unary_kernel<S::kAsin>},
      {"Acos", trigonometric, float_unary_kernel<S::kAcos>},
      {"Atan", trigonometric, float_unary_kernel<S::kAtan>},
      {"Sinh", hyperbolic, float_unary_kernel<S::kSinh>},
      {"Cosh", hyperbolic, float_unary_kernel<S::kCosh>},
      {"Tanh", basic, float_unary_kernel<S::kTanh>},
      {"Asinh", hyperbolic, float_unary_kernel<S::kAsinh>},
      {"Acosh", hyperbolic, float_unary_kernel<S::kAcosh>},
      {"Atanh", hyperbolic, float_unary_kernel<S::kAtanh>},
  };
  std::vector<OpSchema> ops;
  for (const Row& row : rows) {
    OpSchema& op = ops.emplace_back();
    op.name = row.name;
    op.versions = row.versions;
    op.inputs = {required(operand_is_x(row.name) ? "X" : "input", "T")};
    op.outputs = {required("Y", "T")};
    op.type_variables = {{"T", row.types}};
    op.structure = Structure::kElementwise;
    op.infer = row.infer;
    op.kernel = row.kernel;
    op.unspecified = row.unspecified;
    if (row.versions.front() == 1) op.upgrades = {{1, 1, upgrade_consumed_inputs}};
    op.in_place_inputs = {0};
  }
  return ops;
}

}  // namespace tessera::ops
