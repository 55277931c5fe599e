// Comparisons, logic, bits, and the choice between two operands.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "ops/elementwise/elementwise_util.h"
#include "ops/elementwise/value_arithmetic.h"
#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/schema_util.h"
#include "ops/upgrade_util.h"

namespace tessera::ops {
namespace {

using ComparableTypes = decltype(join(NumericTypes{}, Types<bool, std::string>{}));

Status equal_kernel(KernelContext& context) {
  return comparison_kernel<ComparableTypes>(context,
                                            [](const auto& x, const auto& y) { return x == y; });
}
Status less_kernel(KernelContext& context) {
  return comparison_kernel<NumericTypes>(context, [](auto x, auto y) { return x < y; });
}
Status less_or_equal_kernel(KernelContext& context) {
  return comparison_kernel<NumericTypes>(context, [](auto x, auto y) { return x <= y; });
}
Status greater_kernel(KernelContext& context) {
  return comparison_kernel<NumericTypes>(context, [](auto x, auto y) { return x > y; });
}
Status greater_or_equal_kernel(KernelContext& context) {
  return comparison_kernel<NumericTypes>(context, [](auto x, auto y) { return x >= y; });
}
Status and_kernel(KernelContext& context) {
  return binary_kernel<Types<bool>>(context, [](bool x, bool y) { return x && y; });
}
Status or_kernel(KernelContext& context) {
  return binary_kernel<Types<bool>>(context, [](bool x, bool y) { return x || y; });
}
Status xor_kernel(KernelContext& context) {
  return binary_kernel<Types<bool>>(context, [](bool x, bool y) { return x != y; });
}
Status not_kernel(KernelContext& context) {
  return map_unary<bool, bool>(context, [](bool x) { return !x; });
}
Status bitwise_and_kernel(KernelContext& context) {
  return binary_kernel<IntegerTypes>(context, [](auto x, auto y) { return x & y; });
}
Status bitwise_or_kernel(KernelContext& context) {
  return binary_kernel<IntegerTypes>(context, [](auto x, auto y) { return x | y; });
}
Status bitwise_xor_kernel(KernelContext& context) {
  return binary_kernel<IntegerTypes>(context, [](auto x, auto y) { return x ^ y; });
}
Status bitwise_not_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  return dispatch(IntegerTypes{}, input->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    return map_unary<T, T>(context, [](T x) { return static_cast<T>(~x); });
  });
}

// A shift by less than 0, or by the width of the type or more, leaves what fills the vacated bits:
// the sign of a negative number that is shifted to the right, else 0.
template <typename T>
T shifted(T x, T y, bool left) {
  const bool is_far = y < T{0} || static_cast<std::uint64_t>(y) >= sizeof(T) * 8;
  if (is_far) return !left && x < T{0} ? static_cast<T>(~T{0}) : T{0};
  return left ? static_cast<T>(static_cast<std::uint64_t>(x) << y) : static_cast<T>(x >> y);
}

Status bit_shift_kernel(KernelContext& context) {
  const bool left = context.attributes().get_string("direction", "") == "LEFT";
  return binary_kernel<IntegerTypes>(context,
                                     [left](auto x, auto y) { return shifted(x, y, left); });
}

Status infer_bit_shift(InferContext& context) {
  const std::string direction = context.attributes.get_string("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    return attribute_error("direction",
                           fmt::format("expected 'LEFT' or 'RIGHT', found '{}'", direction));
  TESSERA_TRY(require_same_dtype(context, 1, 0));
  return infer_broadcast(context);
}

// function(x) of each element of any float dtype; those of 8 bits are widened first.
template <typename Function>
Status float_predicate(KernelContext& context, const Function& function) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  if (is_float(input->dtype) && bits_of(input->dtype) == 8) {
    TESSERA_ASSIGN(Tensor wide, Tensor::zeros(DType::kFp32, input->dims));
    cast_elements(*input, wide.mutable_view(), true);
    TESSERA_ASSIGN(const MutableTensorView output, context.output(0, DType::kBool, input->dims));
    const auto elements = wide.span<float>();
    std::transform(elements.begin(), elements.end(), output.as<bool>(), function);
    return {};
  }
  return dispatch(FloatTypes{}, input->dtype, [&](auto tag) -> Status {
    return map_unary<typename decltype(tag)::type, bool>(context, function);
  });
}

Status is_nan_kernel(KernelContext& context) {
  return float_predicate(context, [](auto x) { return std::isnan(x); });
}

Status is_inf_kernel(KernelContext& context) {
  const bool positive = context.attributes().get_int("detect_positive", 1) != 0;
  const bool negative = context.attributes().get_int("detect_negative", 1) != 0;
  return float_predicate(context,
                         [=](auto x) { return std::isinf(x) && (x > 0 ? positive : negative); });
}

Status infer_predicate(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* input, tensor_input(context, 0));
  set_output(context, 0, DType::kBool, input->type.shape);
  return {};
}

Status infer_not(InferContext& context) {
  TESSERA_TRY(infer_predicate(context));
  const auto value = known_value(context.inputs[0]);
  if (!value) return {};
  DimTensor negated{value->scalar, {}};
  for (const Dim& element : value->elements) negated.elements.push_back(Dim(1) - element);
  set_value(context, 0, std::move(negated));
  return {};
}

template <DimFunction Function>
Status infer_comparison(InferContext& context) {
  TESSERA_TRY(require_same_dtype(context, 1, 0));
  TESSERA_TRY(infer_broadcast_bool(context));
  propagate_binary(context, Function);
  return {};
}

std::optional<Dim> unknown(const Dim& /*a*/, const Dim& /*b*/) {
  return std::nullopt;
}

Status infer_bitwise(InferContext& context) {
  TESSERA_TRY(require_same_dtype(context, 1, 0));
  return infer_broadcast(context);
}

// ---- Where
// -------------------------------------------------------------------------------------------------

Status where_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* condition, kernel_input(context, 0));
  TESSERA_ASSIGN(const TensorView* x, kernel_input(context, 1));
  TESSERA_ASSIGN(const TensorView* y, kernel_input(context, 2));
  TESSERA_ASSIGN(Dims dims, broadcast_dims(x->dims, y->dims));
  TESSERA_ASSIGN(dims, broadcast_dims(condition->dims, dims));
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, x->dtype, dims));
  const bool* choose = condition->as<bool>();
  return dispatch_elements(x->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    for_each_row<3>(context, dims,
                    {broadcast_strides(condition->dims, dims), broadcast_strides(x->dims, dims),
                     broadcast_strides(y->dims, dims)},
                    [&](std::int64_t at, const std::array<std::int64_t, 3>& offsets,
                        const std::array<std::int64_t, 3>& steps, std::int64_t count) {
                      for (std::int64_t i = 0; i < count; ++i) {
                        const bool first = choose[offsets[0] + i * steps[0]];
                        output.as<T>()[at + i] = first ? x->as<T>()[offsets[1] + i * steps[1]]
                                                       : y->as<T>()[offsets[2] + i * steps[2]];
                      }
                    });
    return {};
  });
}

// Elements of output where each condition is certain and the chosen side is known.
std::optional<DimTensor> choose_values(const InferContext& context) {
  const auto condition = known_ints(context.inputs[0]);
  const auto x = known_value(context.inputs[1]);
  const auto y = known_value(context.inputs[2]);
  const auto& shape = context.outputs[0].shape;
  if (!condition || !shape || shape->size() > 1) return std::nullopt;
  const auto count = shape->empty() ? std::optional<std::int64_t>(1) : shape->front().constant();
  if (!count) return std::nullopt;
  DimTensor result{shape->empty(), {}};
  for (std::int64_t i = 0; i < *count; ++i) {
    const auto pick = [i](const auto& elements) {
      return elements[elements.size() == 1 ? 0 : static_cast<std::size_t>(i)];
    };
    const auto& side = pick(*condition) != 0 ? x : y;
    if (!side) return std::nullopt;
    result.elements.push_back(pick(side->elements));
  }
  return result;
}

Status infer_where(InferContext& context) {
  TESSERA_TRY(require_dtype(context, 0, kBoolType));
  TESSERA_TRY(require_same_dtype(context, 2, 1));
  TESSERA_ASSIGN(std::optional<Shape> shape, broadcast_inputs(context, 0, 3));
  set_output(context, 0, context.inputs[1].type.dtype, std::move(shape));
  set_value(context, 0, choose_values(context));
  return {};
}

// ---- Schemas
// -------------------------------------------------------------------------------------------------

struct Row {
  std::string_view name;
  std::vector<int> versions;
  InferFn infer;
  KernelFn kernel;
  DTypeSet types;
  bool to_bool;
  bool commutative;
};

std::vector<OpSchema> binary_logic_ops() {
  const std::vector<int> logic{1, 7};
  const std::vector<int> order{1, 7, 9, 13};
  const Row rows[] = {
      {"And", logic, infer_comparison<dim_and>, and_kernel, kBoolType, true, true},
      {"Or", logic, infer_comparison<dim_or>, or_kernel, kBoolType, true, true},
      {"Xor", logic, infer_comparison<unknown>, xor_kernel, kBoolType, true, true},
      {"Equal",
       {1, 7, 11, 13, 19},
       infer_comparison<dim_equal>,
       equal_kernel,
       kNumericTypes | kBoolType | kStringType,
       true,
       true},
      {"Less", order, infer_comparison<dim_less>, less_kernel, kNumericTypes, true, false},
      {"Greater", order, infer_comparison<dim_greater>, greater_kernel, kNumericTypes, true, false},
      {"LessOrEqual",
       {12, 16},
       infer_comparison<dim_less_or_equal>,
       less_or_equal_kernel,
       kNumericTypes,
       true,
       false},
      {"GreaterOrEqual",
       {12, 16},
       infer_comparison<dim_greater_or_equal>,
       greater_or_equal_kernel,
       kNumericTypes,
       true,
       false},
      {"BitShift", {11, 28}, infer_bit_shift, bit_shift_kernel, kIntegerTypes, false, false},
      {"BitwiseAnd", {18}, infer_bitwise, bitwise_and_kernel, kIntegerTypes, false, true},
      {"BitwiseOr", {18}, infer_bitwise, bitwise_or_kernel, kIntegerTypes, false, true},
      {"BitwiseXor", {18}, infer_bitwise, bitwise_xor_kernel, kIntegerTypes, false, true},
  };
  std::vector<OpSchema> ops;
  for (const Row& row : rows) {
    OpSchema& op = ops.emplace_back();
    op.name = row.name;
    op.versions = row.versions;
    op.inputs = {required("A", "T"), required("B", "T")};
    op.outputs = {required("C", row.to_bool ? "T1" : "T")};
    op.type_variables = {{"T", row.types}};
    if (row.to_bool) op.type_variables.push_back({"T1", kBoolType});
    op.structure = Structure::kElementwise;
    op.infer = row.infer;
    op.kernel = row.kernel;
    op.commutative = row.commutative;
    if (row.versions.front() == 1) op.upgrades = {{1, 1, upgrade_legacy_broadcast}};
    if (!row.to_bool || row.types == kBoolType) op.in_place_inputs = {0, 1};
  }
  ops[8].inputs = {required("X", "T"), required("Y", "T")};
  ops[8].attributes = {required_attr("direction", AttrType::kString)};
  return ops;
}

OpSchema unary_logic(std::string_view name, std::vector<int> versions, DTypeSet types,
                     InferFn infer, KernelFn kernel) {
  OpSchema op;
  op.name = name;
  op.versions = std::move(versions);
  op.inputs = {required("X", "T")};
  op.outputs = {required("Y", "T1")};
  op.type_variables = {{"T", types}, {"T1", kBoolType}};
  op.structure = Structure::kElementwise;
  op.infer = infer;
  op.kernel = kernel;
  return op;
}

}  // namespace

std::vector<OpSchema> logic_ops() {
  std::vector<OpSchema> ops = binary_logic_ops();
  ops.push_back(unary_logic("Not", {1}, kBoolType, infer_not, not_kernel));
  ops.back().in_place_inputs = {0};
  ops.push_back(
      unary_logic("IsNaN", {9, 13, 20}, kFloatTypes | kFp8Types, infer_predicate, is_nan_kernel));
  ops.push_back(
      unary_logic("IsInf", {10, 20}, kFloatTypes | kFp8Types, infer_predicate, is_inf_kernel));
  ops.back().attributes = {attr("detect_negative", AttrType::kInt),
                           attr("detect_positive", AttrType::kInt)};

  ops.push_back(
      unary_logic("BitwiseNot", {18}, kIntegerTypes, infer_same_as_first, bitwise_not_kernel));
  ops.back().outputs = {required("Y", "T")};
  ops.back().type_variables = {{"T", kIntegerTypes}};
  ops.back().in_place_inputs = {0};

  OpSchema& where = ops.emplace_back();
  where.name = "Where";
  where.versions = {9, 16};
  where.inputs = {required("condition", "B"), required("X", "T"), required("Y", "T")};
  where.outputs = {required("output", "T")};
  where.type_variables = {{"B", kBoolType}, {"T", kAllTypes}};
  where.structure = Structure::kElementwise;
  where.infer = infer_where;
  where.kernel = unpacked<where_kernel>;
  where.in_place_inputs = {1, 2};
  return ops;
}

}  // namespace tessera::ops
