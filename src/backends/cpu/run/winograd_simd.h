#pragma once

// The transformations of Winograd's tiles (winograd.h) where channels lie together. Dispatched to
// this processor's instruction set at run time. Tiles are 2 or 4 results wide and high.

#include <cstdint>

#include "backends/cpu/run/product_simd.h"

namespace tessera::backends::cpu {

// `pixels`: the first channel of each pixel that the tile reads, by rows. Writes `channels` floats
// of each plane, at `planes` + number * plane_stride.
void winograd_source(std::int64_t tile, const float* const* pixels, std::int64_t channels,
                     float* planes, std::int64_t plane_stride);

// The results of one tile in up to kProductColumns channels. Strides in floats.
struct WinogradResult {
  const float* sums = nullptr;  // of kProductColumns channels of the first plane
  std::int64_t plane_stride = 0;
  const float* bias = nullptr;    // of the channels; null: zeros
  const float* addend = nullptr;  // lies as dst does; null: none
  const PanelRange* range = nullptr;
  float* dst = nullptr;  // the tile's first result
  std::int64_t row_stride = 0, column_stride = 0;
  std::int64_t rows = 0, columns = 0;  // of the tile that lie in the result
  std::int64_t channels = 0;
};

// False, and nothing is written, where a sum is no finite number: then the tile has no exact
// results, since what is infinite or no number would spread over all of them.
bool winograd_result(std::int64_t tile, const WinogradResult& result);

}  // namespace tessera::backends::cpu
