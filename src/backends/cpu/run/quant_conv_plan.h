#pragma once

// The geometry of a quantised convolution, and how its weights lie.

#include "backends/cpu/run/conv_plan.h"
#include "backends/cpu/run/quant_plan.h"

namespace tessera::backends::cpu {

struct QuantConvPlan {
  QuantPlan quant;
  ConvPlan conv;  // kernel, strides, dilations, pads, group; channels-last
  bool depthwise = false;

  [[nodiscard]] std::int64_t taps() const { return numel(conv.kernel); }
};

// Errors: attributes and sizes that it cannot take. Needs the ONNX dims of the weights, or (packed
// depthwise ones) the attribute kernel_shape.
Result<QuantConvPlan> plan_quant_conv(const artefact::KernelSpec& spec, Constants constants);

// Over ONNX's dims, where the output channels of each group are filled up to whole panels: panels
// of 16 output channels, input channels by pairs: [O/16][k...][I/2][16][2].
Layout conv_panel_layout(std::size_t rank);
// Depthwise weights are a constant of dims [C, taps] padded to an even number: [taps/2][C][2].
Layout depthwise_layout();
// Over [K, N], or [N, K] where transposed: [N/16][K/2][16][2].
Layout product_panel_layout(bool transposed);

}  // namespace tessera::backends::cpu
