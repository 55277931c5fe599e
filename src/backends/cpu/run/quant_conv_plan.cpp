#include "backends/cpu/run/quant_conv_plan.h"

#include <fmt/format.h>

#include "backends/cpu/run/quant_simd.h"

namespace tessera::backends::cpu {
namespace {

Result<Dims> sizes(const artefact::KernelStep& step, std::string_view name, std::size_t count) {
  Dims values = step.attributes.get_ints(name, Dims(count, 1));
  if (values.size() == count) return values;
  return fail(ErrorCode::kInvalidArgument, fmt::format("attribute '{}': expected {} values, found "
                                                       "{}",
                                                       name, count, values.size()));
}

}  // namespace

Result<QuantConvPlan> plan_quant_conv(const artefact::KernelSpec& spec, Constants constants) {
  QuantConvPlan plan;
  TESSERA_ASSIGN(plan.quant, plan_quantised(spec, constants));
  if (plan.quant.kind != QuantPlan::Kind::kConv)
    return bad_spec(spec, "expected a quantised convolution");
  const auto& step = spec.steps[plan.quant.anchor];
  const auto weight_dims = constant_dims(operand_decl(spec, plan.quant.weights)->shape);
  const auto* src = operand_decl(spec, plan.quant.src.operand);
  if (!weight_dims || src == nullptr || !is_constant(spec, plan.quant.weights))
    return fail(ErrorCode::kUnimplemented,
                fmt::format("{}: weights: expected constants, found a tensor computed at run time",
                            step.op_type));
  if (operand_ref(spec, plan.quant.src.operand).kind != OperandRef::Kind::kInput)
    return fail(ErrorCode::kUnimplemented,
                fmt::format("{}: input 'X': expected one computed at run time, found a constant",
                            step.op_type));
  const std::size_t rank = src->shape.size();
  if (rank < 3 || rank > 5)
    return fail(ErrorCode::kUnimplemented,
                fmt::format("{}: expected rank 3 to 5, found {}", step.op_type, rank));
  ConvPlan& conv = plan.conv;
  const std::size_t spatial = rank - 2;
  conv.group = step.attributes.get_int("group", 1);
  const auto channels = src->shape[1].constant();
  if (!channels)
    return fail(ErrorCode::kUnimplemented,
                fmt::format("{}: input 'X': expected a known number of channels", step.op_type));
  plan.depthwise = conv.group > 1 && conv.group == *channels && (*weight_dims)[0] == *channels;
  const bool packed = weight_dims->size() == 2;
  if (packed ? !plan.depthwise : weight_dims->size() != rank)
    return bad_spec(
        spec, fmt::format("expected weights of rank {}, found {}", rank, weight_dims->size()));
  if (!packed) conv.kernel.assign(weight_dims->begin() + 2, weight_dims->end());
  if (packed) {
    TESSERA_ASSIGN(conv.kernel, sizes(step, "kernel_shape", spatial));
  }
  conv.weight_dims = *weight_dims;
  TESSERA_ASSIGN(conv.strides, sizes(step, "strides", spatial));
  TESSERA_ASSIGN(conv.dilations, sizes(step, "dilations", spatial));
  conv.pads = step.attributes.get_ints("pads", Dims(2 * spatial, 0));
  if (conv.pads.size() != 2 * spatial)
    return bad_spec(spec, fmt::format("attribute 'pads': expected {} values, found {}", 2 * spatial,
                                      conv.pads.size()));
  conv.output_padding.assign(spatial, 0);
  conv.auto_pad = step.attributes.get_string("auto_pad", "NOTSET");
  conv.src_layout = conv.dst_layout = Layout::channels_last(static_cast<int>(rank));
  conv.src_operand = plan.quant.src.operand;
  conv.weights_operand = plan.quant.weights;
  return plan;
}

Layout conv_panel_layout(std::size_t rank) {
  Layout layout;
  layout.order.push_back(0);
  for (std::size_t d = 2; d < rank; ++d) layout.order.push_back(static_cast<std::uint8_t>(d));
  layout.order.push_back(1);
  layout.blocks = {{0, static_cast<std::uint16_t>(kPanelColumns)}, {1, 2}};
  return layout;
}

Layout depthwise_layout() {
  return {{1, 0}, {{1, 2}}};
}

Layout product_panel_layout(bool transposed) {
  const std::uint8_t column = transposed ? 0 : 1;
  const auto depth = static_cast<std::uint8_t>(1 - column);
  return {{column, depth}, {{column, static_cast<std::uint16_t>(kPanelColumns)}, {depth, 2}}};
}

}  // namespace tessera::backends::cpu
