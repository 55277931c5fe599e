// Depthwise convolutions by own code, channels-last.

#include <fmt/format.h>

#include <algorithm>

#include "backends/cpu/compile/conv_draft.h"
#include "backends/cpu/run/cpu_features.h"
#include "backends/cpu/run/depthwise_conv_plan.h"

namespace tessera::backends::cpu {
namespace {

// Shares of the peak on the yardstick of the library's ones (conv_offers.cpp, whole models), where
// a depthwise convolution counts 0.3: that by the library's time over the time of this code in
// `./dev bench kernels`, on one thread of a first generation EPYC. On a yardstick of their own they
// would make plans convert layouts for nothing.
double share_of_row(const ConvPlan& plan, std::int64_t columns) {
  const std::int64_t taps = plan.kernel.back();
  const std::int64_t stride = plan.strides.back();
  constexpr double kAny = 0.2;
  if (columns < 4) return kAny * static_cast<double>(columns) / 4;
  if (plan.dilations.back() > 1 || stride > 2) return kAny;
  if (taps == 3) return stride == 1 ? 0.3 : 0.26;
  if (taps == 5) return stride == 1 ? 0.34 : 0.28;
  return kAny;
}

double efficiency(const ConvPlan& plan, const Dims& dst) {
  const std::int64_t lanes = isa() == Isa::kAvx512 ? 16 : 8;
  const std::int64_t channels = dst[1];
  const std::int64_t vectors = channels < lanes ? channels : (channels + lanes - 1) / lanes;
  return share_of_row(plan, dst.back()) * static_cast<double>(channels) /
         static_cast<double>(vectors * lanes);
}

}  // namespace

Offers offer_depthwise_conv(const OfferRequest& request, const ConvPlan& plan,
                            double product_flops) {
  Offers offers;
  if (!plan.depthwise()) return offers;
  const auto candidate = [&]() -> Result<Candidate> {
    TESSERA_TRY(check_depthwise_conv(request.draft.spec, plan));
    const Dims& dst = request.dims.outputs[0];
    const Layout last = Layout::channels_last(static_cast<int>(dst.size()));
    TESSERA_ASSIGN(const SpecDraft laid, conv_in_layouts(request.draft, {last, last}));
    TESSERA_TRY(check_tail(laid, request.dims, 1));
    Candidate result = conv_candidate(laid, "simd.depthwise_conv", request.dims, product_flops);
    result.efficiency = efficiency(plan, dst);
    return result;
  }();
  if (!candidate)
    return refuse(
        fmt::format("{}: {}", describe_steps(request.draft.spec), candidate.error().to_string()));
  offers.candidates.push_back(*candidate);
  return offers;
}

Status finish_depthwise_conv(SpecDraft& draft) {
  const OperandRef weights = operand_ref(draft.spec, step_input(draft.spec.steps[0], 1));
  const std::size_t rank = draft.spec.constants[weights.index].shape.size();
  relayout_constant(draft, weights.index, depthwise_weights_layout(rank));
  return {};
}

}  // namespace tessera::backends::cpu
