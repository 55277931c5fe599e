#pragma once

// Products of rows with packed columns: the inner loop of products, attention and recurrent cells.
// Dispatched to this processor's instruction set at run time.

#include <cstdint>

namespace tessera::backends::cpu {

// Columns of B lie in panels of so many: for each of its rows, their values side by side.
constexpr std::int64_t kProductColumns = 16;

// Elements of the panels of a matrix of `depth` rows.
constexpr std::int64_t panel_elements(std::int64_t depth, std::int64_t columns) {
  return (columns + kProductColumns - 1) / kProductColumns * kProductColumns * depth;
}

// Writes the panels of b[k][j], which lies at b + k * depth_stride + j * column_stride; zeros where
// the last one has no column.
void pack_panels(const float* b, std::int64_t depth_stride, std::int64_t column_stride,
                 std::int64_t depth, std::int64_t columns, float* panels);

struct PanelRange {
  float low = 0, high = 0;
};

// c[r][j] = start[r][j] + the sum over k < segments * depth of a[r][k] * b[k][j], for each r < rows
// and j < columns. A row of A lies in segments of `depth` elements. Strides in floats. Each sum is
// taken in the order of k, whatever the number of rows. Behind it the addend's element is added,
// and the value kept in the range; a NaN stays one. T is what B is stored in: float, or the bits of
// bf16 numbers, which are read as fp32.
template <typename T>
struct PanelProductOf {
  const float* const* a = nullptr;  // a[s * rows + r]: segment s of row r
  std::int64_t rows = 0;
  std::int64_t segments = 1;
  std::int64_t depth = 0;
  const T* panels = nullptr;  // from the first of the depth on
  std::int64_t panel_stride = 0;
  std::int64_t columns = 0;
  std::int64_t skipped = 0;       // columns of the first panel that come before the first one
  const float* start = nullptr;   // may be c; null: zeros
  std::int64_t start_stride = 0;  // 0: one row for all
  float* c = nullptr;
  std::int64_t c_stride = 0;
  const float* addend = nullptr;      // lies as c does; null: none
  const PanelRange* range = nullptr;  // null: any value
};
using PanelProduct = PanelProductOf<float>;
using Bf16PanelProduct = PanelProductOf<std::uint16_t>;
void panel_rows_product(const PanelProduct& product);
void panel_rows_product(const Bf16PanelProduct& product);

}  // namespace tessera::backends::cpu
