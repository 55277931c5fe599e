#include "backends/cpu/run/gemm_conv_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/cpu/run/product_simd.h"

namespace tessera::backends::cpu {
namespace {

Status check(const artefact::KernelSpec& spec, const ConvPlan& plan) {
  const auto& op = spec.steps[0].op_type;
  const auto refuse = [&](const std::string& text) {
    return fail(ErrorCode::kUnimplemented, op + ": " + text);
  };
  if (numel(plan.weight_dims) == 0 || plan.group < 1 || plan.weight_dims[0] % plan.group != 0)
    return refuse(fmt::format("expected channels in {} groups, found weights {}", plan.group,
                              to_string(plan.weight_dims)));
  constexpr std::int64_t kFewestChannels = 4;  // of a group: a panel computes kProductColumns
  const std::int64_t channels = plan.weight_dims[0] / plan.group;
  if (plan.group > 1 && channels < kFewestChannels)
    return refuse(
        fmt::format("expected groups of {} channels or more, found {}", kFewestChannels, channels));
  return {};
}

}  // namespace

ChunkRange GemmConvGeometry::inside(std::int64_t first, std::int64_t taps) const {
  // Column x reads the source's columns from x * stride + offset on.
  const std::int64_t offset = first * columns.dilation - columns.pad;
  const std::int64_t last = columns.src_size - (taps - 1) * columns.dilation - 1 - offset;
  const std::int64_t begin = offset >= 0 ? 0 : (columns.stride - 1 - offset) / columns.stride;
  const std::int64_t end = last < 0 ? 0 : last / columns.stride + 1;
  const std::int64_t low = std::min(begin, columns.dst_size);
  return {low, std::clamp(end, low, columns.dst_size)};
}

Result<PanelConvPlan> plan_gemm_conv(const artefact::KernelSpec& spec, Constants constants) {
  TESSERA_ASSIGN(PanelConvPlan plan, plan_panel_conv(spec, constants));
  TESSERA_TRY(check(spec, plan.conv));
  return plan;
}

GemmConvGeometry gemm_conv_geometry(const ConvPlan& plan, const Dims& src, const Dims& dst) {
  GemmConvGeometry result;
  result.images = dst[0];
  result.group = plan.group;
  result.src_channels = src[1] / plan.group;
  result.dst_channels = dst[1] / plan.group;
  const std::size_t spatial = plan.kernel.size();
  if (spatial == 2) result.rows = plan.axis(src, dst, 0);
  result.columns = plan.axis(src, dst, spatial - 1);
  return result;
}

Layout gemm_conv_weights_layout(std::size_t rank) {
  Layout layout{{0}, {{0, static_cast<std::uint16_t>(kProductColumns)}}};
  for (std::size_t d = 2; d < rank; ++d) layout.order.push_back(static_cast<std::uint8_t>(d));
  layout.order.push_back(1);
  return layout;
}

}  // namespace tessera::backends::cpu
