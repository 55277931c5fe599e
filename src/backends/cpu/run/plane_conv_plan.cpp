#include "backends/cpu/run/plane_conv_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "backends/cpu/run/physical.h"

namespace tessera::backends::cpu {
namespace {

// Planes of a piece stay in half of a common second-level cache; rows shorter than this are not
// cut.
constexpr std::int64_t kPieceElements = 48 * 1024;
constexpr std::int64_t kFewestColumns = 64;
// Products below which a second thread costs more than it saves.
constexpr std::int64_t kFewestProducts = 200'000;

std::int64_t divide_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit;
}

// The size of equal parts of at most `most` elements, their number a multiple of `multiple`.
std::int64_t even_part(std::int64_t count, std::int64_t most, std::int64_t multiple) {
  const std::int64_t part = std::clamp<std::int64_t>(most, 1, std::max<std::int64_t>(count, 1));
  const std::int64_t parts = divide_up(divide_up(count, part), multiple) * multiple;
  return std::max<std::int64_t>(divide_up(count, std::max<std::int64_t>(parts, 1)), 1);
}

void set_taps(PlaneAxis& axis, const ConvPlan& plan, std::size_t dim) {
  const std::int64_t stride = plan.strides[dim];
  axis.reach = (plan.kernel[dim] - 1) * plan.dilations[dim] / stride;
  axis.src_phases = {};
  axis.taps = {};
  for (std::int64_t k = 0; k < plan.kernel[dim]; ++k) {
    const std::int64_t at = k * plan.dilations[dim];
    PlaneAxis::Tap tap;
    if (plan.transposed) {
      tap = {0, axis.reach - at / stride, at % stride};
    } else {
      const auto found = std::find(axis.src_phases.begin(), axis.src_phases.end(), at % stride);
      tap = {found - axis.src_phases.begin(), at / stride, 0};
      if (found == axis.src_phases.end()) axis.src_phases.push_back(at % stride);
    }
    axis.taps.push_back(tap);
  }
  if (plan.transposed) axis.src_phases = {0};
}

PlaneAxis axis_for(const ConvPlan& plan, const Dims& src, const Dims& dst, std::size_t dim) {
  PlaneAxis axis;
  axis.src_size = src[dim + 2];
  axis.dst_size = dst[dim + 2];
  set_taps(axis, plan, dim);
  const std::int64_t pad = plan.pads_for(src, dst).begin[dim];
  const std::int64_t stride = plan.strides[dim];
  if (!plan.transposed) {
    axis.src_step = stride;
    axis.src_pad = pad;
    axis.grid_end = axis.dst_size;
    return axis;
  }
  axis.src_pad = axis.reach;
  axis.dst_step = stride;
  axis.dst_pad = pad;
  axis.grid_begin = (pad >= 0 ? pad : pad - stride + 1) / stride;
  axis.grid_end = (axis.dst_size - 1 + pad) / stride + 1;
  return axis;
}

}  // namespace

ChunkRange PlaneAxis::results(ChunkRange grid_range) const {
  return {std::clamp<std::int64_t>(grid_range.begin * dst_step - dst_pad, 0, dst_size),
          std::clamp<std::int64_t>(grid_range.end * dst_step - dst_pad, 0, dst_size)};
}

std::int64_t PlaneGeometry::plane_elements(const PlaneCut& cut) const {
  return cut.images * (cut.rows + rows.reach) * (cut.columns + columns.reach);
}

std::int64_t PlaneGeometry::piece_elements(const PlaneCut& cut) const {
  return src_channels * planes_per_channel() * plane_elements(cut) + kPlaneSlack;
}

PlaneCut PlaneGeometry::cut(int threads) const {
  const std::int64_t planes = src_channels * planes_per_channel();
  const auto taps = static_cast<std::int64_t>(rows.taps.size() * columns.taps.size());
  const std::int64_t products =
      images * rows.grid() * columns.grid() * group * src_channels * dst_channels * taps;
  const bool small = threads <= 1 || products < kFewestProducts;
  const std::int64_t wanted = small ? 1 : divide_up(threads, group);
  const std::int64_t budget = std::max<std::int64_t>(kPieceElements / planes, 1);
  PlaneCut cut{images, rows.grid(), columns.grid(), 1};
  const std::int64_t image =
      (cut.rows + rows.reach) * std::max<std::int64_t>(cut.columns + columns.reach, 1);
  cut.images = even_part(images, std::min(images / wanted, budget / image), wanted);
  if (cut.images <= 1) {
    const std::int64_t parts = divide_up(wanted, std::max<std::int64_t>(images, 1));
    const std::int64_t fitting = budget / (cut.columns + columns.reach) - rows.reach;
    cut.rows = even_part(rows.grid(), std::min(rows.grid() / parts, fitting), parts);
    const std::int64_t row_parts = divide_up(rows.grid(), std::max<std::int64_t>(cut.rows, 1));
    if (row_parts < parts || fitting < 1) {
      const std::int64_t wide = budget / (cut.rows + rows.reach) - columns.reach;
      const std::int64_t shared =
          columns.grid() / divide_up(parts, std::max<std::int64_t>(row_parts, 1));
      cut.columns = even_part(columns.grid(), std::max(std::min(wide, shared), kFewestColumns), 1);
    }
  }
  cut.pieces = group * divide_up(images, cut.images) * divide_up(rows.grid(), cut.rows) *
               divide_up(columns.grid(), cut.columns);
  return cut;
}

std::vector<PlaneTerm> PlaneGeometry::terms(const PlaneCut& cut, std::int64_t row_phase,
                                            std::int64_t column_phase,
                                            std::int64_t panel_rows) const {
  const std::int64_t width = cut.columns + columns.reach;
  const auto column_phases = static_cast<std::int64_t>(columns.src_phases.size());
  const auto column_taps = static_cast<std::int64_t>(columns.taps.size());
  const auto taps = static_cast<std::int64_t>(rows.taps.size()) * column_taps;
  std::vector<PlaneTerm> result;
  for (std::int64_t channel = 0; channel < src_channels; ++channel) {
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      const auto& row = rows.taps[static_cast<std::size_t>(tap / column_taps)];
      const auto& column = columns.taps[static_cast<std::size_t>(tap % column_taps)];
      if (row.dst_phase != row_phase || column.dst_phase != column_phase) continue;
      const std::int64_t plane =
          channel * planes_per_channel() + row.src_phase * column_phases + column.src_phase;
      const std::int64_t at = plane * plane_elements(cut) + row.shift * width + column.shift;
      const std::int64_t weight = (channel * taps + tap) * panel_rows;
      result.push_back({static_cast<std::int32_t>(at), static_cast<std::int32_t>(weight)});
    }
  }
  return result;
}

Status check_plane_conv(const artefact::KernelSpec& spec, const ConvPlan& plan) {
  const auto& op = spec.steps[0].op_type;
  const std::size_t rank = plan.weight_dims.size();
  const auto refuse = [&](const std::string& text) {
    return fail(ErrorCode::kUnimplemented, op + ": " + text);
  };
  TESSERA_TRY(check_own_conv(spec, plan));
  const auto out = spec.outputs[0].shape[1].constant();
  if (numel(plan.weight_dims) == 0 || plan.group < 1 || !out || *out % plan.group != 0)
    return refuse(fmt::format("expected channels in {} groups, found weights {}", plan.group,
                              to_string(plan.weight_dims)));
  const std::int64_t group_channels = *out / plan.group;
  const bool split = is_channels_last(plan.dst_layout, rank) ||
                     group_channels % channel_block_of(plan.dst_layout) != 0;
  if (plan.group > 1 && split)
    return refuse(fmt::format("expected groups of whole blocks in {}, found {} channels",
                              plan.dst_layout.to_string(), group_channels));
  return {};
}

PlaneGeometry plane_geometry(const ConvPlan& plan, const Dims& src, const Dims& dst) {
  PlaneGeometry result;
  result.images = dst[0];
  result.group = plan.group;
  result.src_channels = src[1] / plan.group;
  result.dst_channels = dst[1] / plan.group;
  result.transposed = plan.transposed;
  const std::size_t spatial = plan.kernel.size();
  if (spatial == 2) result.rows = axis_for(plan, src, dst, 0);
  result.columns = axis_for(plan, src, dst, spatial - 1);
  return result;
}

std::int64_t panel_rows_for(std::int64_t group, std::int64_t dst_channels) {
  std::int64_t best = 1;
  std::int64_t best_work = INT64_MAX;
  // What a panel costs for each term, in thirds of a row: its rows, and the load of a plane.
  for (std::int64_t rows = 1; rows <= kMaxPanelRows; ++rows) {
    if (group > 1 && dst_channels % rows != 0) continue;
    const std::int64_t work = divide_up(dst_channels, rows) * (3 * rows + 1);
    if (work <= best_work) {
      best = rows;
      best_work = work;
    }
  }
  return best;
}

Layout plane_weights_layout(bool transposed, std::size_t rank, std::int64_t panel_rows) {
  Layout layout;
  if (panel_rows == 1 && !transposed) return layout;
  for (std::size_t d = 0; d < rank; ++d) layout.order.push_back(static_cast<std::uint8_t>(d));
  if (transposed) std::swap(layout.order[0], layout.order[1]);
  const std::uint8_t out = transposed ? 1 : 0;
  if (panel_rows > 1) layout.blocks = {{out, static_cast<std::uint16_t>(panel_rows)}};
  return layout;
}

}  // namespace tessera::backends::cpu
