#pragma once

// Sums over shifted planes: the inner loop of convolutions in "simd.conv". Dispatched to this
// processor's instruction set at run time.

#include <cstddef>
#include <cstdint>

namespace tessera::backends::cpu {

// Weights of one term lie in panels of so many output channels at most.
constexpr std::int64_t kMaxPanelRows = 6;
// Elements that plane_sums reads and writes at most beyond what it is asked for.
constexpr std::int64_t kPlaneSlack = 128;

// One product of each sum: where its plane begins, and its weights, one for each row of the panel.
// In elements.
struct PlaneTerm {
  std::int32_t plane = 0;
  std::int32_t weight = 0;
};

// The products of a call, and what each row's sums start from (its bias).
struct PlaneTerms {
  const float* planes = nullptr;
  const float* weights = nullptr;
  const float* start = nullptr;  // one for each row
  const PlaneTerm* begin = nullptr;
  const PlaneTerm* end = nullptr;
};

// sums[r * sums_stride + i] = start[r] + the sum over the terms of weights[term.weight + r] *
// planes[term.plane + i], for each r < rows (1 to kMaxPanelRows) and i < count. What lies beyond
// `count` is computed from whatever stands there, up to kPlaneSlack elements.
void plane_sums(const PlaneTerms& terms, std::size_t rows, std::size_t count, float* sums,
                std::size_t sums_stride);

}  // namespace tessera::backends::cpu
