#include "backends/cpu/run/panel_epilogue.h"

#include <fmt/format.h>

#include "backends/cpu/run/physical.h"

namespace tessera::backends::cpu {
namespace {

std::optional<PanelEpilogue> as_panel_epilogue(const artefact::KernelSpec& spec,
                                               const EpiloguePlan& cut) {
  PanelEpilogue result;
  for (const PlannedPostOp& planned : cut.post_ops) {
    if (result.range) return std::nullopt;
    const PostOp& op = planned.op;
    if (op.binary) {
      const bool adds = *op.binary == Binary::kAdd && !result.addend &&
                        operand_decl(spec, planned.operand)->shape == spec.outputs[0].shape;
      if (!adds) return std::nullopt;
      result.addend = planned.operand;
    } else if (op.eltwise == Eltwise::kClip) {
      result.range = {op.alpha, op.beta};
    } else {
      return std::nullopt;
    }
  }
  return result;
}

}  // namespace

PanelEpilogue plan_panel_epilogue(const artefact::KernelSpec& spec, Constants constants,
                                  bool accepts_bias, std::size_t channel, EpiloguePlan& epilogue) {
  for (EpiloguePlan& cut : plan_epilogue(spec, constants, accepts_bias, channel)) {
    if (const auto result = as_panel_epilogue(spec, cut)) {
      epilogue = std::move(cut);
      return *result;
    }
  }
  return {};
}

Result<PanelConvPlan> plan_panel_conv(const artefact::KernelSpec& spec, Constants constants) {
  PanelConvPlan plan;
  TESSERA_ASSIGN(plan.conv, plan_conv(spec, constants, 0));
  const auto& op = spec.steps[0].op_type;
  if (plan.conv.transposed) return fail(ErrorCode::kUnimplemented, op + ": expected a Conv");
  TESSERA_TRY(check_own_conv(spec, plan.conv));
  for (const Layout& layout : {plan.conv.src_layout, plan.conv.dst_layout}) {
    if (!is_channels_last(layout, plan.conv.weight_dims.size()))
      return fail(ErrorCode::kUnimplemented,
                  op + ": expected channels last, found " + layout.to_string());
  }
  const Shape& src = operand_decl(spec, plan.conv.src_operand)->shape;
  const Shape& dst = spec.outputs[0].shape;
  const Dims& weights = plan.conv.weight_dims;
  if (dst.size() != weights.size() || src[1] != weights[1] * plan.conv.group ||
      dst[1] != weights[0])
    return bad_spec(spec, fmt::format("expected {} channels to {}, found {} to {}",
                                      weights[1] * plan.conv.group, weights[0], to_string(src),
                                      to_string(dst)));
  const auto own_bias = plan.conv.epilogue.bias;
  plan.epilogue = plan_panel_epilogue(spec, constants, !own_bias, 1, plan.conv.epilogue);
  if (own_bias) plan.conv.epilogue.bias = own_bias;
  return plan;
}

}  // namespace tessera::backends::cpu
