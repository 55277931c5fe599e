#include "compiler/sampling.h"

#include <algorithm>
#include <cmath>

#include "base/statistics.h"

namespace tessera::compiler {
namespace {

constexpr double kLeastSampleUs = 20;
constexpr double kTotalUs = 3000;
constexpr double kLongUs = 2000;  // beyond what the caches hold for it: one cold run is enough
constexpr double kVeryLongUs = 40000;
constexpr double kMaxRuns = 1000;
constexpr int kStreamedPerRound = 3;
constexpr std::size_t kEnoughSamples = 3;
constexpr double kSameClock = 1.1;  // the highest by the lowest

}  // namespace

SamplePlan plan_samples(double time_us, plan::CacheState caches) {
  SamplePlan plan;
  if (time_us > kLongUs) {
    plan.cold_rounds = 1;
    plan.samples_per_round = time_us > kVeryLongUs ? 1 : 2;
    return plan;
  }
  if (caches == plan::CacheState::kStreamed) {
    plan.cold_rounds = 1;
    plan.samples_per_round = kStreamedPerRound;
    return plan;
  }
  const double least_us = std::max(time_us, kLeastSampleUs / kMaxRuns);
  if (caches == plan::CacheState::kResident)
    plan.runs_per_sample = static_cast<int>(std::max(1.0, std::ceil(kLeastSampleUs / least_us)));
  const double sample_us = least_us * plan.runs_per_sample;
  plan.samples_per_round =
      static_cast<int>(std::clamp(std::ceil(kTotalUs / plan.rounds / sample_us), 2.0, 8.0));
  return plan;
}

plan::CostEntry summarize_samples(KernelSamples samples) {
  const bool busy = samples.time_us.size() < kEnoughSamples && !samples.busy_us.empty();
  if (busy)
    samples.time_us.insert(samples.time_us.end(), samples.busy_us.begin(), samples.busy_us.end());
  const auto clocks = std::ranges::minmax_element(samples.clocks_mhz);
  const auto times = summarize(std::move(samples.time_us));
  plan::CostEntry entry;
  entry.time_us = times.median;
  entry.spread_us = times.spread;
  entry.samples = times.count;
  entry.busy = busy;
  entry.outliers = times.outliers;
  if (!samples.cold_us.empty()) entry.cold_us = median(samples.cold_us);
  entry.clock_changed = !samples.clocks_mhz.empty() && *clocks.max > kSameClock * *clocks.min;
  return entry;
}

}  // namespace tessera::compiler
