#include "solve/solve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "base/error.h"
#include "solve/branch_and_bound.h"
#include "solve/local_search.h"
#include "solve/scale.h"
#include "solve/validate.h"

namespace tessera::solve {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kPlentyOfBits = 20;  // of the fraction: then costs are hardly rounded
constexpr int kWorthwhileBits = 4;

using Choice = std::vector<std::uint32_t>;

// The best assignment so far.
struct Incumbent {
  std::optional<Choice> choice;
  double cost = kInfinity;

  void offer(const Problem& problem, const Choice& other) {
    const double other_cost = assignment_cost(problem, other);
    if (other_cost >= cost) return;
    cost = other_cost;
    choice = other;
  }
};

Status check_initial(const Problem& problem, const std::optional<Choice>& initial) {
  if (!initial) return {};
  if (initial->size() != problem.variables.size()) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("initial assignment: expected {} choices, found {}",
                            problem.variables.size(), initial->size()));
  }
  for (std::size_t i = 0; i < initial->size(); ++i) {
    if ((*initial)[i] < problem.variables[i].costs.size()) continue;
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format("initial assignment: choice {} of variable {} is out of range (it has {})",
                    (*initial)[i], i, problem.variables[i].costs.size()));
  }
  return {};
}

class Solver {
 public:
  Solver(const Problem& problem, const SolveOptions& options)
      : problem_(problem), options_(options) {}

  Result<Solution> run() {
    offer_first();
    TESSERA_TRY(refine_scale());
    TESSERA_TRY(search(options_.node_limit));
    if (!relaxed_.choice) return fail_without_assignment();
    if (problem_.usage_limit) TESSERA_TRY(keep_usage_limit());
    return finish();
  }

 private:
  void offer_first() {
    if (options_.initial) {
      relaxed_.offer(problem_, *options_.initial);
      if (problem_.usage_limit &&
          peak_usage(problem_, *options_.initial) <= *problem_.usage_limit) {
        kept_.offer(problem_, *options_.initial);
      }
    }
    const Choice greedy = greedy_assignment(problem_);
    relaxed_.offer(problem_, greedy);
    if (problem_.usage_limit) return;
    if (const auto improved = improve_assignment(problem_, greedy))
      relaxed_.offer(problem_, *improved);
  }

  // Huge costs that stand for infinity coarsen the scale until an assignment without them is known.
  Status refine_scale() {
    for (int previous = std::numeric_limits<int>::min();;) {
      const ScaledProblem scaled = rescaled();
      if (scaled.exact || scaled.exponent >= kPlentyOfBits ||
          scaled.exponent < previous + kWorthwhileBits) {
        return {};
      }
      previous = scaled.exponent;
      TESSERA_TRY(search(0));
    }
  }

  [[nodiscard]] ScaledProblem rescaled() const {
    if (!relaxed_.choice) return scale(problem_, std::nullopt);
    return scale(problem_, std::span<const std::uint32_t>(*relaxed_.choice));
  }

  Status search(std::uint64_t node_limit) {
    ScaledProblem scaled = rescaled();
    const Cost top = scaled.network.top;
    const SearchResult result = branch_and_bound(std::move(scaled.network), limits(node_limit));
    if (options_.cancel.stop_requested())
      return fail(ErrorCode::kCancelled, "solving was cancelled");
    if (result.cost < kForbidden) relaxed_.offer(problem_, result.choice);
    proven_ = result.lower_bound >= std::min(top, result.cost);
    infeasible_ = proven_ && !relaxed_.choice;
    if (relaxed_.choice) {
      const double bound = proven_ ? relaxed_.cost : scaled.unscale_bound(result.lower_bound);
      lower_bound_ = std::min(bound, relaxed_.cost);
    }
    solution_.search_nodes = result.nodes;
    solution_.reductions = result.reductions;
    solution_.reductions.merged_pairs += scaled.merged_pairs;
    return {};
  }

  [[nodiscard]] SearchLimits limits(std::uint64_t node_limit) const {
    SearchLimits limits;
    limits.nodes = node_limit;
    limits.work = options_.work_limit;
    limits.elimination_entries = options_.elimination_entries;
    limits.cancel = options_.cancel;
    if (options_.progress) {
      limits.progress = [this](std::uint64_t nodes) { options_.progress({nodes, relaxed_.cost}); };
    }
    return limits;
  }

  [[nodiscard]] tl::unexpected<Error> fail_without_assignment() const {
    if (infeasible_) {
      return fail(ErrorCode::kFailedPrecondition,
                  "no assignment is allowed: every one holds a forbidden choice or pair");
    }
    return fail(ErrorCode::kResourceExhausted,
                fmt::format("no allowed assignment was found within {} search nodes",
                            solution_.search_nodes));
  }

  Status keep_usage_limit() {
    if (const auto repaired = improve_assignment(problem_, *relaxed_.choice)) {
      if (peak_usage(problem_, *repaired) <= *problem_.usage_limit)
        kept_.offer(problem_, *repaired);
    }
    if (kept_.choice) return {};
    return fail(ErrorCode::kResourceExhausted,
                fmt::format("no assignment was found that keeps the usage limit {} (the best "
                            "without it uses {}); the exact search does not cover usage limits",
                            *problem_.usage_limit, peak_usage(problem_, *relaxed_.choice)));
  }

  Result<Solution> finish() {
    const Incumbent& best = problem_.usage_limit ? kept_ : relaxed_;
    solution_.choice = *best.choice;
    solution_.cost = best.cost;
    solution_.lower_bound = std::min(lower_bound_, best.cost);
    solution_.optimal = proven_ && solution_.lower_bound == best.cost;
    if (const double distance = best.cost - solution_.lower_bound; distance > 0) {
      solution_.gap = distance / std::max(std::fabs(best.cost), std::fabs(solution_.lower_bound));
    }
    if (Status valid = validate(problem_, solution_); !valid) {
      return fail(ErrorCode::kInternal,
                  "the solver's answer is wrong: " + valid.error().to_string());
    }
    return std::move(solution_);
  }

  const Problem& problem_;
  const SolveOptions& options_;
  Incumbent relaxed_;  // the usage limit left aside
  Incumbent kept_;     // keeps the usage limit
  Solution solution_;
  double lower_bound_ = -kInfinity;
  bool proven_ = false;      // nothing is cheaper than relaxed_
  bool infeasible_ = false;  // nothing is allowed
};

}  // namespace

Result<Solution> solve(const Problem& problem, const SolveOptions& options) {
  TESSERA_TRY(check_problem(problem));
  TESSERA_TRY(check_initial(problem, options.initial));
  return Solver(problem, options).run();
}

}  // namespace tessera::solve
