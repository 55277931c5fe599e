#include "backends/cpu/run/winograd_simd.h"

#include <algorithm>

#include "backends/cpu/run/winograd.h"

// The three variants of elementwise_simd.cpp.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/run/winograd_simd.cpp"
// foreach_target.h must come before whatever includes highway.h.
// clang-format off
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace tessera::backends::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::CappedTag<float, static_cast<std::size_t>(kProductColumns)>;
using V = hn::Vec<D>;

constexpr std::size_t kLanes = hn::MaxLanes(D());
constexpr auto kPanel = static_cast<std::size_t>(kProductColumns);

// One axis of m = 2: four elements of a source to the points 0, 1, -1, infinity; their products to
// two results.
struct TwoResults {
  static constexpr std::size_t kTile = 2;
  static constexpr std::size_t kPoints = 4;

  static HWY_INLINE void source(const V (&d)[kPoints], V (&out)[kPoints]) {
    out[0] = hn::Sub(d[2], d[0]);
    out[1] = hn::Add(d[2], d[1]);
    out[2] = hn::Sub(d[2], d[1]);
    out[3] = hn::Sub(d[3], d[1]);
  }
  static HWY_INLINE void result(const V (&m)[kPoints], V (&out)[kTile]) {
    out[0] = hn::Add(m[0], hn::Add(m[1], m[2]));
    out[1] = hn::Add(m[3], hn::Sub(m[1], m[2]));
  }
};

// One axis of m = 4, at the points 0, a, -a, b, -b, infinity: with each point stands its negative,
// whose even part is the same and whose odd part is the opposite.
struct FourResults {
  static constexpr std::size_t kTile = 4;
  static constexpr std::size_t kPoints = 6;
  static constexpr double kA = kWinogradNear;
  static constexpr double kB = kWinogradFar;

  static HWY_INLINE V constant(double value) { return hn::Set(D(), static_cast<float>(value)); }
  static HWY_INLINE void source(const V (&d)[kPoints], V (&out)[kPoints]) {
    const V sum = constant(kA * kA + kB * kB);
    const V product = constant(kA * kA * kB * kB);
    out[0] = hn::MulAdd(product, d[0], hn::NegMulAdd(sum, d[2], d[4]));
    const V even_a = hn::NegMulAdd(constant(kB * kB), d[2], d[4]);
    const V odd_a = hn::NegMulAdd(constant(kB * kB), d[1], d[3]);
    out[1] = hn::MulAdd(constant(kA), odd_a, even_a);
    out[2] = hn::NegMulAdd(constant(kA), odd_a, even_a);
    const V even_b = hn::NegMulAdd(constant(kA * kA), d[2], d[4]);
    const V odd_b = hn::NegMulAdd(constant(kA * kA), d[1], d[3]);
    out[3] = hn::MulAdd(constant(kB), odd_b, even_b);
    out[4] = hn::NegMulAdd(constant(kB), odd_b, even_b);
    out[5] = hn::MulAdd(product, d[1], hn::NegMulAdd(sum, d[3], d[5]));
  }
  static HWY_INLINE void result(const V (&m)[kPoints], V (&out)[kTile]) {
    const V even_a = hn::Add(m[1], m[2]);
    const V odd_a = hn::Sub(m[1], m[2]);
    const V even_b = hn::Add(m[3], m[4]);
    const V odd_b = hn::Sub(m[3], m[4]);
    out[0] = hn::Add(m[0], hn::Add(even_a, even_b));
    out[1] = hn::MulAdd(constant(kA), odd_a, hn::Mul(constant(kB), odd_b));
    out[2] = hn::MulAdd(constant(kA * kA), even_a, hn::Mul(constant(kB * kB), even_b));
    out[3] =
        hn::MulAdd(constant(kA * kA * kA), odd_a, hn::MulAdd(constant(kB * kB * kB), odd_b, m[5]));
  }
};

// kLanes channels: the columns of the tile first, then its rows.
template <typename A>
HWY_INLINE void source_vector(const float* const* pixels, std::int64_t channel, float* planes,
                              std::int64_t plane_stride) {
  const D d;
  constexpr std::size_t kPoints = A::kPoints;
  HWY_ALIGN float columns[kPoints * kPoints * kLanes];
  V in[kPoints];
  V out[kPoints];
#pragma GCC unroll 6
  for (std::size_t x = 0; x < kPoints; ++x) {
#pragma GCC unroll 6
    for (std::size_t y = 0; y < kPoints; ++y)
      in[y] = hn::LoadU(d, pixels[y * kPoints + x] + channel);
    A::source(in, out);
#pragma GCC unroll 6
    for (std::size_t y = 0; y < kPoints; ++y)
      hn::Store(out[y], d, columns + (y * kPoints + x) * kLanes);
  }
  for (std::size_t y = 0; y < kPoints; ++y) {
#pragma GCC unroll 6
    for (std::size_t x = 0; x < kPoints; ++x)
      in[x] = hn::Load(d, columns + (y * kPoints + x) * kLanes);
    A::source(in, out);
#pragma GCC unroll 6
    for (std::size_t x = 0; x < kPoints; ++x, planes += plane_stride) hn::StoreU(out[x], d, planes);
  }
}

template <typename A>
void source(const float* const* pixels, std::int64_t channels, float* planes,
            std::int64_t plane_stride) {
  constexpr std::size_t kPlanes = A::kPoints * A::kPoints;
  constexpr auto kWidth = static_cast<std::int64_t>(kLanes);
  std::int64_t channel = 0;
  for (; channel + kWidth <= channels; channel += kWidth)
    source_vector<A>(pixels, channel, planes + channel, plane_stride);
  if (channel == channels) return;
  // The last channels by way of whole vectors.
  HWY_ALIGN float values[kPlanes * kLanes] = {};
  HWY_ALIGN float transformed[kPlanes * kLanes];
  const float* copies[kPlanes];
  const std::int64_t count = channels - channel;
  for (std::size_t p = 0; p < kPlanes; ++p) {
    copies[p] = values + p * kLanes;
    std::copy_n(pixels[p] + channel, count, values + p * kLanes);
  }
  source_vector<A>(copies, 0, transformed, kWidth);
  for (std::size_t p = 0; p < kPlanes; ++p)
    std::copy_n(transformed + p * kLanes, count,
                planes + static_cast<std::int64_t>(p) * plane_stride + channel);
}

// kLanes channels of a tile into `results`, whose rows are kPanel floats apart. What it gives is
// zero where all of them are finite.
template <typename A>
HWY_INLINE V result_vector(const float* sums, std::int64_t plane_stride, const V bias,
                           float* results) {
  const D d;
  constexpr std::size_t kPoints = A::kPoints;
  HWY_ALIGN float columns[A::kTile * kPoints * kLanes];
  V in[kPoints];
  V out[A::kTile];
#pragma GCC unroll 6
  for (std::size_t x = 0; x < kPoints; ++x) {
    const float* at = sums + static_cast<std::int64_t>(x) * plane_stride;
#pragma GCC unroll 6
    for (std::size_t y = 0; y < kPoints; ++y)
      in[y] = hn::LoadU(d, at + static_cast<std::int64_t>(y * kPoints) * plane_stride);
    A::result(in, out);
#pragma GCC unroll 4
    for (std::size_t y = 0; y < A::kTile; ++y)
      hn::Store(out[y], d, columns + (y * kPoints + x) * kLanes);
  }
  V unusual = hn::Zero(d);
#pragma GCC unroll 4
  for (std::size_t y = 0; y < A::kTile; ++y) {
#pragma GCC unroll 6
    for (std::size_t x = 0; x < kPoints; ++x)
      in[x] = hn::Load(d, columns + (y * kPoints + x) * kLanes);
    A::result(in, out);
#pragma GCC unroll 4
    for (std::size_t x = 0; x < A::kTile; ++x) {
      unusual = hn::MulAdd(hn::Zero(d), out[x], unusual);
      hn::Store(hn::Add(out[x], bias), d, results + (y * A::kTile + x) * kPanel);
    }
  }
  return unusual;
}

// One pixel of the result; `values` in whole vectors.
HWY_INLINE void write_pixel(const WinogradResult& result, float* values, std::int64_t place) {
  const D d;
  HWY_ALIGN float addend[kPanel];
  const bool whole = result.channels == kProductColumns;
  const float* added = nullptr;
  if (result.addend != nullptr) {
    added = result.addend + place;
    if (!whole) {
      std::copy_n(added, result.channels, addend);
      std::fill(addend + result.channels, addend + kPanel, 0.0F);
      added = addend;
    }
  }
  float* to = whole ? result.dst + place : values;
#pragma GCC unroll 4
  for (std::size_t c = 0; c < kPanel; c += kLanes) {
    V value = hn::Load(d, values + c);
    if (added != nullptr) value = hn::Add(value, hn::LoadU(d, added + c));
    if (result.range != nullptr) {
      // As in product_simd.cpp: a NaN stands second and goes through.
      value =
          hn::Min(hn::Set(d, result.range->high), hn::Max(hn::Set(d, result.range->low), value));
    }
    hn::StoreU(value, d, to + c);
  }
  if (!whole) std::copy_n(values, result.channels, result.dst + place);
}

template <typename A>
bool result(const WinogradResult& result) {
  const D d;
  HWY_ALIGN float bias[kPanel] = {};
  if (result.bias != nullptr) std::copy_n(result.bias, result.channels, bias);
  HWY_ALIGN float values[A::kTile * A::kTile * kPanel];
  V unusual = hn::Zero(d);
#pragma GCC unroll 4
  for (std::size_t c = 0; c < kPanel; c += kLanes)
    unusual = hn::Add(unusual, result_vector<A>(result.sums + c, result.plane_stride,
                                                hn::Load(d, bias + c), values + c));
  if (!hn::AllTrue(d, hn::Eq(unusual, hn::Zero(d)))) return false;
  for (std::int64_t y = 0; y < result.rows; ++y) {
    for (std::int64_t x = 0; x < result.columns; ++x) {
      const std::int64_t pixel = y * static_cast<std::int64_t>(A::kTile) + x;
      write_pixel(result, values + pixel * kProductColumns,
                  y * result.row_stride + x * result.column_stride);
    }
  }
  return true;
}

void source_of(std::int64_t tile, const float* const* pixels, std::int64_t channels, float* planes,
               std::int64_t plane_stride) {
  if (tile == 2) return source<TwoResults>(pixels, channels, planes, plane_stride);
  source<FourResults>(pixels, channels, planes, plane_stride);
}

bool result_of(std::int64_t tile, const WinogradResult& part) {
  return tile == 2 ? result<TwoResults>(part) : result<FourResults>(part);
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera::backends::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::backends::cpu {

HWY_EXPORT(source_of);
HWY_EXPORT(result_of);

void winograd_source(std::int64_t tile, const float* const* pixels, std::int64_t channels,
                     float* planes, std::int64_t plane_stride) {
  HWY_DYNAMIC_DISPATCH(source_of)(tile, pixels, channels, planes, plane_stride);
}

bool winograd_result(std::int64_t tile, const WinogradResult& result) {
  return HWY_DYNAMIC_DISPATCH(result_of)(tile, result);
}

}  // namespace tessera::backends::cpu
#endif
