// Convolutions of a 3 x 3 window by Winograd's algorithm, channels last.

#include <fmt/format.h>

#include <algorithm>

#include "backends/cpu/compile/conv_draft.h"
#include "backends/cpu/run/physical.h"
#include "backends/cpu/run/winograd.h"
#include "backends/cpu/run/winograd_conv_plan.h"

namespace tessera::backends::cpu {
namespace {

// Fewer channels leave too little to the products beside what is transformed.
constexpr std::int64_t kFewestChannels = 8;

Result<ConvPlan> check(const SpecDraft& laid, const InstanceDims& dims) {
  const auto bytes = laid.constant_bytes();
  TESSERA_ASSIGN(PanelConvPlan plan, plan_winograd_conv(laid.spec, bytes));
  const Dims& weights = plan.conv.weight_dims;
  if (std::min(weights[0], weights[1]) < kFewestChannels)
    return fail(ErrorCode::kUnimplemented,
                fmt::format("{}: expected {} channels and more, found weights {}",
                            laid.spec.steps[0].op_type, kFewestChannels, to_string(weights)));
  TESSERA_TRY(check_tail(laid, dims, 1 + plan.conv.epilogue.steps));
  return std::move(plan.conv);
}

Candidate candidate_of(const SpecDraft& laid, const InstanceDims& dims,
                       const WinogradConvGeometry& geometry) {
  // Products reach what those of "simd.gemm_conv" do; an axis of a tile is transformed in about two
  // operations for each of its points, and these are done at a part of that speed.
  constexpr double kProduct = 0.6;
  constexpr double kTransform = 0.15;
  const auto planes = static_cast<double>(winograd_planes(geometry.tile));
  const auto tiles = static_cast<double>(geometry.tiles());
  const auto src = static_cast<double>(geometry.src_channels);
  const auto dst = static_cast<double>(panel_elements(1, geometry.dst_channels));
  const double products = 2 * planes * tiles * src * dst;
  const double transforms = 8 * planes * tiles * (src + dst);
  Candidate candidate = conv_candidate(laid, "simd.winograd_conv", dims, products + transforms);
  candidate.options["tile"] = geometry.tile;
  candidate.efficiency = (products + transforms) / (products / kProduct + transforms / kTransform);
  const auto bytes = [](const Dims& sizes) {
    return numel(sizes) * static_cast<std::int64_t>(sizeof(float));
  };
  const Dims onnx = {geometry.dst_channels, geometry.src_channels, kWinogradTaps, kWinogradTaps};
  const Dims packed =
      padded_dims(winograd_weights_layout(), winograd_weights_dims(onnx, geometry.tile));
  candidate.packed_bytes += bytes(packed) - bytes(onnx);
  // The taps themselves are packed beside the planes, and hardly ever read.
  candidate.bytes_moved += static_cast<double>(bytes(packed) - 2 * bytes(onnx));
  return candidate;
}

}  // namespace

Offers offer_winograd_conv(const OfferRequest& request) {
  const auto& spec = request.draft.spec;
  if (request.options.exact)
    return refuse(
        fmt::format("{}: expected an algorithm with no wider error bound, found Winograd's",
                    spec.steps[0].op_type));
  const Dims& dst = request.dims.outputs[0];
  const Layout last = Layout::channels_last(static_cast<int>(dst.size()));
  const auto laid = conv_in_layouts(request.draft, {last, last});
  if (!laid) return refuse(laid.error());
  const auto plan = check(*laid, request.dims);
  if (!plan) return refuse(plan.error());
  const Dims& src = request.dims.inputs[operand_ref(spec, plan->src_operand).index];
  Offers offers;
  for (const std::int64_t tile : {4, 2})
    offers.candidates.push_back(
        candidate_of(*laid, request.dims, winograd_conv_geometry(*plan, src, dst, tile)));
  return offers;
}

void finish_winograd_conv(SpecDraft& draft, const Candidate& candidate) {
  const std::int64_t tile = candidate.options.at("tile");
  const std::size_t index = operand_ref(draft.spec, step_input(draft.spec.steps[0], 1)).index;
  artefact::TensorDecl& decl = draft.spec.constants[index];
  const Tensor onnx = draft.constants[index];
  const Dims packed = winograd_weights_dims(onnx.dims(), tile);
  decl.shape = to_shape(packed);
  decl.layout = winograd_weights_layout();
  auto planes = Tensor::zeros(decl.dtype, physical_dims(decl.layout, packed));
  TESSERA_CHECK(planes.has_value());
  pack_winograd_weights(static_cast<const float*>(onnx.data()), onnx.dims()[0], onnx.dims()[1],
                        tile, static_cast<float*>(planes->mutable_data()));
  draft.constants[index] = *std::move(planes);
}

}  // namespace tessera::backends::cpu
