#pragma once

// "simd.product": a product with one constant matrix, whose columns are packed into panels.

#include "backends/cpu/run/product_plan.h"

namespace tessera::backends::cpu {

// The order of B that the kernel reads, over its dims in ONNX ([K, N], or [N, K] where transposed):
// panels of kProductColumns columns.
Layout panel_weights_layout(bool transpose_b);

// The bias and nothing else of an epilogue: the longest cut that leaves no post-op to anybody.
// Errors: no constant matrix of rank 2, an A that is transposed or not row-major.
Result<ProductPlan> plan_panel_product(const artefact::KernelSpec& spec, Constants constants);

}  // namespace tessera::backends::cpu
