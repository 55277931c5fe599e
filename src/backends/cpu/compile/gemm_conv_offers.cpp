// Convolutions by own code as products, channels last.

#include <fmt/format.h>

#include <algorithm>

#include "backends/cpu/compile/conv_draft.h"
#include "backends/cpu/run/gemm_conv_plan.h"
#include "backends/cpu/run/product_simd.h"

namespace tessera::backends::cpu {
namespace {

// The share of the peak on the yardstick of the library's generated code (conv_offers.cpp, 0.6),
// which it equals: less the panels that are not whole and what finding a segment costs, counted in
// products that would take as long.
double efficiency(const GemmConvGeometry& geometry) {
  constexpr double kProduct = 0.62;
  constexpr double kSegment = 8;
  const auto channels = static_cast<double>(geometry.dst_channels);
  // Groups that share a panel each compute all of it.
  const std::int64_t shared =
      geometry.dst_channels % kProductColumns == 0 || geometry.group == 1 ? 0 : kProductColumns / 2;
  const auto columns = static_cast<double>(panel_elements(1, geometry.dst_channels) + shared);
  const auto depth = static_cast<double>(geometry.segment_depth());
  return kProduct * channels / columns * depth / (depth + kSegment / columns);
}

Result<ConvPlan> check(const SpecDraft& laid, const InstanceDims& dims) {
  const auto bytes = laid.constant_bytes();
  TESSERA_ASSIGN(PanelConvPlan plan, plan_gemm_conv(laid.spec, bytes));
  TESSERA_TRY(check_tail(laid, dims, 1 + plan.conv.epilogue.steps));
  return std::move(plan.conv);
}

}  // namespace

Offers offer_gemm_conv(const OfferRequest& request, double product_flops) {
  const auto& spec = request.draft.spec;
  const Layout last = Layout::channels_last(static_cast<int>(request.dims.outputs[0].size()));
  const auto laid = conv_in_layouts(request.draft, {last, last});
  if (!laid) return refuse(laid.error());
  const auto plan = check(*laid, request.dims);
  if (!plan) return refuse(plan.error());
  const Dims& src = request.dims.inputs[operand_ref(spec, plan->src_operand).index];
  Candidate candidate = conv_candidate(*laid, "simd.gemm_conv", request.dims, product_flops);
  candidate.efficiency = efficiency(gemm_conv_geometry(*plan, src, request.dims.outputs[0]));
  Offers offers;
  offers.candidates.push_back(std::move(candidate));
  return offers;
}

void finish_gemm_conv(SpecDraft& draft) {
  const OperandRef weights = operand_ref(draft.spec, step_input(draft.spec.steps[0], 1));
  relayout_constant(draft, weights.index,
                    gemm_conv_weights_layout(draft.spec.constants[weights.index].shape.size()));
}

}  // namespace tessera::backends::cpu
