#include "backends/cpu/run/winograd_conv_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/cpu/run/winograd.h"

namespace tessera::backends::cpu {
namespace {

Status check(const artefact::KernelSpec& spec, const ConvPlan& plan) {
  const auto refuse = [&](const std::string& text) {
    return fail(ErrorCode::kUnimplemented, spec.steps[0].op_type + ": " + text);
  };
  const std::size_t rank = plan.weight_dims.size();
  const auto all_are = [](const Dims& sizes, std::int64_t size) {
    return std::all_of(sizes.begin(), sizes.end(), [&](std::int64_t s) { return s == size; });
  };
  if (rank != 4 || !all_are(plan.kernel, kWinogradTaps) || !all_are(plan.strides, 1) ||
      !all_are(plan.dilations, 1))
    return refuse(fmt::format(
        "expected a window of [3,3] in steps of [1,1], found {} in steps of {}, dilated by {}",
        to_string(plan.kernel), to_string(plan.strides), to_string(plan.dilations)));
  if (plan.group != 1) return refuse(fmt::format("expected one group, found {}", plan.group));
  return {};
}

}  // namespace

Result<PanelConvPlan> plan_winograd_conv(const artefact::KernelSpec& spec, Constants constants) {
  TESSERA_ASSIGN(PanelConvPlan plan, plan_panel_conv(spec, constants));
  TESSERA_TRY(check(spec, plan.conv));
  return plan;
}

WinogradConvGeometry winograd_conv_geometry(const ConvPlan& plan, const Dims& src, const Dims& dst,
                                            std::int64_t tile) {
  return {plan.axis(src, dst, 0), plan.axis(src, dst, 1), dst[0], src[1], dst[1], tile};
}

Layout winograd_weights_layout() {
  return {{0, 1, 2}, {{1, static_cast<std::uint16_t>(kProductColumns)}}};
}

Dims winograd_weights_dims(const Dims& onnx, std::int64_t tile) {
  return {winograd_planes(tile) + kWinogradTaps * kWinogradTaps, onnx[0], onnx[1]};
}

}  // namespace tessera::backends::cpu
