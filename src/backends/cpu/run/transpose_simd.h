#pragma once

// Transposition of a plane in tiles that stay in the first cache. Elements of 4 bytes by vectors,
// dispatched to this processor's instruction set at run time.

#include <algorithm>
#include <cstdint>

namespace tessera::backends::cpu {

// to[r * to_stride + c] = from[c * from_stride + r] for each r < rows and c < columns.
void transpose_plane(const std::uint32_t* from, std::int64_t from_stride, std::uint32_t* to,
                     std::int64_t to_stride, std::int64_t columns, std::int64_t rows);

template <typename T>
void transpose_plane(const T* from, std::int64_t from_stride, T* to, std::int64_t to_stride,
                     std::int64_t columns, std::int64_t rows) {
  constexpr std::int64_t kTile = 16;
  for (std::int64_t r0 = 0; r0 < rows; r0 += kTile) {
    for (std::int64_t c0 = 0; c0 < columns; c0 += kTile) {
      for (std::int64_t r = r0; r < std::min(rows, r0 + kTile); ++r)
        for (std::int64_t c = c0; c < std::min(columns, c0 + kTile); ++c)
          to[r * to_stride + c] = from[c * from_stride + r];
    }
  }
}

}  // namespace tessera::backends::cpu
