#pragma once

// One row of a softmax, shared by the kernels that have one.

#include <cmath>

#include "backends/cpu/run/elementwise_simd.h"

namespace tessera::backends::cpu {

// y may be x. A row of minus infinities gives NaN, as the operator does; with `log`, y = its log.
inline void softmax_row(const float* x, float* y, std::size_t count, bool log) {
  const float top = simd_max(x, count);
  const float shift = std::isfinite(top) ? top : std::isnan(top) ? top : top > 0 ? top : 0.0F;
  if (!log) {
    const float total = simd_exp_sum(x, y, count, shift);
    return run_simd(SimdOp::kScaleShift, y, nullptr, y, count, 1 / total, 0);
  }
  run_simd(SimdOp::kScaleShift, x, nullptr, y, count, 1, -shift);
  float total = 0;
  for (std::size_t i = 0; i < count; ++i) total += std::exp(y[i]);
  run_simd(SimdOp::kScaleShift, y, nullptr, y, count, 1, -std::log(total));
}

}  // namespace tessera::backends::cpu
