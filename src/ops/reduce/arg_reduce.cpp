// ArgMax and ArgMin: the position of the extreme element along an axis. A NaN counts as the extreme
// one, as numpy has it.

#include <fmt/format.h>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/reduce/reduce_util.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

Status infer_arg_reduce(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* input, tensor_input(context, 0));
  std::optional<Shape> shape = input->type.shape;
  if (shape) {
    TESSERA_ASSIGN(const std::int64_t axis,
                   normalize_axis(context.attributes.get_int("axis", 0),
                                  static_cast<std::int64_t>(shape->size()), "attribute 'axis'"));
    if (context.attributes.get_int("keepdims", 1) != 0) {
      (*shape)[static_cast<std::size_t>(axis)] = Dim(1);
    } else {
      shape->erase(shape->begin() + axis);
    }
  }
  set_output(context, 0, DType::kInt64, std::move(shape));
  return {};
}

template <bool kLargest, typename C>
bool better(C x, C best) {
  // NOLINTNEXTLINE(misc-redundant-expression): NaN differs from itself
  if (best != best) return false;
  // NOLINTNEXTLINE(misc-redundant-expression): NaN differs from itself
  return x != x || (kLargest ? x > best : x < best);
}

template <bool kLargest>
Status arg_reduce_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(const std::int64_t axis,
                 normalize_axis(context.attributes().get_int("axis", 0),
                                static_cast<std::int64_t>(input->dims.size()), "attribute 'axis'"));
  const bool last = context.attributes().get_int("select_last_index", 0) != 0;
  const ReductionPlan plan =
      plan_reduction(input->dims, {axis}, context.attributes().get_int("keepdims", 1) != 0);
  if (plan.count == 0 && plan.outputs > 0) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("ArgMax and ArgMin: axis {} of {} has no elements", axis,
                            to_string(input->dims)));
  }
  TESSERA_ASSIGN(const MutableTensorView output,
                 context.output(0, DType::kInt64, plan.output_dims));
  return dispatch(NumericTypes{}, input->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    const std::int64_t grain =
        std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, plan.count));
    context.parallel_for(plan.outputs, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t base = first_offset(plan, i);
        auto best = load(input->as<T>()[base]);
        std::int64_t at = 0;
        for_each_folded(plan, base, [&](std::int64_t offset, std::int64_t position) {
          const auto x = load(input->as<T>()[offset]);
          // NOLINTNEXTLINE(misc-redundant-expression): NaN differs from itself
          const bool same = x == best || (x != x && best != best);
          if (better<kLargest>(x, best) || (last && same)) {
            best = x;
            at = position;
          }
        });
        output.as<std::int64_t>()[i] = at;
      }
    });
    return {};
  });
}

}  // namespace

std::vector<OpSchema> arg_reduce_ops() {
  OpSchema arg_max;
  arg_max.name = "ArgMax";
  arg_max.versions = {1, 11, 12, 13};
  arg_max.inputs = {required("data", "T")};
  arg_max.outputs = {required("reduced", "I")};
  arg_max.attributes = {attr("axis", AttrType::kInt), attr("keepdims", AttrType::kInt),
                        attr("select_last_index", AttrType::kInt)};
  arg_max.type_variables = {{"T", kNumericTypes}, {"I", kInt64Type}};
  arg_max.structure = Structure::kReduction;
  arg_max.infer = infer_arg_reduce;
  arg_max.kernel = arg_reduce_kernel<true>;

  arg_max.unspecified = "a NaN counts as the extreme element";
  OpSchema arg_min = arg_max;
  arg_min.name = "ArgMin";
  arg_min.kernel = arg_reduce_kernel<false>;
  return {arg_max, arg_min};
}

}  // namespace tessera::ops
