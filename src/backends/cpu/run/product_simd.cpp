#include "backends/cpu/run/product_simd.h"

#include <algorithm>

// The three variants of elementwise_simd.cpp.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/run/product_simd.cpp"
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

constexpr std::size_t kLanes = hn::MaxLanes(D());
constexpr std::size_t kVectors = static_cast<std::size_t>(kProductColumns) / kLanes;  // of a panel
constexpr std::size_t kSums = 12;  // that fit into the registers beside what is multiplied
constexpr std::size_t kMaxRows = kSums / kVectors;

// Panels that R rows take at once.
constexpr std::size_t panels_for(std::size_t rows) {
  return std::clamp<std::size_t>(kMaxRows / rows, 1, 4);
}

HWY_INLINE hn::Vec<D> load(const float* from) {
  return hn::LoadU(D(), from);
}
HWY_INLINE hn::Vec<D> load(const std::uint16_t* from) {
  const hn::Rebind<std::uint16_t, D> narrow;
  const hn::Rebind<std::uint32_t, D> bits;
  return hn::BitCast(D(), hn::ShiftLeft<16>(hn::PromoteTo(bits, hn::LoadU(narrow, from))));
}

// Where a tile lies: its rows of A, its first panel, and where it starts from and goes to.
template <typename T>
struct Tile {
  const float* const* a = nullptr;
  const T* panel = nullptr;
  const float* start = nullptr;
  std::int64_t start_stride = 0;
  float* c = nullptr;
  std::int64_t c_stride = 0;
  const float* addend = nullptr;
};

// R rows of P panels. Every loop over sums is unrolled: one that is not would keep them in memory.
template <std::size_t R, std::size_t P, typename T>
HWY_INLINE void tile(const PanelProductOf<T>& product, const Tile<T>& at) {
  const D d;
  constexpr std::size_t kCount = P * kVectors;
  hn::Vec<D> sum[R][kCount];
#pragma GCC unroll 16
  for (std::size_t r = 0; r < R; ++r) {
    const std::int64_t first = static_cast<std::int64_t>(r) * at.start_stride;
#pragma GCC unroll 16
    for (std::size_t v = 0; v < kCount; ++v)
      sum[r][v] = at.start == nullptr ? hn::Zero(d) : hn::LoadU(d, at.start + first + v * kLanes);
  }
  const T* b = at.panel;
  const float* const* rows = at.a;
  for (std::int64_t segment = 0; segment < product.segments; ++segment, rows += product.rows) {
    const float* a[R];
#pragma GCC unroll 16
    for (std::size_t r = 0; r < R; ++r) a[r] = rows[r];
    for (std::int64_t k = 0; k < product.depth; ++k, b += kProductColumns) {
      hn::Vec<D> values[kCount];
#pragma GCC unroll 16
      for (std::size_t v = 0; v < kCount; ++v)
        values[v] = load(b + static_cast<std::int64_t>(v / kVectors) * product.panel_stride +
                         v % kVectors * kLanes);
#pragma GCC unroll 16
      for (std::size_t r = 0; r < R; ++r) {
        const auto scale = hn::Set(d, a[r][k]);
#pragma GCC unroll 16
        for (std::size_t v = 0; v < kCount; ++v)
          sum[r][v] = hn::MulAdd(scale, values[v], sum[r][v]);
      }
    }
  }
  const auto each = [&](const auto& change) HWY_ATTR {
#pragma GCC unroll 16
    for (std::size_t r = 0; r < R; ++r)
#pragma GCC unroll 16
      for (std::size_t v = 0; v < kCount; ++v)
        change(sum[r][v],
               static_cast<std::int64_t>(r) * at.c_stride + static_cast<std::int64_t>(v * kLanes));
  };
  if (at.addend != nullptr)
    each([&](hn::Vec<D>& value, std::int64_t place)
             HWY_ATTR { value = hn::Add(value, hn::LoadU(d, at.addend + place)); });
  if (product.range != nullptr) {
    // x86 max(a, b) is b where either is NaN: the value stands second, so that its NaN goes
    // through.
    const auto low = hn::Set(d, product.range->low);
    const auto high = hn::Set(d, product.range->high);
    each([&](hn::Vec<D>& value, std::int64_t)
             HWY_ATTR { value = hn::Min(high, hn::Max(low, value)); });
  }
  each([&](const hn::Vec<D>& value, std::int64_t place)
           HWY_ATTR { hn::StoreU(value, d, at.c + place); });
}

// Columns [first, first + columns) of a panel, by way of a tile of all of them. `at` lies where the
// first one does.
template <std::size_t R, typename T>
void ragged_tile(const PanelProductOf<T>& product, const Tile<T>& at, std::int64_t first,
                 std::int64_t columns) {
  float sums[R * static_cast<std::size_t>(kProductColumns)] = {};
  float addends[R * static_cast<std::size_t>(kProductColumns)] = {};
  const auto each_row = [&](float* rows, const auto& copy) {
    for (std::size_t r = 0; r < R; ++r)
      copy(static_cast<std::int64_t>(r),
           rows + r * static_cast<std::size_t>(kProductColumns) + first);
  };
  if (at.start != nullptr)
    each_row(sums, [&](std::int64_t r, float* row) {
      std::copy_n(at.start + r * at.start_stride, columns, row);
    });
  if (at.addend != nullptr)
    each_row(addends, [&](std::int64_t r, float* row) {
      std::copy_n(at.addend + r * at.c_stride, columns, row);
    });
  tile<R, 1, T>(product, {at.a, at.panel, sums, kProductColumns, sums, kProductColumns,
                          at.addend == nullptr ? nullptr : addends});
  each_row(sums, [&](std::int64_t r, const float* row) {
    std::copy_n(row, columns, at.c + r * at.c_stride);
  });
}

template <std::size_t R, std::size_t P, typename T>
void row_tile(const PanelProductOf<T>& product, std::int64_t row, std::int64_t column) {
  const float* start =
      product.start == nullptr ? nullptr : product.start + row * product.start_stride + column;
  const std::int64_t place = row * product.c_stride + column;
  const Tile<T> at{product.a + row,
                   product.panels + column / kProductColumns * product.panel_stride,
                   start,
                   product.start_stride,
                   product.c + place,
                   product.c_stride,
                   product.addend == nullptr ? nullptr : product.addend + place};
  const std::int64_t count = std::min(product.columns - column, kProductColumns - product.skipped);
  if (count < kProductColumns) return ragged_tile<R, T>(product, at, product.skipped, count);
  tile<R, P, T>(product, at);
}

// Tiles of R rows, the rest in lower ones that are about as high as each other.
template <std::size_t R, std::size_t P, typename T>
std::int64_t rows_down(const PanelProductOf<T>& product, std::int64_t row, std::int64_t column) {
  if constexpr (R > 1) {
    const std::int64_t left = product.rows - row;
    const auto high = static_cast<std::int64_t>(R);
    const std::int64_t tiles = (left + high - 1) / high;
    for (std::int64_t full = left - tiles * (high - 1); full > 0; --full, row += high)
      row_tile<R, P>(product, row, column);
    return rows_down<R - 1, P>(product, row, column);
  } else {
    for (; row < product.rows; ++row) row_tile<R, P>(product, row, column);
    return row;
  }
}

// As many panels at once as fill the registers for all rows.
template <std::size_t P, typename T>
void panel_groups(const PanelProductOf<T>& product, std::int64_t column) {
  constexpr std::size_t kRows = std::max<std::size_t>(1, kMaxRows / P);
  constexpr auto kWidth = static_cast<std::int64_t>(P) * kProductColumns;
  for (; column + kWidth <= product.columns || (P == 1 && column < product.columns);
       column += kWidth)
    rows_down<kRows, P>(product, 0, column);
  if constexpr (P > 1) panel_groups<P - 1>(product, column);
}

template <typename T>
void run(const PanelProductOf<T>& product);

// The columns of the first panel, then those of the others.
template <typename T>
void run_skipping(const PanelProductOf<T>& product) {
  PanelProductOf<T> first = product;
  first.columns = std::min(product.columns, kProductColumns - product.skipped);
  panel_groups<1>(first, 0);
  PanelProductOf<T> rest = product;
  rest.skipped = 0;
  rest.panels += product.panel_stride;
  rest.columns -= first.columns;
  rest.c += first.columns;
  if (rest.start != nullptr) rest.start += first.columns;
  if (rest.addend != nullptr) rest.addend += first.columns;
  run(rest);
}

template <typename T>
void run(const PanelProductOf<T>& product) {
  if (product.skipped > 0) return run_skipping(product);
  if (product.rows == 1) return panel_groups<panels_for(1)>(product, 0);
  if (product.rows == 2) return panel_groups<panels_for(2)>(product, 0);
  if (product.rows == 3) return panel_groups<panels_for(3)>(product, 0);
  panel_groups<1>(product, 0);
}

void run_fp32(const PanelProduct& product) {
  run(product);
}
void run_bf16(const Bf16PanelProduct& product) {
  run(product);
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera::backends::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::backends::cpu {

HWY_EXPORT(run_fp32);
HWY_EXPORT(run_bf16);

void panel_rows_product(const PanelProduct& product) {
  HWY_DYNAMIC_DISPATCH(run_fp32)(product);
}
void panel_rows_product(const Bf16PanelProduct& product) {
  HWY_DYNAMIC_DISPATCH(run_bf16)(product);
}

void pack_panels(const float* b, std::int64_t depth_stride, std::int64_t column_stride,
                 std::int64_t depth, std::int64_t columns, float* panels) {
  for (std::int64_t first = 0; first < columns; first += kProductColumns) {
    const std::int64_t count = std::min(kProductColumns, columns - first);
    const float* from = b + first * column_stride;
    float* panel = panels + first * depth;
    if (count < kProductColumns) std::fill_n(panel, depth * kProductColumns, 0.0F);
    if (column_stride == 1) {
      for (std::int64_t k = 0; k < depth; ++k)
        std::copy_n(from + k * depth_stride, count, panel + k * kProductColumns);
      continue;
    }
    for (std::int64_t j = 0; j < count; ++j)
      for (std::int64_t k = 0; k < depth; ++k)
        panel[k * kProductColumns + j] = from[j * column_stride + k * depth_stride];
  }
}

}  // namespace tessera::backends::cpu
#endif
