// CumSum and CumProd: running sums and products along an axis.

#include <fmt/format.h>

#include <type_traits>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/movement/movement_util.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

Status infer_cumulative(InferContext& context) {
  TESSERA_TRY(require_dtype(context, 1, kIndexTypes));
  TESSERA_TRY(infer_same_as_first(context));
  const auto axis = known_ints(context.inputs[1]);
  const auto& shape = context.inputs[0].type.shape;
  if (!axis || !shape) return {};
  if (axis->size() != 1)
    return input_error(context, 1,
                       fmt::format("expected a scalar, found {} elements", axis->size()));
  return normalize_axis(axis->front(), static_cast<std::int64_t>(shape->size()), "input 'axis'")
      .map([](std::int64_t) {});
}

enum class Fold : std::uint8_t { kSum, kProduct };

// Floats are folded in double, integers wrap around.
template <Fold kFold, typename T>
void run_along(const T* from, T* to, std::int64_t size, std::int64_t step, bool exclusive) {
  using Wide = std::conditional_t<std::is_floating_point_v<Compute<T>>, double, std::uint64_t>;
  Wide folded = kFold == Fold::kSum ? 0 : 1;
  for (std::int64_t i = 0; i < size; ++i) {
    const auto element = static_cast<Wide>(load(from[i * step]));
    const Wide next = kFold == Fold::kSum ? folded + element : folded * element;
    to[i * step] = store<T>(static_cast<Compute<T>>(exclusive ? folded : next));
    folded = next;
  }
}

template <Fold kFold>
constexpr std::string_view name() {
  return kFold == Fold::kSum ? "CumSum" : "CumProd";
}

template <Fold kFold>
Status cumulative_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(const TensorView* axis_input, kernel_input(context, 1));
  if (axis_input->numel() != 1)
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: input 'axis': expected a scalar, found {}", name<kFold>(),
                            to_string(axis_input->dims)));
  TESSERA_ASSIGN(
      const std::int64_t axis,
      normalize_axis(to_int64_vector(*axis_input)[0], static_cast<std::int64_t>(input->dims.size()),
                     fmt::format("{}: input 'axis'", name<kFold>())));
  const AxisSplit split = split_at(input->dims, axis);
  const bool exclusive = context.attributes().get_int("exclusive", 0) != 0;
  const bool reverse = context.attributes().get_int("reverse", 0) != 0;
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, input->dtype, input->dims));
  if (input->numel() == 0) return {};
  return dispatch(NumericTypes{}, input->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    context.parallel_for(split.outer * split.inner, std::max<std::int64_t>(1, kGrain / split.size),
                         [&](std::int64_t begin, std::int64_t end) {
                           for (std::int64_t i = begin; i < end; ++i) {
                             const std::int64_t last = reverse ? split.size - 1 : 0;
                             const std::int64_t at =
                                 (i / split.inner * split.size + last) * split.inner +
                                 i % split.inner;
                             run_along<kFold>(input->as<T>() + at, output.as<T>() + at, split.size,
                                              reverse ? -split.inner : split.inner, exclusive);
                           }
                         });
    return {};
  });
}

}  // namespace

std::vector<OpSchema> cumulative_ops() {
  OpSchema op;
  op.name = "CumSum";
  op.versions = {11, 14};
  op.unspecified =
      "real numbers are folded in fp64 and each result is rounded; integers wrap around";
  op.inputs = {required("x", "T"), required("axis", "T2")};
  op.outputs = {required("y", "T")};
  op.attributes = {attr("exclusive", AttrType::kInt), attr("reverse", AttrType::kInt)};
  op.type_variables = {{"T", kNumericTypes}, {"T2", kIndexTypes}};
  op.structure = Structure::kOther;
  op.infer = infer_cumulative;
  op.kernel = cumulative_kernel<Fold::kSum>;

  OpSchema product = op;
  product.name = name<Fold::kProduct>();
  product.versions = {26};
  product.kernel = cumulative_kernel<Fold::kProduct>;
  return {op, product};
}

}  // namespace tessera::ops
