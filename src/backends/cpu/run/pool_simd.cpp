#include "backends/cpu/run/pool_simd.h"

#include <cmath>
#include <limits>

// The three variants of elementwise_simd.cpp.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/run/pool_simd.cpp"
// foreach_target.h must come before whatever includes highway.h.
// clang-format off
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace tessera::backends::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The largest of one window in the lanes from `lane` on. NaN are looked for beside the maximum,
// which has none or the last of them, as the processor likes.
template <typename Tag>
HWY_INLINE void window(Tag d, const MaxWindows& row, const ColumnRange& columns, std::size_t lane,
                       float* y) {
  auto best = hn::Set(d, -HUGE_VALF);
  auto nans = hn::IsNaN(best);
  const auto step =
      static_cast<std::ptrdiff_t>(row.dilation) * static_cast<std::ptrdiff_t>(row.lanes);
  const std::ptrdiff_t first =
      columns.first * static_cast<std::ptrdiff_t>(row.lanes) + static_cast<std::ptrdiff_t>(lane);
  for (const float* line : row.lines) {
    const float* at = line + first;
    for (std::int64_t k = 0; k < columns.count; ++k, at += step) {
      const auto next = hn::LoadU(d, at);
      nans = hn::Or(nans, hn::IsNaN(next));
      best = hn::Max(best, next);
    }
  }
  const auto nan = hn::Set(d, std::numeric_limits<float>::quiet_NaN());
  hn::StoreU(hn::IfThenElse(nans, nan, best), d, y + lane);
}

// Lanes in vectors, the last of which may overlap the one before it; few ones one by one.
void windows(const MaxWindows& row, float* y) {
  const hn::ScalableTag<float> d;
  const hn::CappedTag<float, 1> one;
  const std::size_t width = hn::Lanes(d);
  for (const ColumnRange& columns : row.columns) {
    std::size_t lane = 0;
    for (; lane + width <= row.lanes; lane += width) window(d, row, columns, lane, y);
    if (lane < row.lanes && row.lanes >= width) {
      window(d, row, columns, row.lanes - width, y);
    } else {
      for (; lane < row.lanes; ++lane) window(one, row, columns, lane, y);
    }
    y += row.lanes;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera::backends::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::backends::cpu {

HWY_EXPORT(windows);

void max_windows(const MaxWindows& row, float* y) {
  HWY_DYNAMIC_DISPATCH(windows)(row, y);
}

}  // namespace tessera::backends::cpu
#endif
