#include "base/statistics.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

TEST(Summarize, MedianAndSpreadWhateverTheOrder) {
  const SampleSummary expected{5, 4, 8, 0};
  EXPECT_EQ(summarize({1, 2, 3, 4, 5, 6, 7, 8}), expected);
  EXPECT_EQ(summarize({8, 1, 7, 2, 6, 3, 5, 4}), expected);
}

TEST(Summarize, FewSamples) {
  EXPECT_EQ(summarize({}), SampleSummary());
  EXPECT_EQ(summarize({3}), (SampleSummary{3, 0, 1, 0}));
  EXPECT_EQ(summarize({3, 1}), (SampleSummary{3, 2, 2, 0}));
}

TEST(Summarize, CountsOutliersAndKeepsThem) {
  const auto found = summarize({10, 10, 11, 10, 12, 11, 10, 11, 40, 1});
  EXPECT_EQ(found.count, 10);
  EXPECT_EQ(found.outliers, 2);
  EXPECT_EQ(found.median, 11);
}

TEST(Summarize, SamplesThatAgreeHaveNoOutliersWithinTheClocksNoise) {
  EXPECT_EQ(summarize({100, 100, 100, 100, 105}).outliers, 0);
  EXPECT_EQ(summarize({100, 100, 100, 100, 107}).outliers, 1);
}

TEST(Median, OfSamples) {
  EXPECT_EQ(median({9, 1, 5}), 5);
  EXPECT_EQ(median({}), 0);
}

}  // namespace
}  // namespace tessera
