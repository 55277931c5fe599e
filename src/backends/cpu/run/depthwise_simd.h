#pragma once

// Sums of a depthwise convolution where channels lie together: the inner loop of
// "simd.depthwise_conv". Dispatched to this processor's instruction set at run time.

#include <cstdint>

namespace tessera::backends::cpu {

// One spatial dim: result x is the sum over taps k of source x * stride - pad + k * dilation, as
// far as that lies in the source.
struct DepthwiseAxis {
  std::int64_t src_size = 1, dst_size = 1;
  std::int64_t taps = 1, stride = 1, dilation = 1, pad = 0;
};

// Channels that are computed together at most. A part of an image has as many, or all.
constexpr std::int64_t kDepthwiseChannels = 16;

// Some rows, columns and channels of one image: dst[y][x][c] = bias[c] + the sum over the taps of
// weights[tap][c] times the source's element, in the order of the taps.
struct DepthwisePart {
  DepthwiseAxis rows, columns;
  std::int64_t channels = 1;       // of source, result, weights
  const float* src = nullptr;      // the image's first element
  const float* weights = nullptr;  // [row tap][column tap][channel]
  const float* bias = nullptr;     // null: zeros
  float* dst = nullptr;            // the image's first element
  std::int64_t row_begin = 0, row_end = 0;
  std::int64_t column_begin = 0, column_end = 0;
  std::int64_t channel_begin = 0, channel_end = 0;
};
void depthwise_sums(const DepthwisePart& part);

}  // namespace tessera::backends::cpu
