#include "plan/partition_limit.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tessera::plan {
namespace {

using Run = std::pair<std::size_t, std::size_t>;  // node positions, half-open

constexpr std::size_t kMaxSubsets = 200;

// Subsets of `count` runs out of all, where there are few enough; else nothing.
std::vector<std::vector<Run>> subsets(const std::vector<Run>& runs, std::size_t count) {
  double number = 1;
  for (std::size_t i = 0; i < count; ++i)
    number *= static_cast<double>(runs.size() - i) / static_cast<double>(i + 1);
  if (number > static_cast<double>(kMaxSubsets)) return {};
  std::vector<bool> chosen(runs.size(), false);
  std::fill_n(chosen.begin(), count, true);
  std::vector<std::vector<Run>> result;
  do {
    auto& subset = result.emplace_back();
    for (std::size_t i = 0; i < runs.size(); ++i)
      if (chosen[i]) subset.push_back(runs[i]);
  } while (std::prev_permutation(chosen.begin(), chosen.end()));
  return result;
}

class Limiter {
 public:
  Limiter(const AssignmentProblem& problem, const Target& target,
          const solve::SolveOptions& options)
      : problem_(problem), target_(target), options_(options), limited_(problem.problem) {
    options_.initial.reset();
  }

  Result<solve::Solution> run(solve::Solution solution) {
    const double bound = solution.lower_bound;
    bool is_limited = false;
    for (std::uint32_t device = 0; device < target_.device_count(); ++device) {
      const auto limit = target_.info(device).max_partitions;
      if (!limit) continue;
      const auto runs = runs_of(solution, device);
      if (static_cast<std::int64_t>(runs.size()) <= *limit) continue;
      is_limited = true;
      const auto count = static_cast<std::size_t>(std::max<std::int64_t>(*limit, 0));
      TESSERA_ASSIGN(const auto kept, best_runs(device, runs, count));
      limited_ = restricted(device, kept);
      TESSERA_ASSIGN(solution, solve::solve(limited_, options_));
    }
    if (!is_limited) return solution;
    solution.lower_bound = std::min(bound, solution.cost);
    const double largest = std::max(std::fabs(solution.cost), std::fabs(solution.lower_bound));
    solution.gap = largest > 0 ? (solution.cost - solution.lower_bound) / largest : 0;
    solution.optimal = solution.cost == solution.lower_bound;
    return solution;
  }

 private:
  [[nodiscard]] std::vector<Run> runs_of(const solve::Solution& solution,
                                         std::uint32_t device) const {
    return partitions_of(decode(problem_, solution.choice), target_.device_count())[device];
  }
  // The problem with the device taken from all nodes outside of the runs.
  [[nodiscard]] solve::Problem restricted(std::uint32_t device,
                                          const std::vector<Run>& runs) const {
    solve::Problem result = limited_;
    for (std::size_t i = 0; i < problem_.node_variables.size(); ++i) {
      const bool is_inside = std::ranges::any_of(
          runs, [&](const Run& run) { return i >= run.first && i < run.second; });
      if (is_inside) continue;
      auto& costs = result.variables[problem_.node_variables[i]].costs;
      for (std::size_t c = 0; c < costs.size(); ++c)
        if (problem_.node_choices.nodes[i][c].device == device)
          costs[c] = std::numeric_limits<double>::infinity();
    }
    return result;
  }
  // What the choice of runs costs; infinite where it breaks the limit all the same.
  Result<double> cost_of(std::uint32_t device, const std::vector<Run>& runs, std::size_t count) {
    const auto solution = solve::solve(restricted(device, runs), options_);
    if (!solution && solution.error().code == ErrorCode::kCancelled)
      return tl::unexpected(solution.error());
    if (!solution || runs_of(*solution, device).size() > count)
      return std::numeric_limits<double>::infinity();
    return solution->cost;
  }
  Result<std::vector<Run>> best_runs(std::uint32_t device, const std::vector<Run>& runs,
                                     std::size_t count) {
    auto choices = subsets(runs, count);
    std::vector<Run> best;
    if (!choices.empty()) {
      double best_cost = std::numeric_limits<double>::infinity();
      for (const auto& choice : choices) {
        TESSERA_ASSIGN(const double cost, cost_of(device, choice, count));
        if (cost < best_cost) {
          best_cost = cost;
          best = choice;
        }
      }
      return best;
    }
    while (best.size() < count) {  // the run that helps most beside those chosen so far
      double best_cost = std::numeric_limits<double>::infinity();
      Run next;
      for (const Run& run : runs) {
        if (std::ranges::find(best, run) != best.end()) continue;
        auto choice = best;
        choice.push_back(run);
        TESSERA_ASSIGN(const double cost, cost_of(device, choice, count));
        if (cost < best_cost) {
          best_cost = cost;
          next = run;
        }
      }
      if (!std::isfinite(best_cost)) break;
      best.push_back(next);
    }
    return best;
  }

  const AssignmentProblem& problem_;
  const Target& target_;
  solve::SolveOptions options_;
  solve::Problem limited_;  // with the limits that are kept by now
};

}  // namespace

std::vector<std::vector<std::pair<std::size_t, std::size_t>>> partitions_of(
    const Assignment& assignment, std::size_t device_count) {
  std::vector<std::vector<Run>> runs(device_count);
  for (std::size_t i = 0; i < assignment.nodes.size(); ++i) {
    auto& list = runs[assignment.nodes[i].device];
    if (!list.empty() && list.back().second == i)
      ++list.back().second;
    else
      list.emplace_back(i, i + 1);
  }
  return runs;
}

Result<solve::Solution> limit_partitions(const AssignmentProblem& problem, const Target& target,
                                         const solve::Solution& solution,
                                         const solve::SolveOptions& options) {
  return Limiter(problem, target, options).run(solution);
}

}  // namespace tessera::plan
