// Convolutions by own code, over shifted planes.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "backends/cpu/compile/conv_draft.h"
#include "backends/cpu/run/cpu_features.h"
#include "backends/cpu/run/plane_conv_plan.h"

namespace tessera::backends::cpu {
namespace {

std::vector<ConvWay> ways(std::size_t rank, std::int64_t src_channels, std::int64_t dst_channels) {
  const Layout blocked = Layout::channel_blocked(static_cast<int>(rank), channel_block());
  std::vector<ConvWay> result = {{{}, {}}};
  if (src_channels > 4) result.push_back({blocked, dst_channels > 4 ? blocked : Layout()});
  if (src_channels <= 4 && dst_channels > 4) result.push_back({{}, blocked});
  return result;
}

// The share of the peak: of the products themselves, by the rows of a panel, less what does not
// multiply, counted in operations that would take as long.
double efficiency(const PlaneGeometry& geometry, const ConvWay& way, double product_flops) {
  constexpr double kByRows[] = {0.27, 0.38, 0.5, 0.55, 0.55, 0.55};
  constexpr double kMoved = 16;      // per element of planes, and of results
  constexpr double kScattered = 40;  // the same where neighbours do not lie together
  const std::int64_t rows = panel_rows_for(geometry.group, geometry.dst_channels);
  const std::int64_t padded_channels = (geometry.dst_channels + rows - 1) / rows * rows;
  const double panels =
      static_cast<double>(padded_channels) / static_cast<double>(geometry.dst_channels);
  const auto columns = static_cast<double>(geometry.columns.grid());
  const double lines = 1 + std::min(24.0, static_cast<double>(geometry.columns.reach)) / columns;
  const auto positions = static_cast<double>(geometry.images * geometry.rows.grid()) * columns;
  const bool src_together = way.src.is_row_major() && geometry.columns.src_step == 1;
  const bool dst_together = way.dst.is_row_major() && geometry.columns.dst_step == 1;
  const double planes = positions * static_cast<double>(geometry.group * geometry.src_channels *
                                                        geometry.planes_per_channel());
  const double results = positions * static_cast<double>(geometry.group * geometry.dst_channels) *
                         static_cast<double>(geometry.rows.dst_step * geometry.columns.dst_step);
  const double work = product_flops * panels * lines / kByRows[rows - 1] +
                      planes * (src_together ? kMoved : kScattered) +
                      results * (dst_together ? kMoved : kScattered);
  return std::min(product_flops / std::max(work, 1.0), 1.0);
}

// Where oneDNN's generated code is at its best: whole blocks of channels, rows that are not short;
// one channel of each group where channels lie together.
bool library_is_better(const PlaneGeometry& geometry, const ConvWay& way) {
  if (geometry.transposed || geometry.columns.dst_size < 7) return false;
  const bool depthwise =
      geometry.src_channels == 1 && geometry.dst_channels == 1 && geometry.group > 1;
  if (depthwise) return !way.src.is_row_major();
  return geometry.src_channels >= 16 && geometry.dst_channels >= 32;
}

// Planes hold zeros between the elements that they spread, which are no products of a transposed
// convolution.
Status check_weights(const SpecDraft& draft, const ConvPlan& plan) {
  if (!plan.transposed) return {};
  const std::size_t number = operand_ref(draft.spec, plan.weights_operand).index;
  const float* weights = floats(draft.constant_bytes()[number].data());
  const auto is_finite = [](float weight) { return std::isfinite(weight); };
  if (std::all_of(weights, weights + numel(plan.weight_dims), is_finite)) return {};
  return fail(ErrorCode::kUnimplemented, "ConvTranspose: expected weights that are finite");
}

Status check_way(const SpecDraft& laid, const InstanceDims& dims) {
  const auto bytes = laid.constant_bytes();
  TESSERA_ASSIGN(const ConvPlan plan, plan_conv(laid.spec, bytes, 0));
  TESSERA_TRY(check_plane_conv(laid.spec, plan));
  return check_tail(laid, dims, 1);
}

}  // namespace

Offers offer_plane_conv(const OfferRequest& request, const ConvPlan& plan, double product_flops,
                        bool alone) {
  const auto& spec = request.draft.spec;
  if (const auto checked = check_plane_conv(spec, plan); !checked) return refuse(checked.error());
  if (const auto checked = check_weights(request.draft, plan); !checked)
    return refuse(checked.error());
  const Dims& src = request.dims.inputs[operand_ref(spec, plan.src_operand).index];
  const Dims& dst = request.dims.outputs[0];
  const PlaneGeometry geometry = plane_geometry(plan, src, dst);
  Offers offers;
  for (const ConvWay& way : ways(dst.size(), src[1], dst[1])) {
    if (!alone && library_is_better(geometry, way)) continue;
    const auto laid = conv_in_layouts(request.draft, way);
    const Status fits =
        laid ? check_way(*laid, request.dims) : Status(tl::unexpected(laid.error()));
    if (!fits) {
      if (offers.refusal.empty())
        offers.refusal = fmt::format("{} in {}: {}", describe_steps(spec), way.dst.to_string(),
                                     fits.error().to_string());
      continue;
    }
    Candidate candidate = conv_candidate(*laid, "simd.conv", request.dims, product_flops);
    candidate.efficiency = efficiency(geometry, way, product_flops);
    offers.candidates.push_back(std::move(candidate));
  }
  return offers;
}

void finish_plane_conv(SpecDraft& draft) {
  const OperandRef weights = operand_ref(draft.spec, step_input(draft.spec.steps[0], 1));
  const bool transposed = draft.spec.steps[0].op_type == "ConvTranspose";
  const std::int64_t group = draft.spec.steps[0].attributes.get_int("group", 1);
  const Dims dims = *constant_dims(draft.spec.constants[weights.index].shape);
  const std::int64_t rows = panel_rows_for(group, transposed ? dims[1] : dims[0] / group);
  relayout_constant(draft, weights.index, plane_weights_layout(transposed, dims.size(), rows));
}

}  // namespace tessera::backends::cpu
