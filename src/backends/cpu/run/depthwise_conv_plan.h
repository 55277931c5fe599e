#pragma once

// "simd.depthwise_conv": a convolution with one channel in each group, channels-last. Vectors go
// over channels, and taps outside of the source are left out: nothing is copied or padded.

#include "backends/cpu/run/conv_plan.h"

namespace tessera::backends::cpu {

// The order of the weights that the kernel reads, over ONNX's dims: [k...][channel].
Layout depthwise_weights_layout(std::size_t rank);

// Errors: operands and ranks that "simd.depthwise_conv" cannot take, with what it found. Layouts
// are not looked at.
Status check_depthwise_conv(const artefact::KernelSpec& spec, const ConvPlan& plan);

}  // namespace tessera::backends::cpu
