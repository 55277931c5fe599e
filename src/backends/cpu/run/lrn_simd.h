#pragma once

// Vectorised loops of LRN, dispatched to this processor's instruction set at run time.

#include <cstddef>
#include <cstdint>

namespace tessera::backends::cpu {

// y = x / (bias + scale * sum of squares) ^ beta.
struct LrnFactors {
  float scale = 0;  // alpha / size
  float beta = 0;
  float bias = 0;
};

// One channel of `count` elements, which do not overlap y: `window` rows of the same length are
// summed, the first at `first_row`, the others `row_stride` on.
struct LrnRow {
  const float* x = nullptr;
  const float* first_row = nullptr;
  std::ptrdiff_t row_stride = 0;
  std::int64_t window = 1;
  std::size_t count = 0;
};
void lrn_row(const LrnRow& row, const LrnFactors& factors, float* y);

}  // namespace tessera::backends::cpu
