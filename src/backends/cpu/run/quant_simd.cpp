#include "backends/cpu/run/quant_simd.h"

#include <algorithm>
#include <array>
#include <cstring>

// The three variants of elementwise_simd.cpp; products have plain loops for the baseline.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/run/quant_simd.cpp"
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
template <typename D, typename F>
HWY_INLINE void for_vectors(D d, std::size_t count, const F& f) {
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) f(d, i);
  const hn::CappedTag<hn::TFromD<D>, 1> one;
  for (; i < count; ++i) f(one, i);
}

template <typename T>
void widen_typed(const T* x, std::int32_t zero, std::int16_t* y, std::size_t count) {
  for_vectors(hn::ScalableTag<std::int16_t>(), count, [=](auto d, std::size_t i) HWY_ATTR {
    const auto wide = hn::PromoteTo(d, hn::LoadU(hn::Rebind<T, decltype(d)>(), x + i));
    hn::StoreU(hn::Sub(wide, hn::Set(d, static_cast<std::int16_t>(zero))), d, y + i);
  });
}

template <typename T>
void dequantize_typed(const T* x, std::int32_t zero, float scale, float* y, const Piece& piece) {
  for (std::size_t r = 0; r < piece.rows; ++r, x += piece.x_stride, y += piece.y_stride) {
    for_vectors(hn::ScalableTag<float>(), piece.columns, [=](auto d, std::size_t i) HWY_ATTR {
      const hn::RebindToSigned<decltype(d)> ints;
      const auto wide = hn::PromoteTo(ints, hn::LoadU(hn::Rebind<T, decltype(d)>(), x + i));
      const auto centred = hn::Sub(wide, hn::Set(ints, zero));
      hn::StoreU(hn::Mul(hn::ConvertTo(d, centred), hn::Set(d, scale)), d, y + i);
    });
  }
}

// Divides, as the operator says: a product with the reciprocal rounds otherwise.
template <typename T>
void quantize_typed(const float* x, float scale, std::int32_t zero, T* y, const Piece& piece) {
  const auto low = static_cast<float>(static_cast<std::int32_t>(hwy::LimitsMin<T>()) - zero);
  const auto high = static_cast<float>(static_cast<std::int32_t>(hwy::LimitsMax<T>()) - zero);
  for (std::size_t r = 0; r < piece.rows; ++r, x += piece.x_stride, y += piece.y_stride) {
    for_vectors(hn::ScalableTag<float>(), piece.columns, [=](auto d, std::size_t i) HWY_ATTR {
      const hn::RebindToSigned<decltype(d)> ints;
      const auto real = hn::Div(hn::LoadU(d, x + i), hn::Set(d, scale));
      const auto number = hn::IfThenElseZero(hn::Eq(real, real), real);
      const auto kept = hn::Min(hn::Max(number, hn::Set(d, low)), hn::Set(d, high));
      const auto moved = hn::Add(hn::NearestInt(kept), hn::Set(ints, zero));
      const hn::Rebind<T, decltype(d)> bytes;
      hn::StoreU(hn::DemoteTo(bytes, moved), bytes, y + i);
    });
  }
}

void scale_all(const std::int32_t* sums, const float* scale, const float* bias, float* y,
               const Piece& piece) {
  for (std::size_t r = 0; r < piece.rows; ++r, sums += piece.x_stride, y += piece.y_stride) {
    for_vectors(hn::ScalableTag<float>(), piece.columns, [=](auto d, std::size_t i) HWY_ATTR {
      const hn::RebindToSigned<decltype(d)> ints;
      const auto real = hn::ConvertTo(d, hn::LoadU(ints, sums + i));
      const auto scaled = hn::Mul(real, hn::LoadU(d, scale + i));
      hn::StoreU(hn::Add(scaled, hn::LoadU(d, bias + i)), d, y + i);
    });
  }
}

template <typename T>
void requantize_typed(const std::int32_t* sums, const float* scale, const float* bias,
                      std::int32_t zero, T* y, const Piece& piece) {
  const auto low = static_cast<float>(static_cast<std::int32_t>(hwy::LimitsMin<T>()) - zero);
  const auto high = static_cast<float>(static_cast<std::int32_t>(hwy::LimitsMax<T>()) - zero);
  for (std::size_t r = 0; r < piece.rows; ++r, sums += piece.x_stride, y += piece.y_stride) {
    for_vectors(hn::ScalableTag<float>(), piece.columns, [=](auto d, std::size_t i) HWY_ATTR {
      const hn::RebindToSigned<decltype(d)> ints;
      const auto sum = hn::ConvertTo(d, hn::LoadU(ints, sums + i));
      const auto real = hn::Add(hn::Mul(sum, hn::LoadU(d, scale + i)), hn::LoadU(d, bias + i));
      const auto number = hn::IfThenElseZero(hn::Eq(real, real), real);
      const auto kept = hn::Min(hn::Max(number, hn::Set(d, low)), hn::Set(d, high));
      const hn::Rebind<T, decltype(d)> bytes;
      hn::StoreU(hn::DemoteTo(bytes, hn::Add(hn::NearestInt(kept), hn::Set(ints, zero))), bytes,
                 y + i);
    });
  }
}

// ---- Products -----------------------------------------------------------------------------------

#if HWY_TARGET == HWY_SCALAR
constexpr std::size_t kRows = 1;

template <std::size_t R, typename W>
void product_rows(const std::int16_t* a, std::ptrdiff_t a_stride, const W* panel, std::size_t pairs,
                  std::int32_t* sums) {
  std::fill(sums, sums + R * kPanelColumns, 0);
  for (std::size_t r = 0; r < R; ++r)
    for (std::size_t k = 0; k < 2 * pairs; ++k)
      for (std::size_t c = 0; c < kPanelColumns; ++c)
        sums[r * kPanelColumns + c] +=
            a[static_cast<std::ptrdiff_t>(r) * a_stride + static_cast<std::ptrdiff_t>(k)] *
            panel[(k / 2 * kPanelColumns + c) * 2 + k % 2];
}
#else
using Sums = hn::CappedTag<std::int32_t, kPanelColumns>;
using Words = hn::Repartition<std::int16_t, Sums>;
constexpr std::size_t kVectors = kPanelColumns / hn::MaxLanes(Sums());
// Rows whose sums fit into the registers beside a panel's row and one broadcast.
constexpr std::size_t kRows = kVectors == 1 ? 12 : kVectors == 2 ? 6 : 2;

HWY_INLINE hn::Vec<Sums> add_products(hn::Vec<Words> a, hn::Vec<Words> b, hn::Vec<Sums> sum) {
  auto unused = hn::Zero(Sums());
  return hn::ReorderWidenMulAccumulate(Sums(), a, b, sum, unused);
}

HWY_INLINE hn::Vec<Words> load_words(const std::int16_t* at) {
  return hn::LoadU(Words(), at);
}
HWY_INLINE hn::Vec<Words> load_words(const std::int8_t* at) {
  return hn::PromoteTo(Words(), hn::LoadU(hn::Rebind<std::int8_t, Words>(), at));
}

template <std::size_t R, typename W>
HWY_INLINE void product_rows(const std::int16_t* a, std::ptrdiff_t a_stride, const W* panel,
                             std::size_t pairs, std::int32_t* sums) {
  const Sums d;
  constexpr std::size_t kLanes = hn::MaxLanes(Sums());
  hn::Vec<Sums> sum[R][kVectors];
  for (auto& row : sum)
    for (auto& vector : row) vector = hn::Zero(d);
  for (std::size_t p = 0; p < pairs; ++p) {
    hn::Vec<Words> weights[kVectors];
#pragma GCC unroll 4
    for (std::size_t v = 0; v < kVectors; ++v)
      weights[v] = load_words(panel + p * 2 * kPanelColumns + v * 2 * kLanes);
#pragma GCC unroll 12
    for (std::size_t r = 0; r < R; ++r) {
      std::int32_t pair = 0;
      std::memcpy(&pair, a + static_cast<std::ptrdiff_t>(r) * a_stride + 2 * p, sizeof pair);
      const auto both = hn::BitCast(Words(), hn::Set(d, pair));
#pragma GCC unroll 4
      for (std::size_t v = 0; v < kVectors; ++v)
        sum[r][v] = add_products(both, weights[v], sum[r][v]);
    }
  }
  for (std::size_t r = 0; r < R; ++r)
    for (std::size_t v = 0; v < kVectors; ++v)
      hn::StoreU(sum[r][v], d, sums + r * kPanelColumns + v * kLanes);
}
#endif

// R rows; `a` and `sums` move on behind them. Gives R.
template <std::size_t R, typename W>
std::size_t take_rows(const std::int16_t*& a, std::ptrdiff_t a_stride, const W* panel,
                      std::size_t pairs, std::int32_t*& sums) {
  product_rows<R>(a, a_stride, panel, pairs, sums);
  a += static_cast<std::ptrdiff_t>(R) * a_stride;
  sums += R * kPanelColumns;
  return R;
}

template <typename W>
void product_typed(const std::int16_t* a, std::ptrdiff_t a_stride, std::size_t rows, const W* panel,
                   std::size_t pairs, std::int32_t* sums) {
  while (rows >= kRows) rows -= take_rows<kRows>(a, a_stride, panel, pairs, sums);
  while (rows >= 4) rows -= take_rows<4>(a, a_stride, panel, pairs, sums);
  while (rows >= 2) rows -= take_rows<2>(a, a_stride, panel, pairs, sums);
  if (rows == 1) product_rows<1>(a, a_stride, panel, pairs, sums);
}

#if HWY_TARGET != HWY_SCALAR
// The same for any width of vector: two taps side by side in the halves of 32 bits.
template <typename D>
HWY_INLINE hn::Vec<D> pair_products(D d, hn::Vec<D> a, hn::Vec<D> b, hn::Vec<D> sum) {
  const hn::Repartition<std::int16_t, D> words;
  auto unused = hn::Zero(d);
  return hn::ReorderWidenMulAccumulate(d, hn::BitCast(words, a), hn::BitCast(words, b), sum,
                                       unused);
}

void depthwise_block(const std::uint8_t* const* taps, std::size_t tap_count, std::int32_t flip,
                     std::int32_t zero, const std::int32_t* weights, std::size_t channels,
                     std::size_t begin, std::size_t vectors, std::int32_t* sums) {
  constexpr std::size_t kMost = 4;
  const hn::ScalableTag<std::int32_t> d;
  const hn::Repartition<std::int16_t, decltype(d)> words;
  const hn::Rebind<std::uint8_t, decltype(d)> bytes;
  const std::size_t lanes = hn::Lanes(d);
  const auto flips = hn::Set(d, flip * 0x10001);
  const auto zeros = hn::Set(words, static_cast<std::int16_t>(zero));
  hn::Vec<decltype(d)> sum[kMost];
  for (auto& one : sum) one = hn::Zero(d);
  for (std::size_t t = 0; t < tap_count; t += 2) {
    for (std::size_t v = 0; v < vectors; ++v) {
      const std::size_t at = begin + v * lanes;
      const auto first = hn::PromoteTo(d, hn::LoadU(bytes, taps[t] + at));
      const auto second = hn::PromoteTo(d, hn::LoadU(bytes, taps[t + 1] + at));
      const auto both = hn::Xor(hn::Or(first, hn::ShiftLeft<16>(second)), flips);
      const auto centred = hn::BitCast(d, hn::Sub(hn::BitCast(words, both), zeros));
      sum[v] = pair_products(d, centred, hn::LoadU(d, weights + t / 2 * channels + at), sum[v]);
    }
  }
  for (std::size_t v = 0; v < vectors; ++v) hn::StoreU(sum[v], d, sums + begin + v * lanes);
}
#endif

void depthwise_all(const std::uint8_t* const* taps, std::size_t tap_count, std::int32_t flip,
                   std::int32_t zero, const std::int16_t* weights, std::size_t channels,
                   std::int32_t* sums) {
  std::size_t c = 0;
#if HWY_TARGET != HWY_SCALAR
  const std::size_t lanes = hn::Lanes(hn::ScalableTag<std::int32_t>());
  const auto* pairs = reinterpret_cast<const std::int32_t*>(weights);
  while (c + lanes <= channels) {
    const std::size_t vectors = std::min<std::size_t>((channels - c) / lanes, 4);
    depthwise_block(taps, tap_count, flip, zero, pairs, channels, c, vectors, sums);
    c += vectors * lanes;
  }
#endif
  for (; c < channels; ++c) {
    std::int32_t sum = 0;
    for (std::size_t t = 0; t < tap_count; ++t)
      sum += ((static_cast<std::int32_t>(taps[t][c]) ^ flip) - zero) *
             weights[(t / 2 * channels + c) * 2 + t % 2];
    sums[c] = sum;
  }
}

// ---- Pooling ------------------------------------------------------------------------------------

template <typename T>
void max_typed(const T* x, T* y, std::size_t count) {
  for_vectors(hn::ScalableTag<T>(), count, [=](auto d, std::size_t i) HWY_ATTR {
    hn::StoreU(hn::Max(hn::LoadU(d, x + i), hn::LoadU(d, y + i)), d, y + i);
  });
}

template <typename T>
void sums_typed(const T* x, std::int32_t* sums, std::size_t count) {
  for_vectors(hn::ScalableTag<std::int32_t>(), count, [=](auto d, std::size_t i) HWY_ATTR {
    const auto wide = hn::PromoteTo(d, hn::LoadU(hn::Rebind<T, decltype(d)>(), x + i));
    hn::StoreU(hn::Add(hn::LoadU(d, sums + i), wide), d, sums + i);
  });
}

FloatRange range_of(const float* x, std::size_t count) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  auto low = hn::Zero(d);
  auto high = hn::Zero(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto v = hn::LoadU(d, x + i);
    low = hn::Min(v, low);
    high = hn::Max(v, high);
  }
  FloatRange range{hn::GetLane(hn::MinOfLanes(d, low)), hn::GetLane(hn::MaxOfLanes(d, high))};
  for (; i < count; ++i) {
    range.low = std::min(range.low, x[i]);
    range.high = std::max(range.high, x[i]);
  }
  return range;
}

// Dispatch knows functions, not templates.
void widen_u8(const std::uint8_t* x, std::int32_t zero, std::int16_t* y, std::size_t count) {
  widen_typed(x, zero, y, count);
}
void widen_s8(const std::int8_t* x, std::int32_t zero, std::int16_t* y, std::size_t count) {
  widen_typed(x, zero, y, count);
}
void dequantize_u8(const std::uint8_t* x, std::int32_t zero, float scale, float* y,
                   const Piece& piece) {
  dequantize_typed(x, zero, scale, y, piece);
}
void dequantize_s8(const std::int8_t* x, std::int32_t zero, float scale, float* y,
                   const Piece& piece) {
  dequantize_typed(x, zero, scale, y, piece);
}
void quantize_u8(const float* x, float scale, std::int32_t zero, std::uint8_t* y,
                 const Piece& piece) {
  quantize_typed(x, scale, zero, y, piece);
}
void quantize_s8(const float* x, float scale, std::int32_t zero, std::int8_t* y,
                 const Piece& piece) {
  quantize_typed(x, scale, zero, y, piece);
}
void requantize_u8(const std::int32_t* sums, const float* scale, const float* bias,
                   std::int32_t zero, std::uint8_t* y, const Piece& piece) {
  requantize_typed(sums, scale, bias, zero, y, piece);
}
void requantize_s8(const std::int32_t* sums, const float* scale, const float* bias,
                   std::int32_t zero, std::int8_t* y, const Piece& piece) {
  requantize_typed(sums, scale, bias, zero, y, piece);
}
void product_s8(const std::int16_t* a, std::ptrdiff_t a_stride, std::size_t rows,
                const std::int8_t* panel, std::size_t pairs, std::int32_t* sums) {
  product_typed(a, a_stride, rows, panel, pairs, sums);
}
void product_s16(const std::int16_t* a, std::ptrdiff_t a_stride, std::size_t rows,
                 const std::int16_t* panel, std::size_t pairs, std::int32_t* sums) {
  product_typed(a, a_stride, rows, panel, pairs, sums);
}
void max_u8(const std::uint8_t* x, std::uint8_t* y, std::size_t count) {
  max_typed(x, y, count);
}
void max_s8(const std::int8_t* x, std::int8_t* y, std::size_t count) {
  max_typed(x, y, count);
}
void sums_u8(const std::uint8_t* x, std::int32_t* sums, std::size_t count) {
  sums_typed(x, sums, count);
}
void sums_s8(const std::int8_t* x, std::int32_t* sums, std::size_t count) {
  sums_typed(x, sums, count);
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera::backends::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::backends::cpu {

HWY_EXPORT(widen_u8);
HWY_EXPORT(widen_s8);
HWY_EXPORT(dequantize_u8);
HWY_EXPORT(dequantize_s8);
HWY_EXPORT(quantize_u8);
HWY_EXPORT(quantize_s8);
HWY_EXPORT(requantize_u8);
HWY_EXPORT(requantize_s8);
HWY_EXPORT(scale_all);
HWY_EXPORT(product_s8);
HWY_EXPORT(product_s16);
HWY_EXPORT(depthwise_all);
HWY_EXPORT(max_u8);
HWY_EXPORT(max_s8);
HWY_EXPORT(sums_u8);
HWY_EXPORT(sums_s8);
HWY_EXPORT(range_of);

namespace {

template <typename T>
const T* typed(const std::byte* data) {
  return reinterpret_cast<const T*>(data);
}
template <typename T>
T* typed(std::byte* data) {
  return reinterpret_cast<T*>(data);
}

}  // namespace

void widen_centred(DType dtype, const std::byte* x, std::int32_t zero, std::int16_t* y,
                   std::size_t count) {
  if (dtype == DType::kInt8)
    HWY_DYNAMIC_DISPATCH(widen_s8)(typed<std::int8_t>(x), zero, y, count);
  else
    HWY_DYNAMIC_DISPATCH(widen_u8)(typed<std::uint8_t>(x), zero, y, count);
}

void dequantize(DType dtype, const std::byte* x, std::int32_t zero, float scale, float* y,
                const Piece& piece) {
  if (dtype == DType::kInt8)
    HWY_DYNAMIC_DISPATCH(dequantize_s8)(typed<std::int8_t>(x), zero, scale, y, piece);
  else
    HWY_DYNAMIC_DISPATCH(dequantize_u8)(typed<std::uint8_t>(x), zero, scale, y, piece);
}

void quantize(DType dtype, const float* x, float scale, std::int32_t zero, std::byte* y,
              const Piece& piece) {
  if (dtype == DType::kInt8)
    HWY_DYNAMIC_DISPATCH(quantize_s8)(x, scale, zero, typed<std::int8_t>(y), piece);
  else
    HWY_DYNAMIC_DISPATCH(quantize_u8)(x, scale, zero, typed<std::uint8_t>(y), piece);
}

void scale_sums(const std::int32_t* sums, const float* scale, const float* bias, float* y,
                const Piece& piece) {
  HWY_DYNAMIC_DISPATCH(scale_all)(sums, scale, bias, y, piece);
}

void requantize(DType dtype, const std::int32_t* sums, const float* scale, const float* bias,
                std::int32_t zero, std::byte* y, const Piece& piece) {
  if (dtype == DType::kInt8)
    HWY_DYNAMIC_DISPATCH(requantize_s8)(sums, scale, bias, zero, typed<std::int8_t>(y), piece);
  else
    HWY_DYNAMIC_DISPATCH(requantize_u8)(sums, scale, bias, zero, typed<std::uint8_t>(y), piece);
}

void panel_product(const std::int16_t* a, std::ptrdiff_t a_stride, std::size_t rows,
                   const std::byte* panel, bool wide, std::size_t pairs, std::int32_t* sums) {
  if (wide)
    HWY_DYNAMIC_DISPATCH(product_s16)(a, a_stride, rows, typed<std::int16_t>(panel), pairs, sums);
  else
    HWY_DYNAMIC_DISPATCH(product_s8)(a, a_stride, rows, typed<std::int8_t>(panel), pairs, sums);
}

void depthwise_sums(DType dtype, const std::byte* const* taps, std::size_t tap_count,
                    std::int32_t zero, const std::int16_t* weights, std::size_t channels,
                    std::int32_t* sums) {
  // A signed byte with its highest bit flipped is the unsigned one of its value plus 128.
  const std::int32_t flip = dtype == DType::kInt8 ? 128 : 0;
  HWY_DYNAMIC_DISPATCH(depthwise_all)
  (reinterpret_cast<const std::uint8_t* const*>(taps), tap_count, flip, zero + flip, weights,
   channels, sums);
}

void accumulate_max(DType dtype, const std::byte* x, std::byte* y, std::size_t count) {
  if (dtype == DType::kInt8)
    HWY_DYNAMIC_DISPATCH(max_s8)(typed<std::int8_t>(x), typed<std::int8_t>(y), count);
  else
    HWY_DYNAMIC_DISPATCH(max_u8)(typed<std::uint8_t>(x), typed<std::uint8_t>(y), count);
}

void accumulate_sums(DType dtype, const std::byte* x, std::int32_t* sums, std::size_t count) {
  if (dtype == DType::kInt8)
    HWY_DYNAMIC_DISPATCH(sums_s8)(typed<std::int8_t>(x), sums, count);
  else
    HWY_DYNAMIC_DISPATCH(sums_u8)(typed<std::uint8_t>(x), sums, count);
}

FloatRange range_with_zero(const float* x, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(range_of)(x, count);
}

}  // namespace tessera::backends::cpu
#endif
