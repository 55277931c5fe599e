// Min, Max, Sum and Mean over any number of operands, which broadcast together.

#include <algorithm>
#include <type_traits>

#include "ops/elementwise/elementwise_util.h"
#include "ops/elementwise/value_arithmetic.h"
#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/schema_util.h"
#include "ops/upgrade_util.h"

namespace tessera::ops {
namespace {

template <ScalarFunction F, typename T>
T fold(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    const T args[2] = {x, y};
    return Scalar<F>::apply(args, {});
  } else {
    return F == ScalarFunction::kMin ? std::min(x, y) : std::max(x, y);
  }
}

// Folds one operand into the output, broadcast to it.
template <ScalarFunction F, typename T>
void fold_operand(KernelContext& context, const TensorView& operand,
                  const MutableTensorView& output) {
  const T* from = operand.as<T>();
  T* to = output.as<T>();
  for_each_row<1>(
      context, output.dims, {broadcast_strides(operand.dims, output.dims)},
      [&](std::int64_t at, const std::array<std::int64_t, 1>& offsets,
          const std::array<std::int64_t, 1>& steps, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i) {
          to[at + i] = store<T>(fold<F>(load(to[at + i]), load(from[offsets[0] + i * steps[0]])));
        }
      });
}

template <typename T>
void broadcast_copy(KernelContext& context, const TensorView& operand,
                    const MutableTensorView& output) {
  const T* from = operand.as<T>();
  T* to = output.as<T>();
  for_each_row<1>(context, output.dims, {broadcast_strides(operand.dims, output.dims)},
                  [&](std::int64_t at, const std::array<std::int64_t, 1>& offsets,
                      const std::array<std::int64_t, 1>& steps, std::int64_t count) {
                    for (std::int64_t i = 0; i < count; ++i)
                      to[at + i] = from[offsets[0] + i * steps[0]];
                  });
}

// Sums of 16-bit floats round after each operand. Output may lie over input 0 (equal dims: each
// element copied onto itself).
template <ScalarFunction F, typename List, bool kMean>
Status variadic_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* first, kernel_input(context, 0));
  Dims dims = first->dims;
  for (std::size_t i = 1; i < context.input_count(); ++i) {
    TESSERA_ASSIGN(const TensorView* operand, kernel_input(context, i));
    TESSERA_ASSIGN(dims, broadcast_dims(dims, operand->dims));
  }
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, first->dtype, dims));
  return dispatch(List{}, first->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    broadcast_copy<T>(context, *first, output);
    for (std::size_t i = 1; i < context.input_count(); ++i)
      fold_operand<F, T>(context, *context.input(i), output);
    if constexpr (kMean) {
      const auto count = static_cast<Compute<T>>(context.input_count());
      T* to = output.as<T>();
      context.parallel_for(output.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) to[i] = store<T>(load(to[i]) / count);
      });
    }
    return {};
  });
}

Status infer_variadic(InferContext& context) {
  if (context.inputs.empty())
    return input_error(context, 0, "expected at least one tensor, found none");
  for (std::size_t i = 1; i < context.inputs.size(); ++i)
    TESSERA_TRY(require_same_dtype(context, i, 0));
  TESSERA_TRY(infer_broadcast(context));
  if (context.inputs.size() == 1) set_value(context, 0, known_value(context.inputs[0]));
  return {};
}

template <DimFunction Function>
Status infer_extreme(InferContext& context) {
  TESSERA_TRY(infer_variadic(context));
  propagate_binary(context, Function);
  return {};
}

Work variadic_work(const Attributes& /*attributes*/, std::span<const TensorSpec> inputs,
                   std::span<const TensorSpec> outputs) {
  Work work;
  for (const TensorSpec& input : inputs)
    work.bytes_read += static_cast<double>(nbytes(input.dtype, input.dims));
  for (const TensorSpec& output : outputs) {
    work.bytes_written += static_cast<double>(nbytes(output.dtype, output.dims));
    work.flops += static_cast<double>(numel(output.dims)) * static_cast<double>(inputs.size());
  }
  return work;
}

struct Row {
  std::string_view name;
  std::vector<int> versions;
  InferFn infer;
  KernelFn kernel;
  DTypeSet types;
  std::string_view unspecified;
};

constexpr std::string_view kNanWins = "a NaN in any of the operands is the result";
constexpr std::string_view kRounds =
    "operands are added one after the other, and fp16 and bf16 are rounded after each";

}  // namespace

std::vector<OpSchema> variadic_ops() {
  using S = ScalarFunction;
  const Row rows[] = {
      {"Min",
       {1, 6, 8, 12, 13},
       infer_extreme<dim_min>,
       variadic_kernel<S::kMin, NumericTypes, false>,
       kNumericTypes,
       kNanWins},
      {"Max",
       {1, 6, 8, 12, 13},
       infer_extreme<dim_max>,
       variadic_kernel<S::kMax, NumericTypes, false>,
       kNumericTypes,
       kNanWins},
      {"Sum",
       {1, 6, 8, 13},
       infer_variadic,
       variadic_kernel<S::kAdd, FloatTypes, false>,
       kFloatTypes,
       kRounds},
      {"Mean",
       {1, 6, 8, 13},
       infer_variadic,
       variadic_kernel<S::kAdd, FloatTypes, true>,
       kFloatTypes,
       kRounds},
  };
  std::vector<OpSchema> ops;
  for (const Row& row : rows) {
    OpSchema& op = ops.emplace_back();
    op.name = row.name;
    op.versions = row.versions;
    op.inputs = {variadic("data_0", "T")};
    op.outputs = {required("result", "T")};
    op.type_variables = {{"T", row.types}};
    op.structure = Structure::kElementwise;
    op.infer = row.infer;
    op.kernel = row.kernel;
    op.work = variadic_work;
    op.unspecified = row.unspecified;
    op.upgrades = {{1, 1, upgrade_consumed_inputs}};
    op.in_place_inputs = {0};
    op.commutative = true;
  }
  return ops;
}

}  // namespace tessera::ops
