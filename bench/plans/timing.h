#pragma once

// Plans that run, timed beside one another.

#include <memory>
#include <string>

#include "artefact/read/program_image.h"
#include "base/error.h"
#include "io/npz.h"
#include "runtime/executor.h"
#include "values.h"

namespace tessera::bench {

class RunningPlan {
 public:
  // Loads a plan and runs it once.
  static Result<RunningPlan> start(artefact::ProgramImage image, const tools::NamedValues& inputs,
                                   int threads);

  [[nodiscard]] Result<io::NamedTensors> outputs() const;

  // One run that does not count, since the caches hold what ran before; then runs for 10 ms, one at
  // least. Their median.
  Result<double> burst_us();

 private:
  explicit RunningPlan(std::unique_ptr<runtime::Executor> executor)
      : executor_(std::move(executor)) {}

  std::unique_ptr<runtime::Executor> executor_;
};

struct Timing {
  double chosen_us = 0;  // medians over the rounds
  double plan_us = 0;
  double ratio = 1;  // median over the rounds of plan / chosen; below 1: `plan` is faster
  int rounds = 0;
};

// Both plans in each round, the one that was second goes first in the next. Ends after a round in
// which `plan` took more than kHopeless times as long as the chosen one.
inline constexpr double kHopeless = 2;
Result<Timing> time_beside(RunningPlan& chosen, RunningPlan& plan, int rounds);

// What disagrees between the outputs of two plans; empty where floats agree to 1e-3 of themselves
// and 1e-4 of the largest element, and all else is equal.
std::string disagreement(const io::NamedTensors& expected, const io::NamedTensors& found);

}  // namespace tessera::bench
