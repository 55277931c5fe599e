#include "backends/cpu/run/transpose_simd.h"

// The three variants of elementwise_simd.cpp.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/run/transpose_simd.cpp"
// foreach_target.h must come before whatever includes highway.h.
// clang-format off
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace tessera::backends::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

HWY_INLINE void square(const std::uint32_t* from, std::int64_t from_stride, std::uint32_t* to,
                       std::int64_t to_stride) {
  for (std::int64_t r = 0; r < 4; ++r)
    for (std::int64_t c = 0; c < 4; ++c) to[r * to_stride + c] = from[c * from_stride + r];
}

#else

using D = hn::FixedTag<std::uint32_t, 4>;
using Wide = hn::Repartition<std::uint64_t, D>;

// A square of four by four, through pairs.
HWY_INLINE void square(const std::uint32_t* from, std::int64_t from_stride, std::uint32_t* to,
                       std::int64_t to_stride) {
  const D d;
  const Wide wide;
  const auto a = hn::LoadU(d, from);
  const auto b = hn::LoadU(d, from + from_stride);
  const auto c = hn::LoadU(d, from + 2 * from_stride);
  const auto e = hn::LoadU(d, from + 3 * from_stride);
  const auto ab_low = hn::BitCast(wide, hn::InterleaveLower(d, a, b));
  const auto ab_high = hn::BitCast(wide, hn::InterleaveUpper(d, a, b));
  const auto ce_low = hn::BitCast(wide, hn::InterleaveLower(d, c, e));
  const auto ce_high = hn::BitCast(wide, hn::InterleaveUpper(d, c, e));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, ab_low, ce_low)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, ab_low, ce_low)), d, to + to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, ab_high, ce_high)), d, to + 2 * to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, ab_high, ce_high)), d, to + 3 * to_stride);
}

#endif

void transpose(const std::uint32_t* from, std::int64_t from_stride, std::uint32_t* to,
               std::int64_t to_stride, std::int64_t columns, std::int64_t rows) {
  constexpr std::int64_t kTile = 16;  // columns that fill a line of the cache
  const auto plain = [&](std::int64_t r, std::int64_t c) {
    to[r * to_stride + c] = from[c * from_stride + r];
  };
  for (std::int64_t c0 = 0; c0 < columns; c0 += kTile) {
    const std::int64_t c_end = std::min(columns, c0 + kTile);
    std::int64_t r = 0;
    for (; r + 4 <= rows; r += 4) {
      std::int64_t c = c0;
      for (; c + 4 <= c_end; c += 4)
        square(from + c * from_stride + r, from_stride, to + r * to_stride + c, to_stride);
      for (; c < c_end; ++c)
        for (std::int64_t i = 0; i < 4; ++i) plain(r + i, c);
    }
    for (; r < rows; ++r)
      for (std::int64_t c = c0; c < c_end; ++c) plain(r, c);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera::backends::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::backends::cpu {

HWY_EXPORT(transpose);

void transpose_plane(const std::uint32_t* from, std::int64_t from_stride, std::uint32_t* to,
                     std::int64_t to_stride, std::int64_t columns, std::int64_t rows) {
  HWY_DYNAMIC_DISPATCH(transpose)(from, from_stride, to, to_stride, columns, rows);
}

}  // namespace tessera::backends::cpu
#endif
