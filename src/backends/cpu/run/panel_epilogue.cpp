#include "backends/cpu/run/panel_epilogue.h"

#include <limits>

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
    } else if (op.eltwise == Eltwise::kRelu && op.alpha == 0) {
      result.range = {0.0F, std::numeric_limits<float>::infinity()};
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

}  // namespace tessera::backends::cpu
