#include "ops/elementwise/elementwise_util.h"

#include <fmt/format.h>

#include <numeric>

#include "ops/infer_util.h"
#include "ops/upgrade_util.h"

namespace tessera::ops {

Status infer_broadcast(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* first, tensor_input(context, 0));
  TESSERA_ASSIGN(std::optional<Shape> shape, broadcast_inputs(context, 0, context.inputs.size()));
  set_output(context, 0, first->type.dtype, std::move(shape));
  return {};
}

Status infer_broadcast_bool(InferContext& context) {
  TESSERA_ASSIGN(std::optional<Shape> shape, broadcast_inputs(context, 0, context.inputs.size()));
  set_output(context, 0, DType::kBool, std::move(shape));
  return {};
}

Status upgrade_legacy_broadcast(UpgradeNode& node, int /*opset*/, UpgradeBuilder& builder) {
  TESSERA_ASSIGN(const std::int64_t broadcast, old_int(node, "broadcast", 0));
  const bool has_axis = node.attributes.has("axis");
  TESSERA_ASSIGN(std::int64_t axis, old_int(node, "axis", 0));
  erase_attributes(node, {"consumed_inputs", "broadcast", "axis"});
  if (broadcast == 0 || !has_axis || node.inputs.size() < 2) return {};
  const auto rank_a = known_rank(builder, node.inputs[0]);
  const auto rank_b = known_rank(builder, node.inputs[1]);
  if (!rank_a || !rank_b) {
    return fail(ErrorCode::kUnimplemented,
                fmt::format("{}: attribute 'axis' of an old version needs the ranks of both "
                            "inputs, and they are not known",
                            node.op_type));
  }
  TESSERA_ASSIGN(axis, normalize_axis(axis, *rank_a, "attribute 'axis'"));
  const std::int64_t trailing = *rank_a - axis - *rank_b;
  if (trailing < 0) {
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format(
            "attribute 'axis': expected input 1 of rank {} or less at axis {}, found rank {}",
            *rank_a - axis, axis, *rank_b));
  }
  if (trailing == 0) return {};
  std::vector<std::int64_t> axes(static_cast<std::size_t>(trailing));
  std::iota(axes.begin(), axes.end(), *rank_b);
  node.inputs[1] =
      builder.node("Unsqueeze", {}, {node.inputs[1], constant_ints(builder, axes)}, 1)[0];
  return {};
}

Result<Operands> same_type_operands(const KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* a, kernel_input(context, 0));
  TESSERA_ASSIGN(const TensorView* b, kernel_input(context, 1));
  if (a->dtype != b->dtype) {
    return fail(ErrorCode::kInvalidArgument, fmt::format("input 1: expected {}, found {}",
                                                         to_string(a->dtype), to_string(b->dtype)));
  }
  return Operands{a, b};
}

}  // namespace tessera::ops
