#pragma once

// "simd.product": a product whose second operand's columns are packed into panels.

#include "backends/cpu/run/panel_epilogue.h"
#include "backends/cpu/run/product_plan.h"

namespace tessera::backends::cpu {

// The order of a constant B that the kernel reads, over its dims in ONNX ([K, N], or [N, K] where
// transposed): panels of kProductColumns columns.
Layout panel_weights_layout(bool transpose_b);

struct PanelProductPlan {
  ProductPlan product;
  PanelEpilogue epilogue;
  bool bf16_weights = false;  // they are stored as bf16, and multiplied as fp32
};

// Errors: constants that are no matrix, an A that is transposed.
Result<PanelProductPlan> plan_panel_product(const artefact::KernelSpec& spec, Constants constants);

}  // namespace tessera::backends::cpu
