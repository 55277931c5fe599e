#pragma once

// Sums of a depthwise convolution where channels lie together: the inner loop of
// "simd.depthwise_conv". Dispatched to this processor's instruction set at run time.

#include <cstdint>

#include "backends/cpu/run/conv_axis.h"

namespace tessera::backends::cpu {

// Channels that are computed together at most. A part of an image has as many, or all.
constexpr std::int64_t kDepthwiseChannels = 16;

// Some rows, columns and channels of one image: dst[y][x][c] = bias[c] + the sum over the taps of
// weights[tap][c] times the source's element, in the order of the taps.
struct DepthwisePart {
  ConvAxis rows, columns;
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
