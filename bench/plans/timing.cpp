#include "plans/timing.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "backends/registry_run/registry_run.h"
#include "compare.h"
#include "runnable.h"

namespace tessera::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kBurstUs = 10'000;
constexpr double kRelativeTolerance = 1e-3;
constexpr double kAbsoluteTolerance = 1e-4;

double elapsed_us(Clock::time_point since) {
  return std::chrono::duration<double, std::micro>(Clock::now() - since).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

Result<RunningPlan> RunningPlan::start(artefact::ProgramImage image,
                                       const tools::NamedValues& inputs, int threads) {
  TESSERA_ASSIGN(auto program,
                 runtime::LoadedProgram::create(std::move(image), "", &backends::make_run_device));
  TESSERA_ASSIGN(auto executor,
                 runtime::Executor::create(std::move(program), {.threads = threads}));
  TESSERA_TRY(tools::bind_inputs(*executor, inputs));
  TESSERA_TRY(executor->run());
  return RunningPlan(std::move(executor));
}

Result<io::NamedTensors> RunningPlan::outputs() const {
  return tools::copy_outputs(*executor_).map(tools::tensors_of);
}

Result<double> RunningPlan::burst_us() {
  TESSERA_TRY(executor_->run());
  std::vector<double> times_us;
  const auto start = Clock::now();
  do {
    const auto begin = Clock::now();
    TESSERA_TRY(executor_->run());
    times_us.push_back(elapsed_us(begin));
  } while (elapsed_us(start) < kBurstUs);
  return median(std::move(times_us));
}

Result<Timing> time_beside(RunningPlan& chosen, RunningPlan& plan, int rounds) {
  std::vector<double> chosen_us;
  std::vector<double> plan_us;
  std::vector<double> ratios;
  for (int round = 0; round < rounds; ++round) {
    const bool chosen_first = round % 2 == 0;
    for (const bool is_chosen : {chosen_first, !chosen_first}) {
      TESSERA_ASSIGN(const double burst_us, (is_chosen ? chosen : plan).burst_us());
      (is_chosen ? chosen_us : plan_us).push_back(burst_us);
    }
    ratios.push_back(plan_us.back() / chosen_us.back());
    if (ratios.back() > kHopeless) break;
  }
  const int done = static_cast<int>(ratios.size());
  return Timing{median(std::move(chosen_us)), median(std::move(plan_us)), median(std::move(ratios)),
                done};
}

std::string disagreement(const io::NamedTensors& expected, const io::NamedTensors& found) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const auto difference =
        tools::compare(expected[i].second, found[i].second, kRelativeTolerance, kAbsoluteTolerance);
    if (!difference.problem.empty())
      return fmt::format("output '{}': {}", expected[i].first, difference.problem);
    if (difference.outside > 0)
      return fmt::format(
          "output '{}': {} elements leave the tolerance, the largest difference is "
          "{:.3g} of {:.3g}",
          expected[i].first, difference.outside, difference.max_abs, difference.max_expected);
  }
  return {};
}

}  // namespace tessera::bench
