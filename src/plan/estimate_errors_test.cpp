#include "plan/estimate_errors.h"

#include <gtest/gtest.h>

namespace tessera::plan {
namespace {

std::map<std::string, Estimate> samples() {
  return {{"conv|a", {"cpu:conv", 10, {10, 0, 5}}},
          {"conv|b", {"cpu:conv", 11, {10, 0, 5, false, 0, 2}}},
          {"conv|c", {"cpu:conv", 5, {10, 0, 5, true}}},
          {"convert|a", {"cpu:convert", 1, {4, 0, 5, true, 0, 1, true}}},
          {"convert|b", {"cpu:convert", 1, {8, 0, 5}}},
          {"view|a", {"cpu:view", 0, {0, 0, 5}}}};
}

TEST(EstimateErrors, ByKernelTheWorstFirst) {
  const auto errors = estimate_errors(samples());
  ASSERT_EQ(errors.size(), 2U) << "what takes no time has no ratio";
  EXPECT_EQ(errors[0].kernel, "cpu:convert");
  EXPECT_EQ(errors[0].entries, 2U);
  EXPECT_DOUBLE_EQ(errors[0].worst_ratio, 0.125);
  EXPECT_EQ(errors[0].worst_key, "convert|b");
  EXPECT_EQ(errors[1].kernel, "cpu:conv");
  EXPECT_DOUBLE_EQ(errors[1].median_ratio, 1);
  EXPECT_DOUBLE_EQ(errors[1].worst_ratio, 0.5);
  EXPECT_TRUE(estimate_errors({}).empty());
}

TEST(EstimateErrors, AsText) {
  EXPECT_EQ(to_text(estimate_errors(samples()), 8),
            "estimate / measured          entries  median   worst  worst at\n"
            "cpu:convert                        2    0.25    0.12  convert|...\n"
            "cpu:conv                           3    1.00    0.50  conv|c\n");
  EXPECT_EQ(to_text({}, 8), "");
}

TEST(MeasuringNotes, CountWhatDisturbed) {
  EXPECT_EQ(measuring_notes(samples()),
            "2 while others used a core, 2 with outliers, 1 while the clock changed");
  EXPECT_EQ(measuring_notes({{"k", {"cpu:conv", 1, {1, 0, 5}}}}), "");
}

}  // namespace
}  // namespace tessera::plan
