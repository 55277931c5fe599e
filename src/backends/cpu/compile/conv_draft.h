#pragma once

// What the ways to run a convolution share: "onednn.conv" (conv_offers.cpp), "simd.conv"
// (plane_conv_offers.cpp), "simd.gemm_conv" (gemm_conv_offers.cpp), "simd.winograd_conv"
// (winograd_conv_offers.cpp) and "simd.depthwise_conv" (depthwise_conv_offers.cpp).

#include "backends/cpu/compile/families.h"
#include "backends/cpu/run/conv_plan.h"

namespace tessera::backends::cpu {

// Layouts of source and result that make one way to run it.
struct ConvWay {
  Layout src;
  Layout dst;
};

// The draft in a way's layouts, the bias and the constants of the epilogue too. Errors: operands
// that cannot lie so.
Result<SpecDraft> conv_in_layouts(const SpecDraft& draft, const ConvWay& way);

// The candidate of a draft in layouts, with its traffic and what it computes.
Candidate conv_candidate(const SpecDraft& laid, std::string kernel, const InstanceDims& dims,
                         double product_flops);

// "simd.conv" in each pair of layouts that it is good for; a refusal where there is none, or where
// the library multiplies as well or better. `alone`: the library has nothing, or nothing that it
// generates for the shape.
Offers offer_plane_conv(const OfferRequest& request, const ConvPlan& plan, double product_flops,
                        bool alone);
// Packs its weights.
void finish_plane_conv(SpecDraft& draft);

// "simd.gemm_conv", channels last; a refusal where it cannot take the convolution.
Offers offer_gemm_conv(const OfferRequest& request, double product_flops);
void finish_gemm_conv(SpecDraft& draft);

// "simd.winograd_conv" in tiles of 4 and of 2, channels last; a refusal where it cannot take the
// convolution, or where the user asks for exact algorithms.
Offers offer_winograd_conv(const OfferRequest& request);
// Transforms and packs its weights.
void finish_winograd_conv(SpecDraft& draft, const Candidate& candidate);

// "simd.depthwise_conv" where the convolution has one channel in each group; a refusal where it
// cannot take that.
Offers offer_depthwise_conv(const OfferRequest& request, const ConvPlan& plan,
                            double product_flops);
// Packs its weights.
Status finish_depthwise_conv(SpecDraft& draft);

}  // namespace tessera::backends::cpu
