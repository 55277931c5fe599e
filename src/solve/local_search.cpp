#include "solve/local_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "solve/validate.h"

namespace tessera::solve {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::uint32_t kUnset = ~std::uint32_t{0};
constexpr unsigned kMaxPasses = 50;

class LocalSearch {
 public:
  explicit LocalSearch(const Problem& problem)
      : problem_(problem), pairs_of_(problem.variables.size()) {
    for (std::uint32_t i = 0; i < problem.pairs.size(); ++i) {
      pairs_of_[problem.pairs[i].a].push_back(i);
      pairs_of_[problem.pairs[i].b].push_back(i);
    }
  }

  // Each choice's cost with its tables; an unset neighbour adds the least it can.
  [[nodiscard]] std::vector<double> costs_of(std::uint32_t var,
                                             const std::vector<std::uint32_t>& choice) const {
    std::vector<double> costs = problem_.variables[var].costs;
    for (const std::uint32_t index : pairs_of_[var]) {
      const PairCost& pair = problem_.pairs[index];
      const bool by_row = pair.a == var;
      const std::uint32_t other = by_row ? pair.b : pair.a;
      const std::size_t others = problem_.variables[other].costs.size();
      for (std::size_t i = 0; i < costs.size(); ++i) {
        const auto at = [&](std::size_t j) {
          return pair.costs[by_row ? i * others + j : j * costs.size() + i];
        };
        if (choice[other] != kUnset) {
          costs[i] += at(choice[other]);
          continue;
        }
        double least = kInfinity;
        for (std::size_t j = 0; j < others; ++j) {
          least = std::min(least, at(j) + problem_.variables[other].costs[j]);
        }
        costs[i] += least;
      }
    }
    return costs;
  }

  [[nodiscard]] std::vector<std::uint32_t> greedy() const {
    std::vector<std::uint32_t> choice(problem_.variables.size(), kUnset);
    for (std::uint32_t var = 0; var < choice.size(); ++var) {
      const std::vector<double> costs = costs_of(var, choice);
      choice[var] =
          static_cast<std::uint32_t>(std::min_element(costs.begin(), costs.end()) - costs.begin());
    }
    return choice;
  }

  // Changes that lower the cost and keep `fits(var, value)`.
  template <typename Fits, typename Changed>
  void descend(std::vector<std::uint32_t>& choice, const Fits& fits, const Changed& changed) const {
    bool any = true;
    for (unsigned pass = 0; pass < kMaxPasses && any; ++pass) {
      any = false;
      for (std::uint32_t var = 0; var < choice.size(); ++var) {
        const std::vector<double> costs = costs_of(var, choice);
        std::uint32_t best = choice[var];
        for (std::uint32_t i = 0; i < costs.size(); ++i) {
          if (costs[i] < costs[best] && fits(var, i)) best = i;
        }
        if (best == choice[var]) continue;
        changed(var, best);
        choice[var] = best;
        any = true;
      }
    }
  }

 private:
  const Problem& problem_;
  std::vector<std::vector<std::uint32_t>> pairs_of_;
};

// The usage at every time between two ends of intervals, under a changing assignment.
class UsageProfile {
 public:
  UsageProfile(const Problem& problem, const std::vector<std::uint32_t>& choice)
      : problem_(problem), limit_(*problem.usage_limit) {
    std::vector<std::int64_t> times;
    for (const Variable& variable : problem.variables) {
      if (!counts(variable)) continue;
      times.push_back(variable.interval.lower);
      times.push_back(variable.interval.upper);
    }
    std::sort(times.begin(), times.end());
    times.erase(std::unique(times.begin(), times.end()), times.end());
    usage_.assign(times.size(), 0);
    spans_.resize(problem.variables.size());
    for (std::size_t i = 0; i < spans_.size(); ++i) {
      const Variable& variable = problem.variables[i];
      if (!counts(variable)) continue;
      const auto at = [&](std::int64_t time) {
        return static_cast<std::size_t>(std::lower_bound(times.begin(), times.end(), time) -
                                        times.begin());
      };
      spans_[i] = {at(variable.interval.lower), at(variable.interval.upper)};
      add(i, variable.usages[choice[i]]);
    }
  }

  void change(std::size_t var, std::uint32_t from, std::uint32_t to) {
    if (!counts(problem_.variables[var])) return;
    add(var, problem_.variables[var].usages[to] - problem_.variables[var].usages[from]);
  }
  [[nodiscard]] bool fits(std::size_t var, std::uint32_t from, std::uint32_t to) const {
    const Variable& variable = problem_.variables[var];
    if (!counts(variable)) return true;
    const std::int64_t more = variable.usages[to] - variable.usages[from];
    if (more <= 0) return true;
    for (std::size_t i = spans_[var].first; i < spans_[var].second; ++i) {
      if (usage_[i] + more > limit_) return false;
    }
    return true;
  }
  [[nodiscard]] std::size_t busiest() const {
    return static_cast<std::size_t>(std::max_element(usage_.begin(), usage_.end()) -
                                    usage_.begin());
  }
  [[nodiscard]] bool kept() const { return usage_.empty() || usage_[busiest()] <= limit_; }
  [[nodiscard]] bool live_at(std::size_t var, std::size_t time) const {
    return spans_[var].first <= time && time < spans_[var].second;
  }

 private:
  static bool counts(const Variable& variable) {
    return !variable.usages.empty() && variable.interval.lower < variable.interval.upper;
  }
  void add(std::size_t var, std::int64_t usage) {
    for (std::size_t i = spans_[var].first; i < spans_[var].second; ++i) usage_[i] += usage;
  }

  const Problem& problem_;
  std::int64_t limit_;
  std::vector<std::int64_t> usage_;
  std::vector<std::pair<std::size_t, std::size_t>> spans_;  // by variable: times [first, second)
};

// At the busiest time, the change that costs the least per unit of usage it saves, while the limit
// is broken. False where no change is left. Every change lowers a sum of usages, so it ends.
bool repair(const Problem& problem, const LocalSearch& search, UsageProfile& profile,
            std::vector<std::uint32_t>& choice) {
  while (!profile.kept()) {
    const std::size_t time = profile.busiest();
    double best_rate = kInfinity;
    std::uint32_t best_var = kUnset;
    std::uint32_t best_value = 0;
    for (std::uint32_t var = 0; var < choice.size(); ++var) {
      if (!profile.live_at(var, time)) continue;
      const std::vector<std::int64_t>& usages = problem.variables[var].usages;
      const std::vector<double> costs = search.costs_of(var, choice);
      for (std::uint32_t i = 0; i < costs.size(); ++i) {
        const std::int64_t saved = usages[choice[var]] - usages[i];
        if (saved <= 0 || std::isinf(costs[i])) continue;
        const double rate = (costs[i] - costs[choice[var]]) / static_cast<double>(saved);
        if (rate < best_rate) {
          best_rate = rate;
          best_var = var;
          best_value = i;
        }
      }
    }
    if (best_var == kUnset) return false;
    profile.change(best_var, choice[best_var], best_value);
    choice[best_var] = best_value;
  }
  return true;
}

}  // namespace

std::vector<std::uint32_t> greedy_assignment(const Problem& problem) {
  return LocalSearch(problem).greedy();
}

std::optional<std::vector<std::uint32_t>> improve_assignment(const Problem& problem,
                                                             std::vector<std::uint32_t> choice) {
  const LocalSearch search(problem);
  if (problem.usage_limit) {
    UsageProfile profile(problem, choice);
    if (!repair(problem, search, profile, choice)) return std::nullopt;
    search.descend(
        choice,
        [&](std::uint32_t var, std::uint32_t i) { return profile.fits(var, choice[var], i); },
        [&](std::uint32_t var, std::uint32_t i) { profile.change(var, choice[var], i); });
  } else {
    search.descend(
        choice, [](std::uint32_t, std::uint32_t) { return true; },
        [](std::uint32_t, std::uint32_t) {});
  }
  if (std::isinf(assignment_cost(problem, choice))) return std::nullopt;
  return choice;
}

}  // namespace tessera::solve
