#include "backends/cpu/run/lrn_simd.h"

#include <cmath>

// The three variants of elementwise_simd.cpp.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/run/lrn_simd.cpp"
// foreach_target.h must come before whatever includes highway.h.
// clang-format off
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace tessera::backends::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// f(d, i) for vectors of full width over [0, count), then for single elements.
template <typename F>
HWY_INLINE void for_vectors(std::size_t count, const F& f) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) f(d, i);
  const hn::CappedTag<float, 1> one;
  for (; i < count; ++i) f(one, i);
}

// `power`: v ^ beta of a vector.
template <typename Power>
HWY_INLINE void row_by(const LrnRow& row, const LrnFactors& factors, float* y, const Power& power) {
  for_vectors(row.count, [&](auto d, std::size_t i) HWY_ATTR {
    auto squares = hn::Zero(d);
    for (std::int64_t w = 0; w < row.window; ++w) {
      const auto v = hn::LoadU(d, row.first_row + w * row.row_stride + i);
      squares = hn::MulAdd(v, v, squares);
    }
    const auto sum = hn::MulAdd(hn::Set(d, factors.scale), squares, hn::Set(d, factors.bias));
    hn::StoreU(hn::Div(hn::LoadU(d, row.x + i), power(d, sum)), d, y + i);
  });
}

// Any exponent, lane by lane.
template <typename D, typename V>
HWY_INLINE V power_of(D d, V base, float exponent) {
  HWY_ALIGN float lanes[hn::MaxLanes(D())];
  hn::Store(base, d, lanes);
  for (std::size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = std::pow(lanes[i], exponent);
  return hn::Load(d, lanes);
}

void row(const LrnRow& row, const LrnFactors& factors, float* y) {
  if (factors.beta == 0.75F) {  // that of nearly every model
    return row_by(row, factors, y, [](auto, auto sum) HWY_ATTR {
      const auto root = hn::Sqrt(sum);
      return hn::Mul(root, hn::Sqrt(root));
    });
  }
  row_by(row, factors, y,
         [beta = factors.beta](auto d, auto sum) HWY_ATTR { return power_of(d, sum, beta); });
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera::backends::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::backends::cpu {

HWY_EXPORT(row);

void lrn_row(const LrnRow& one, const LrnFactors& factors, float* y) {
  HWY_DYNAMIC_DISPATCH(row)(one, factors, y);
}

}  // namespace tessera::backends::cpu
#endif
