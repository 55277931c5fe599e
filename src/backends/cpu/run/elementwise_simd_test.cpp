#include "backends/cpu/run/elementwise_simd.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace tessera::backends::cpu {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Whole vectors and a rest, on every width of vectors.
constexpr std::size_t kCount = 37;

TEST(SimdMax, IsNanWhereOneIs) {
  for (std::size_t at = 0; at < kCount; ++at) {
    std::vector<float> x(kCount, 1);
    x[at] = kNan;
    EXPECT_TRUE(std::isnan(simd_max(x.data(), kCount))) << at;
    x[at] = 7;
    EXPECT_EQ(simd_max(x.data(), kCount), 7) << at;
  }
}

TEST(RunSimd, ExponentialsKeepNansAndEnds) {
  const std::vector<float> x = {kNan, kInfinity, -kInfinity, 200, -200, 0};
  std::vector<float> y(x.size());
  run_simd(SimdOp::kExp, x.data(), nullptr, y.data(), x.size(), 0, 0);
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_EQ(std::vector<float>(y.begin() + 1, y.end()),
            (std::vector<float>{kInfinity, 0, kInfinity, 0, 1}));
  run_simd(SimdOp::kSigmoid, x.data(), nullptr, y.data(), x.size(), 0, 0);
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_EQ(std::vector<float>(y.begin() + 1, y.end()), (std::vector<float>{1, 0, 1, 0, 0.5F}));
}

}  // namespace
}  // namespace tessera::backends::cpu
