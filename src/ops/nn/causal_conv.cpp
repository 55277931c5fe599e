// CausalConvWithState: a depthwise convolution over what went before and what comes. Import makes
// Concat, Conv and Slice of it, which backends know.

#include <fmt/format.h>

#include <limits>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/nn/nn_util.h"
#include "ops/schema_util.h"
#include "ops/upgrade_util.h"

namespace tessera::ops {
namespace {

constexpr std::string_view kOp = "CausalConvWithState";

Status check_activation(const Attributes& attributes) {
  const std::string name = attributes.get_string("activation", "none");
  if (name == "none" || name == "silu" || name == "swish") return {};
  return attribute_error("activation",
                         fmt::format("expected 'silu', 'swish' or 'none', found '{}'", name));
}

Status infer(InferContext& context) {
  TESSERA_TRY(check_activation(context.attributes));
  TESSERA_TRY(require_rank(context, 0, 3));
  TESSERA_TRY(require_same_dtype(context, 1, 0));
  TESSERA_TRY(require_rank(context, 1, 3));
  TESSERA_TRY(infer_same_as_first(context));
  const auto& input = context.inputs[0].type;
  const auto& weight = context.inputs[1].type.shape;
  std::optional<Shape> state;
  if (input.shape && weight)
    state = Shape{(*input.shape)[0], (*input.shape)[1], (*weight)[2] - Dim(1)};
  set_output(context, 1, input.dtype, std::move(state));
  return {};
}

// Sizes of the weight [channels, 1, kernel], which the nodes bear in their attributes.
struct WeightSizes {
  std::int64_t channels = 0;
  std::int64_t kernel = 0;
};

Result<WeightSizes> weight_sizes(const UpgradeBuilder& builder, Operand weight) {
  const ValueType* type = builder.type(weight);
  if (type != nullptr && type->shape && type->shape->size() == 3) {
    const auto channels = (*type->shape)[0].constant();
    const auto kernel = (*type->shape)[2].constant();
    if (channels && kernel && *kernel >= 1) return WeightSizes{*channels, *kernel};
  }
  return nn::op_error(kOp,
                      fmt::format("input 'weight': expected known channels and kernel, found {}",
                                  type == nullptr ? "no type" : type->to_string()));
}

// The input behind kernel - 1 places of the past, zeros where there is none.
Operand with_past(const UpgradeNode& node, UpgradeBuilder& builder, std::int64_t kernel) {
  Attributes last;
  last.set("axis", std::int64_t{2});
  if (has_input(node, 3))
    return builder.node("Concat", last, {node.inputs[3], node.inputs[0]}, 1)[0];
  const Operand pads = constant_ints(builder, {0, 0, kernel - 1, 0, 0, 0});
  return builder.node("Pad", {}, {node.inputs[0], pads}, 1)[0];
}

Status expand(UpgradeNode& node, int /*opset*/, UpgradeBuilder& builder) {
  TESSERA_TRY(nn::require_inputs(node, 2));
  TESSERA_TRY(check_activation(node.attributes));
  TESSERA_ASSIGN(const WeightSizes sizes, weight_sizes(builder, node.inputs[1]));
  const Operand all = with_past(node, builder, sizes.kernel);
  Attributes depthwise;
  depthwise.set("group", sizes.channels);
  const Operand bias = has_input(node, 2) ? node.inputs[2] : kNoOperand;
  Operand output = builder.node("Conv", depthwise, {all, node.inputs[1], bias}, 1)[0];
  if (node.attributes.get_string("activation", "none") != "none")
    output = builder.node("Swish", {}, {output}, 1)[0];
  constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();
  const std::int64_t start = sizes.kernel == 1 ? kEnd : 1 - sizes.kernel;
  const Operand state = builder.node("Slice", {},
                                     {all, constant_ints(builder, {start}),
                                      constant_ints(builder, {kEnd}), constant_ints(builder, {2})},
                                     1)[0];
  node.replacement = {output, state};
  return {};
}

}  // namespace

std::vector<OpSchema> causal_conv_ops() {
  OpSchema op;
  op.name = kOp;
  op.versions = {27};
  op.inputs = {required("input", "T"), required("weight", "T"), optional("bias", "T"),
               optional("past_state", "T")};
  op.outputs = {required("output", "T"), required("present_state", "T")};
  op.attributes = {attr("activation", AttrType::kString)};
  op.type_variables = {{"T", kFloatTypes}};
  op.structure = Structure::kContraction;
  op.infer = infer;
  op.upgrades = {{27, 27, expand}};
  return {op};
}

}  // namespace tessera::ops
