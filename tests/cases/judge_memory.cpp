#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "cases/judges.h"

namespace tessera::testing {
namespace {

const std::set<std::string> kKeys = {"outputs_equal_inputs_alias_safe", "inputs_unchanged",
                                     "outputs_of_earlier_runs_unchanged",
                                     "memory_after_all_runs_max_ratio_to_largest_run"};

std::string shared_problem(const Attempt& attempt) {
  for (const StepRun& step : attempt.steps)
    if (!step.shared_memory.empty()) return step.shared_memory;
  return {};
}

std::string inputs_problem(const Attempt& attempt) {
  for (const StepRun& step : attempt.steps)
    for (std::size_t i = 0; i < step.feeds.size(); ++i)
      if (!step.feeds[i].second.equals(step.feeds_before[i].second))
        return fmt::format("input '{}' was written to", step.feeds[i].first);
  return {};
}

// Gives an output of the session memory of its own, as a caller would who keeps it.
Result<Tensor> bind_own_output(runtime::Executor& executor, const std::string& name,
                               const Tensor& like) {
  TESSERA_ASSIGN(Tensor memory, Tensor::zeros(like.dtype(), like.dims()));
  TESSERA_TRY(executor.bind_output(name, memory.mutable_data(), memory.nbytes()));
  return memory;
}

// All steps again, each with outputs in memory of the caller; what an earlier step wrote there must
// still stand there at the end.
Result<std::string> earlier_outputs_problem(const Attempt& attempt) {
  std::vector<io::NamedTensors> kept;
  std::unique_ptr<runtime::Executor> executor;
  for (const StepRun& step : attempt.steps) {
    if (!executor || !attempt.same_session) {
      TESSERA_ASSIGN(executor, open_session(step.program));
    }
    TESSERA_TRY(bind_feeds(*executor, step.feeds));
    io::NamedTensors memory;
    for (const auto& [name, tensor] : step.outputs) {
      TESSERA_ASSIGN(Tensor own, bind_own_output(*executor, name, tensor));
      memory.emplace_back(name, std::move(own));
    }
    TESSERA_TRY(executor->run());
    kept.push_back(std::move(memory));
  }
  for (std::size_t i = 0; i < kept.size(); ++i)
    for (std::size_t j = 0; j < kept[i].size(); ++j)
      if (!kept[i][j].second.equals(attempt.steps[i].outputs[j].second))
        return fmt::format("output '{}' of step {} changed", kept[i][j].first, i + 1);
  return std::string();
}

std::int64_t memory_of(const runtime::Executor& executor) {
  std::int64_t total = executor.scratch_bytes();
  for (std::size_t i = 0; i < executor.program().plan().memories.size(); ++i)
    total += executor.arena_bytes(i);
  return total;
}

// The arenas after all steps in one session, against those of the step that needs most, alone.
Result<std::string> growth_problem(const Attempt& attempt, double ratio) {
  std::int64_t largest = 0;
  for (const StepRun& step : attempt.steps) {
    TESSERA_ASSIGN(const auto executor, open_session(step.program));
    TESSERA_TRY(bind_feeds(*executor, step.feeds));
    TESSERA_TRY(executor->run());
    largest = std::max(largest, memory_of(*executor));
  }
  const std::int64_t after = memory_of(*attempt.executor);
  if (static_cast<double>(after) <= ratio * static_cast<double>(largest)) return std::string();
  return fmt::format("expected at most {} times {} bytes, found {}", ratio, largest, after);
}

std::string problem_of(const Result<std::string>& found) {
  return found ? *found : found.error().to_string();
}

std::string problem_of(const Case& tested, const Attempt& attempt, const std::string& key) {
  if (key == "outputs_equal_inputs_alias_safe")
    return tested.expect.at(key) == false ? shared_problem(attempt) : "";
  if (key == "inputs_unchanged") return inputs_problem(attempt);
  if (key == "outputs_of_earlier_runs_unchanged")
    return problem_of(earlier_outputs_problem(attempt));
  return problem_of(growth_problem(attempt, tested.number(key, 1)));
}

}  // namespace

void judge_memory(const Case& tested, const TriedWay& tried, Verdicts& verdicts) {
  for (const std::string& key : keys_of(tested)) {
    if (!kKeys.contains(key)) continue;
    std::string problem = tried.attempt.failure ? "no run: " + tried.attempt.failure_text()
                                                : problem_of(tested, tried.attempt, key);
    if (!problem.empty()) problem = tried.way.name + ": " + problem;
    verdicts.judge(key, problem);
  }
}

}  // namespace tessera::testing
