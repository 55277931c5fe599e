#pragma once

// The part of an epilogue that products with packed columns compute on their sums.

#include <optional>

#include "backends/cpu/run/conv_plan.h"
#include "backends/cpu/run/product_simd.h"

namespace tessera::backends::cpu {

// After the bias: a tensor of the result's dims is added, then values are kept in a range.
struct PanelEpilogue {
  std::optional<std::int32_t> addend;  // operand number
  std::optional<PanelRange> range;
};

// The longest cut of an epilogue that is such a one. `accepts_bias` and `channel` as in
// plan_epilogue. `epilogue` becomes the cut itself.
PanelEpilogue plan_panel_epilogue(const artefact::KernelSpec& spec, Constants constants,
                                  bool accepts_bias, std::size_t channel, EpiloguePlan& epilogue);

// A convolution in channels-last layouts that multiplies with packed columns.
struct PanelConvPlan {
  ConvPlan conv;
  PanelEpilogue epilogue;
};

// Errors: as of plan_conv and check_own_conv; one that is transposed, layouts that are not
// channels-last, weights of other channels.
Result<PanelConvPlan> plan_panel_conv(const artefact::KernelSpec& spec, Constants constants);

}  // namespace tessera::backends::cpu
