#include "backends/cpu/run/depthwise_simd.h"

#include <algorithm>
#include <array>

// The three variants of elementwise_simd.cpp.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/run/depthwise_simd.cpp"
// foreach_target.h must come before whatever includes highway.h.
// clang-format off
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace tessera::backends::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Whole = hn::CappedTag<float, static_cast<std::size_t>(kDepthwiseChannels)>;
using Single = hn::CappedTag<float, 1>;  // where channels do not fill a vector

constexpr std::size_t kColumns = 8;  // of a tile: sums that do not wait for each other
constexpr std::int64_t kRows = 4;    // that some channels take before the next: they share a source

// A row's taps and stride where both are known here, so that neighbours share what they load.
// kFewest: columns of the narrowest tile.
template <std::size_t T, std::size_t S>
struct Row {
  static constexpr std::size_t kTaps = T;
  static constexpr std::size_t kStride = S;
  static constexpr std::size_t kFewest = 4;
};
// Any taps, stride, dilation.
struct AnyRow {
  static constexpr std::size_t kTaps = 0;
  static constexpr std::size_t kFewest = 1;
};

// What a tile's sums are made of: row taps from one on, at the first column tap of the first sum.
struct Source {
  const float* row = nullptr;
  std::int64_t column = 0;  // of that tap
  const float* weights = nullptr;
  std::int64_t taps = 0;  // of rows
};

alignas(64) constexpr float kZeros[static_cast<std::size_t>(kDepthwiseChannels)] = {};

// The element of the source at `at`, in its column `column`; zeros outside of the image.
template <typename D, bool kClips>
HWY_INLINE hn::Vec<D> element(const DepthwisePart& part, const float* at, std::int64_t column) {
  if constexpr (kClips) {
    // One comparison: what lies before the image is a large number.
    const bool inside =
        static_cast<std::uint64_t>(column) < static_cast<std::uint64_t>(part.columns.src_size);
    at = inside ? at : kZeros;
  }
  return hn::LoadU(D(), at);
}

// One row of taps, whose weights begin at `weights`, into W sums: `at` is the source's element of
// the first tap of the first sum, in column `column`.
template <typename D, typename R, std::size_t W, bool kClips>
HWY_INLINE void add_row(const DepthwisePart& part, const float* at, std::int64_t column,
                        const float* weights, hn::Vec<D> (&sum)[W]) {
  const D d;
  if constexpr (R::kTaps == 0) {
    const std::int64_t stride = part.columns.stride;
    for (std::int64_t k = 0; k < part.columns.kernel; ++k, weights += part.channels) {
      const auto weight = hn::LoadU(d, weights);
      const float* value = at;
#pragma GCC unroll 8
      for (std::size_t x = 0; x < W; ++x, value += stride * part.channels) {
        const auto of_sum = column + static_cast<std::int64_t>(x) * stride;
        sum[x] = hn::MulAdd(weight, element<D, kClips>(part, value, of_sum), sum[x]);
      }
      at += part.columns.dilation * part.channels;
      column += part.columns.dilation;
    }
  } else {
    hn::Vec<D> weight[R::kTaps];
#pragma GCC unroll 8
    for (std::size_t k = 0; k < R::kTaps; ++k, weights += part.channels)
      weight[k] = hn::LoadU(d, weights);
#pragma GCC unroll 32
    for (std::size_t s = 0; s < (W - 1) * R::kStride + R::kTaps; ++s, at += part.channels) {
      const auto value = element<D, kClips>(part, at, column + static_cast<std::int64_t>(s));
#pragma GCC unroll 8
      for (std::size_t k = 0; k < R::kTaps; ++k) {
        if (s < k || (s - k) % R::kStride != 0 || (s - k) / R::kStride >= W) continue;
        sum[(s - k) / R::kStride] = hn::MulAdd(weight[k], value, sum[(s - k) / R::kStride]);
      }
    }
  }
}

// W results of one row from `dst` on, one vector of channels. Every loop over sums is unrolled: one
// that is not would keep them in memory.
template <typename D, typename R, std::size_t W, bool kClips>
HWY_INLINE void tile(const DepthwisePart& part, const Source& source, const float* bias,
                     float* dst) {
  const D d;
  const auto start = bias == nullptr ? hn::Zero(d) : hn::LoadU(d, bias);
  hn::Vec<D> sum[W];
#pragma GCC unroll 8
  for (std::size_t x = 0; x < W; ++x) sum[x] = start;
  const std::int64_t row_step = part.rows.dilation * part.columns.src_size * part.channels;
  const float* row = source.row;
  const float* weights = source.weights;
  for (std::int64_t r = 0; r < source.taps; ++r) {
    add_row<D, R, W, kClips>(part, row, source.column, weights, sum);
    row += row_step;
    weights += part.columns.kernel * part.channels;
  }
#pragma GCC unroll 8
  for (std::size_t x = 0; x < W; ++x)
    hn::StoreU(sum[x], d, dst + static_cast<std::int64_t>(x) * part.channels);
}

// What a row of results reads and writes, from the image's first elements on, and how many of its
// row taps lie in the source.
struct Line {
  std::int64_t src = 0, weights = 0, dst = 0;
  std::int64_t taps = 0;
};

Line line_of(const DepthwisePart& part, std::int64_t y) {
  const ConvAxis& rows = part.rows;
  const std::int64_t first = y * rows.stride - rows.pad;
  const std::int64_t past = rows.src_size - first;
  const std::int64_t skipped = first < 0 ? (rows.dilation - 1 - first) / rows.dilation : 0;
  const std::int64_t end =
      past <= 0 ? 0 : std::min((past + rows.dilation - 1) / rows.dilation, rows.kernel);
  return {(first + skipped * rows.dilation) * part.columns.src_size * part.channels,
          skipped * part.columns.kernel * part.channels, y * part.columns.dst_size * part.channels,
          end - skipped};
}

// All channels of W columns of some rows.
// `part` is a copy that nothing else points to: what is stored cannot change it.
template <typename D, typename R, std::size_t W, bool kClips>
void columns(DepthwisePart part, const Line* begin, const Line* end, std::int64_t x) {
  constexpr auto kLanes = static_cast<std::int64_t>(hn::MaxLanes(D()));
  const std::int64_t column = x * part.columns.stride - part.columns.pad;
  for (std::int64_t c = part.channel_begin; c < part.channel_end; c += kLanes) {
    // The last vector ends with the last channel: some channels are computed twice.
    const std::int64_t channel = std::min(c, part.channel_end - kLanes);
    const float* src = part.src + column * part.channels + channel;
    float* dst = part.dst + x * part.channels + channel;
    const float* bias = part.bias == nullptr ? nullptr : part.bias + channel;
    for (const Line* line = begin; line != end; ++line)
      tile<D, R, W, kClips>(
          part, {src + line->src, column, part.weights + line->weights + channel, line->taps}, bias,
          dst + line->dst);
  }
}

template <typename D, typename R, std::size_t W>
void columns_of(std::size_t width, const DepthwisePart& part, const Line* begin, const Line* end,
                std::int64_t x) {
  if constexpr (W > R::kFewest) {
    if (width < W) return columns_of<D, R, W - 1>(width, part, begin, end, x);
  }
  const ConvAxis& axis = part.columns;
  const std::int64_t first = x * axis.stride - axis.pad;
  const std::int64_t last =
      first + (static_cast<std::int64_t>(W) - 1) * axis.stride + (axis.kernel - 1) * axis.dilation;
  if (first < 0 || last >= axis.src_size)
    columns<D, R, W, true>(part, begin, end, x);
  else
    columns<D, R, W, false>(part, begin, end, x);
}

// Tiles of about equal width; the last one ends with the last column.
template <typename D, typename R>
void rows_of(const DepthwisePart& part) {
  const std::int64_t count = part.column_end - part.column_begin;
  constexpr auto kMost = static_cast<std::int64_t>(kColumns);
  const std::int64_t tiles = (count + kMost - 1) / kMost;
  const std::int64_t width = (count + tiles - 1) / tiles;
  std::array<Line, kRows> lines;
  for (std::int64_t y = part.row_begin; y < part.row_end; y += kRows) {
    Line* end = lines.data();
    for (std::int64_t i = y; i < std::min(part.row_end, y + kRows); ++i) *end++ = line_of(part, i);
    for (std::int64_t x = part.column_begin; x < part.column_end; x += width)
      columns_of<D, R, kColumns>(static_cast<std::size_t>(width), part, lines.data(), end,
                                 std::min(x, part.column_end - width));
  }
}

void run(const DepthwisePart& part) {
  if (part.channel_end - part.channel_begin < static_cast<std::int64_t>(hn::MaxLanes(Whole())))
    return rows_of<Single, AnyRow>(part);
#if HWY_TARGET != HWY_SCALAR
  const ConvAxis& axis = part.columns;
  const bool wide = part.column_end - part.column_begin >= 4 && axis.dilation == 1;
  if (wide && axis.kernel == 3 && axis.stride == 1) return rows_of<Whole, Row<3, 1>>(part);
  if (wide && axis.kernel == 3 && axis.stride == 2) return rows_of<Whole, Row<3, 2>>(part);
  if (wide && axis.kernel == 5 && axis.stride == 1) return rows_of<Whole, Row<5, 1>>(part);
  if (wide && axis.kernel == 5 && axis.stride == 2) return rows_of<Whole, Row<5, 2>>(part);
#endif
  rows_of<Whole, AnyRow>(part);
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera::backends::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::backends::cpu {

HWY_EXPORT(run);

void depthwise_sums(const DepthwisePart& part) {
  HWY_DYNAMIC_DISPATCH(run)(part);
}

}  // namespace tessera::backends::cpu
#endif
