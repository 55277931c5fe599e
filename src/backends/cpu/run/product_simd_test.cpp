#include "backends/cpu/run/product_simd.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "base/float_convert.h"

namespace tessera::backends::cpu {
namespace {

// Two rows of two segments times columns [first, first + columns) of packed ones.
std::vector<float> product_of(const std::vector<float>& a, std::int64_t first, std::int64_t columns,
                              const PanelRange* range) {
  constexpr std::int64_t kDepth = 4;
  constexpr std::int64_t kColumns = 40;
  std::vector<float> b(static_cast<std::size_t>(kDepth * kColumns));
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(i % 7) - 3;
  std::vector<float> panels(static_cast<std::size_t>(panel_elements(kDepth, kColumns)));
  pack_panels(b.data(), kColumns, 1, kDepth, kColumns, panels.data());
  const float* const rows[] = {a.data(), a.data() + 4, a.data() + 2, a.data() + 6};
  std::vector<float> c(static_cast<std::size_t>(2 * columns), -1);
  PanelProduct product;
  product.a = rows;
  product.rows = 2;
  product.segments = 2;
  product.depth = kDepth / 2;
  product.panel_stride = kDepth * kProductColumns;
  product.panels = panels.data() + first / kProductColumns * product.panel_stride;
  product.skipped = first % kProductColumns;
  product.columns = columns;
  product.c = c.data();
  product.c_stride = columns;
  product.range = range;
  panel_rows_product(product);
  for (std::int64_t r = 0; r < 2; ++r) {
    for (std::int64_t j = 0; j < columns; ++j) {
      float sum = 0;
      for (std::int64_t k = 0; k < kDepth; ++k)
        sum += a[static_cast<std::size_t>(r * kDepth + k)] *
               b[static_cast<std::size_t>(k * kColumns + first + j)];
      const float found = c[static_cast<std::size_t>(r * columns + j)];
      if (range != nullptr) sum = std::min(std::max(sum, range->low), range->high);
      if (std::isnan(a[static_cast<std::size_t>(r * kDepth)])) continue;
      EXPECT_EQ(found, sum) << "row " << r << ", column " << first + j;
    }
  }
  return c;
}

TEST(PanelRowsProduct, BeginsAndEndsInsideOfPanels) {
  const std::vector<float> a = {1, -2, 3, 0, 2, 1, -1, 4};
  for (const std::int64_t first : {0, 3, 15, 16, 20})
    for (const std::int64_t columns : {1, 5, 13, 16, 20}) product_of(a, first, columns, nullptr);
}

// Panels of bf16 numbers give exactly what their values in fp32 give, of every width.
TEST(PanelRowsProduct, ReadsBf16AsItsValues) {
  constexpr std::int64_t kDepth = 5;
  for (const std::int64_t rows : {1, 2, 3, 7}) {
    for (const std::int64_t columns : {3, 16, 70}) {
      std::vector<float> a(static_cast<std::size_t>(rows * kDepth));
      for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 11) - 4.5F;
      std::vector<std::uint16_t> narrow(static_cast<std::size_t>(panel_elements(kDepth, columns)));
      std::vector<float> wide(narrow.size());
      for (std::size_t i = 0; i < narrow.size(); ++i) {
        narrow[i] = fp32_to_bf16(static_cast<float>(i % 23) * 0.37F - 3);
        wide[i] = bf16_to_fp32(narrow[i]);
      }
      std::vector<const float*> starts;
      for (std::int64_t r = 0; r < rows; ++r) starts.push_back(a.data() + r * kDepth);
      const auto multiply = [&](const auto& panels, auto product) {
        std::vector<float> c(static_cast<std::size_t>(rows * columns));
        product.a = starts.data();
        product.rows = rows;
        product.depth = kDepth;
        product.panels = panels.data();
        product.panel_stride = kDepth * kProductColumns;
        product.columns = product.c_stride = columns;
        product.c = c.data();
        panel_rows_product(product);
        return c;
      };
      EXPECT_EQ(multiply(narrow, Bf16PanelProduct()), multiply(wide, PanelProduct()));
    }
  }
}

TEST(PanelRowsProduct, KeepsARangeAndLetsNaNsThrough) {
  const PanelRange range{0, 5};
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const std::int64_t columns : {16, 5}) {
    const auto c = product_of({nan, 1, 1, 1, 2, 1, -1, 4}, 0, columns, &range);
    for (std::int64_t j = 0; j < columns; ++j)
      EXPECT_TRUE(std::isnan(c[static_cast<std::size_t>(j)]));
  }
}

}  // namespace
}  // namespace tessera::backends::cpu
