// Sums over as many elements as images have: their error must not grow with them.

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "backends/cpu/run/elementwise_simd.h"

namespace tessera::backends::cpu {
namespace {

constexpr double kRelative = 1e-6;

// Positive, so that nothing cancels; of no short binary form, so that every addition rounds.
float element(std::size_t i) {
  return 0.1F + static_cast<float>(i % 7) * 0.013F;
}

TEST(LongSums, OfOneRow) {
  for (const std::size_t count : {0, 1, 31, 4096, 4097, 409600}) {
    std::vector<float> x(count);
    double expected = 0;
    for (std::size_t i = 0; i < count; ++i) expected += x[i] = element(i);
    EXPECT_NEAR(simd_sum(x.data(), count), expected, kRelative * expected) << count;
  }
}

TEST(LongSums, OfColumns) {
  for (const std::size_t rows : {1, 7, 256, 257, 102400}) {
    for (const std::size_t columns : {1, 8, 11}) {
      std::vector<float> x(rows * columns);
      std::vector<double> expected(columns, 0);
      for (std::size_t i = 0; i < x.size(); ++i) expected[i % columns] += x[i] = element(i);
      std::vector<float> sums(columns);
      simd_column_sums(x.data(), rows, columns, sums.data());
      for (std::size_t c = 0; c < columns; ++c)
        EXPECT_NEAR(sums[c], expected[c], kRelative * expected[c]) << rows << " " << c;
    }
  }
}

TEST(LongSums, MaximaOfColumnsSeeEveryRow) {
  constexpr std::size_t kRows = 1000;
  constexpr std::size_t kColumns = 9;
  for (const std::size_t row : {0, 255, 256, 257, 999}) {
    std::vector<float> x(kRows * kColumns, -1);
    x[row * kColumns + 8] = 2;
    std::vector<float> maxima(kColumns);
    simd_column_maxima(x.data(), kRows, kColumns, maxima.data());
    EXPECT_EQ(maxima[8], 2) << row;
    EXPECT_EQ(maxima[0], -1) << row;
  }
}

}  // namespace
}  // namespace tessera::backends::cpu
