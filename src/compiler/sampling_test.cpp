#include "compiler/sampling.h"

#include <gtest/gtest.h>

namespace tessera::compiler {
namespace {

constexpr auto kResident = plan::CacheState::kResident;

TEST(PlanSamples, ShortKernelsRunInBatches) {
  EXPECT_EQ(plan_samples(1, kResident), (SamplePlan{3, 3, 8, 20}));
  EXPECT_EQ(plan_samples(15, kResident), (SamplePlan{3, 3, 8, 2}));
  EXPECT_EQ(plan_samples(20, kResident), (SamplePlan{3, 3, 8, 1}));
  EXPECT_EQ(plan_samples(0, kResident), (SamplePlan{3, 3, 8, 1000})) << "no more, however short";
}

TEST(PlanSamples, LongKernelsRunSeldom) {
  EXPECT_EQ(plan_samples(250, kResident), (SamplePlan{3, 3, 4, 1}));
  EXPECT_EQ(plan_samples(1500, kResident), (SamplePlan{3, 3, 2, 1}));
  EXPECT_EQ(plan_samples(3000, kResident), (SamplePlan{3, 1, 2, 1}));
  EXPECT_EQ(plan_samples(100'000, kResident), (SamplePlan{3, 1, 1, 1}));
}

TEST(PlanSamples, WhereTheCachesOfTheCoresAreEmptiedEachRunIsASample) {
  constexpr auto kShared = plan::CacheState::kShared;
  EXPECT_EQ(plan_samples(1, kShared), (SamplePlan{3, 3, 8, 1}));
  EXPECT_EQ(plan_samples(250, kShared), (SamplePlan{3, 3, 4, 1}));
  EXPECT_EQ(plan_samples(3000, kShared), (SamplePlan{3, 1, 2, 1}));
}

TEST(PlanSamples, OfStreamedKernelsEachRunIsASample) {
  constexpr auto kStreamed = plan::CacheState::kStreamed;
  EXPECT_EQ(plan_samples(1, kStreamed), (SamplePlan{3, 1, 3, 1}));
  EXPECT_EQ(plan_samples(1500, kStreamed), (SamplePlan{3, 1, 3, 1}));
  EXPECT_EQ(plan_samples(3000, kStreamed), (SamplePlan{3, 1, 2, 1}));
  EXPECT_EQ(plan_samples(100'000, kStreamed), (SamplePlan{3, 1, 1, 1}));
}

TEST(SummarizeSamples, ColdOnesStandBesideThePrice) {
  const auto entry = summarize_samples({{10, 12, 11, 10, 90}, {500}, {30, 20, 40}, {}});
  EXPECT_EQ(entry.time_us, 11);
  EXPECT_EQ(entry.spread_us, 2);
  EXPECT_EQ(entry.samples, 5);
  EXPECT_EQ(entry.outliers, 1);
  EXPECT_EQ(entry.cold_us, 30);
  EXPECT_FALSE(entry.busy);
  EXPECT_FALSE(entry.clock_changed);
}

TEST(SummarizeSamples, ABusyMachinesSamplesCountOnlyWhereThereAreNoOthers) {
  const auto entry = summarize_samples({{10, 10}, {30, 30, 30}, {}, {}});
  EXPECT_TRUE(entry.busy);
  EXPECT_EQ(entry.time_us, 30);
  EXPECT_EQ(entry.samples, 5);
  EXPECT_EQ(entry.cold_us, 0);
}

TEST(SummarizeSamples, SeesThatTheClockChanged) {
  EXPECT_FALSE(summarize_samples({{1, 1, 1}, {}, {}, {3000, 3100, 2950}}).clock_changed);
  EXPECT_TRUE(summarize_samples({{1, 1, 1}, {}, {}, {3000, 2600, 3000}}).clock_changed);
}

}  // namespace
}  // namespace tessera::compiler
