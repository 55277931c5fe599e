#pragma once

// The largest elements of pooling windows, dispatched to this processor's instruction set at run
// time.

#include <cstddef>
#include <cstdint>
#include <span>

namespace tessera::backends::cpu {

// The columns that one window reads: the first, and their number.
struct ColumnRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

// A row of windows over lines of the source, whose columns are `lanes` elements each. Window i
// reads columns[i] of every line, `dilation` columns apart.
struct MaxWindows {
  std::span<const float* const> lines;
  std::span<const ColumnRange> columns;
  std::int64_t dilation = 1;
  std::size_t lanes = 1;
};

// y[i * lanes + c] = the largest element in lane c of window i: NaN where one is there, -inf where
// there are none.
void max_windows(const MaxWindows& row, float* y);

}  // namespace tessera::backends::cpu
