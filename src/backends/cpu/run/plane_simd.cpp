#include "backends/cpu/run/plane_simd.h"

#include <algorithm>

// The three variants of elementwise_simd.cpp.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/run/plane_simd.cpp"
// foreach_target.h must come before whatever includes highway.h.
// clang-format off
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace tessera::backends::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;

// Sums that fit into the registers beside a term's plane and one broadcast weight.
constexpr std::size_t kSums = HWY_MAX_BYTES == 64 ? 24 : 12;

constexpr std::size_t vectors_for(std::size_t rows) {
  return std::min<std::size_t>(8, kSums / rows);
}

// Every loop over sums is unrolled: one that is not would keep them in memory.
// R rows of N vectors from position `at` on.
template <std::size_t R, std::size_t N>
HWY_INLINE void tile(const PlaneTerms& terms, std::size_t at, float* sums,
                     std::size_t sums_stride) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  hn::Vec<D> sum[R][N];
#pragma GCC unroll 8
  for (std::size_t r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (std::size_t v = 0; v < N; ++v) sum[r][v] = hn::Set(d, terms.start[r]);
  const float* planes = terms.planes + at;
  for (const PlaneTerm* term = terms.begin; term != terms.end; ++term) {
    const float* plane = planes + term->plane;
    const float* weight = terms.weights + term->weight;
    hn::Vec<D> values[N];
#pragma GCC unroll 8
    for (std::size_t v = 0; v < N; ++v) values[v] = hn::LoadU(d, plane + v * lanes);
#pragma GCC unroll 8
    for (std::size_t r = 0; r < R; ++r) {
      const auto scale = hn::Set(d, weight[r]);
#pragma GCC unroll 8
      for (std::size_t v = 0; v < N; ++v) sum[r][v] = hn::MulAdd(scale, values[v], sum[r][v]);
    }
  }
#pragma GCC unroll 8
  for (std::size_t r = 0; r < R; ++r)
#pragma GCC unroll 8
    for (std::size_t v = 0; v < N; ++v)
      hn::StoreU(sum[r][v], d, sums + r * sums_stride + at + v * lanes);
}

// Tiles of N vectors, then what is left in tiles of half as many.
template <std::size_t R, std::size_t N>
void tiles(const PlaneTerms& terms, std::size_t at, std::size_t count, float* sums,
           std::size_t sums_stride) {
  const std::size_t width = N * hn::Lanes(D());
  while (at < count && (N == 1 || count - at > width / 2)) {
    tile<R, N>(terms, at, sums, sums_stride);
    at += width;
  }
  if constexpr (N > 1) tiles<R, N / 2>(terms, at, count, sums, sums_stride);
}

template <std::size_t R>
void rows_of(const PlaneTerms& terms, std::size_t count, float* sums, std::size_t sums_stride) {
  tiles<R, vectors_for(R)>(terms, 0, count, sums, sums_stride);
}

void all_rows(const PlaneTerms& terms, std::size_t rows, std::size_t count, float* sums,
              std::size_t sums_stride) {
  switch (rows) {
    case 1: return rows_of<1>(terms, count, sums, sums_stride);
    case 2: return rows_of<2>(terms, count, sums, sums_stride);
    case 3: return rows_of<3>(terms, count, sums, sums_stride);
    case 4: return rows_of<4>(terms, count, sums, sums_stride);
    case 5: return rows_of<5>(terms, count, sums, sums_stride);
    default: return rows_of<6>(terms, count, sums, sums_stride);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera::backends::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::backends::cpu {

HWY_EXPORT(all_rows);

void plane_sums(const PlaneTerms& terms, std::size_t rows, std::size_t count, float* sums,
                std::size_t sums_stride) {
  HWY_DYNAMIC_DISPATCH(all_rows)(terms, rows, count, sums, sums_stride);
}

}  // namespace tessera::backends::cpu
#endif
