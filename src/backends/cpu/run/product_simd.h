#pragma once

// Products of rows with packed columns: the inner loop of "simd.product". Dispatched to this
// processor's instruction set at run time.

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

// c[r][j] = start[j] + the sum over k < depth of a[r][k] * b[k][j], or where `adds`, c[r][j] + that
// sum, for each r < rows and j < columns. In elements.
struct PanelProduct {
  const float* a = nullptr;
  std::int64_t a_stride = 0;
  std::int64_t rows = 0;
  const float* panels = nullptr;  // from the first of the depth on
  std::int64_t panel_stride = 0;
  std::int64_t depth = 0;
  std::int64_t columns = 0;
  const float* start = nullptr;  // one for each column; null: zeros
  bool adds = false;             // then without `start`
  float* c = nullptr;
  std::int64_t c_stride = 0;
};
void panel_rows_product(const PanelProduct& product);

}  // namespace tessera::backends::cpu
