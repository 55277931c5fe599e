#include "solve/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"

namespace tessera::solve {
namespace {

constexpr double kRelativeTolerance = 1e-9;

tl::unexpected<Error> invalid(std::string message) {
  return fail(ErrorCode::kInvalidArgument, std::move(message));
}

// A sum whose error does not grow with the number of terms (Neumaier 1974).
class CompensatedSum {
 public:
  void add(double value) {
    if (std::isinf(value)) infinite_ = true;
    if (infinite_) return;
    const double next = sum_ + value;
    correction_ +=
        std::fabs(sum_) >= std::fabs(value) ? (sum_ - next) + value : (value - next) + sum_;
    sum_ = next;
  }
  [[nodiscard]] double value() const {
    return infinite_ ? std::numeric_limits<double>::infinity() : sum_ + correction_;
  }

 private:
  double sum_ = 0;
  double correction_ = 0;
  bool infinite_ = false;
};

// "3" or "3 ('conv1')".
std::string variable_text(const Problem& problem, std::size_t index) {
  const std::string& name = problem.variables[index].name;
  return name.empty() ? fmt::format("{}", index) : fmt::format("{} ('{}')", index, name);
}

Status check_cost(double cost, const std::string& place, std::size_t index) {
  if (std::isnan(cost)) return invalid(fmt::format("{}: cost {} is not a number", place, index));
  if (std::isinf(cost) && cost < 0) {
    return invalid(fmt::format("{}: cost {} is -infinity", place, index));
  }
  return {};
}

Status check_variable(const Problem& problem, std::size_t index) {
  const Variable& variable = problem.variables[index];
  const std::string place = "variable " + variable_text(problem, index);
  const std::size_t choices = variable.costs.size();
  if (choices == 0) return invalid(fmt::format("{}: expected at least one choice", place));
  for (std::size_t i = 0; i < choices; ++i) TESSERA_TRY(check_cost(variable.costs[i], place, i));
  if (!variable.choice_names.empty() && variable.choice_names.size() != choices) {
    return invalid(fmt::format("{}: expected {} choice names, found {}", place, choices,
                               variable.choice_names.size()));
  }
  if (!variable.usages.empty() && variable.usages.size() != choices) {
    return invalid(
        fmt::format("{}: expected {} usages, found {}", place, choices, variable.usages.size()));
  }
  for (const std::int64_t usage : variable.usages) {
    if (usage < 0) return invalid(fmt::format("{}: usage {} is negative", place, usage));
  }
  if (variable.interval.lower > variable.interval.upper) {
    return invalid(fmt::format("{}: interval [{}, {}) ends before it begins", place,
                               variable.interval.lower, variable.interval.upper));
  }
  return {};
}

Status check_pair(const Problem& problem, std::size_t index) {
  const PairCost& pair = problem.pairs[index];
  const std::string place = fmt::format("pair {}", index);
  for (const std::uint32_t end : {pair.a, pair.b}) {
    if (end >= problem.variables.size()) {
      return invalid(fmt::format("{}: variable {} does not exist (there are {})", place, end,
                                 problem.variables.size()));
    }
  }
  if (pair.a == pair.b) {
    return invalid(fmt::format("{}: expected two different variables, found {} twice", place,
                               variable_text(problem, pair.a)));
  }
  const std::size_t rows = problem.variables[pair.a].costs.size();
  const std::size_t columns = problem.variables[pair.b].costs.size();
  if (pair.costs.size() != rows * columns) {
    return invalid(fmt::format("{}: expected {} values ({} x {}), found {}", place, rows * columns,
                               rows, columns, pair.costs.size()));
  }
  for (std::size_t i = 0; i < pair.costs.size(); ++i) {
    TESSERA_TRY(check_cost(pair.costs[i], place, i));
  }
  return {};
}

// The usages of all variables, at their largest, must have a sum that fits.
Status check_usage_sum(const Problem& problem) {
  std::int64_t sum = 0;
  for (const Variable& variable : problem.variables) {
    std::int64_t largest = 0;
    for (const std::int64_t usage : variable.usages) largest = std::max(largest, usage);
    if (__builtin_add_overflow(sum, largest, &sum)) {
      return invalid("the sum of the largest usages does not fit 63 bits");
    }
  }
  return {};
}

Status check_choices(const Problem& problem, std::span<const std::uint32_t> choice) {
  if (choice.size() != problem.variables.size()) {
    return invalid(
        fmt::format("expected {} choices, found {}", problem.variables.size(), choice.size()));
  }
  for (std::size_t i = 0; i < choice.size(); ++i) {
    const std::vector<double>& costs = problem.variables[i].costs;
    if (choice[i] >= costs.size()) {
      return invalid(fmt::format("variable {}: choice {} is out of range (it has {})",
                                 variable_text(problem, i), choice[i], costs.size()));
    }
    if (std::isinf(costs[choice[i]])) {
      return invalid(
          fmt::format("variable {}: choice {} is forbidden", variable_text(problem, i), choice[i]));
    }
  }
  for (std::size_t i = 0; i < problem.pairs.size(); ++i) {
    const PairCost& pair = problem.pairs[i];
    const std::size_t columns = problem.variables[pair.b].costs.size();
    if (std::isinf(pair.costs[choice[pair.a] * columns + choice[pair.b]])) {
      return invalid(
          fmt::format("pair {}: choices {} and {} of variables {} and {} are forbidden "
                      "together",
                      i, choice[pair.a], choice[pair.b], variable_text(problem, pair.a),
                      variable_text(problem, pair.b)));
    }
  }
  return {};
}

Status check_claims(const Solution& solution, double cost) {
  const double tolerance = kRelativeTolerance * std::max(1.0, std::fabs(cost));
  if (!(std::fabs(solution.cost - cost) <= tolerance)) {
    return invalid(
        fmt::format("claimed cost {} is not the cost of the choices, {}", solution.cost, cost));
  }
  if (!(solution.lower_bound <= solution.cost + tolerance)) {
    return invalid(
        fmt::format("lower bound {} is above the cost {}", solution.lower_bound, solution.cost));
  }
  const double distance = std::max(0.0, solution.cost - solution.lower_bound);
  const double size = std::max(std::fabs(solution.cost), std::fabs(solution.lower_bound));
  const double gap = distance == 0 ? 0 : distance / size;
  if (!(std::fabs(solution.gap - gap) <= kRelativeTolerance)) {
    return invalid(fmt::format("claimed gap {} is not that of cost {} and lower bound {}, {}",
                               solution.gap, solution.cost, solution.lower_bound, gap));
  }
  if (solution.optimal && distance > tolerance) {
    return invalid(fmt::format("claims to be optimal, but the lower bound {} is below the cost {}",
                               solution.lower_bound, solution.cost));
  }
  return {};
}

}  // namespace

Status check_problem(const Problem& problem) {
  if (!std::isfinite(problem.constant)) {
    return invalid(fmt::format("constant: expected a finite number, found {}", problem.constant));
  }
  for (std::size_t i = 0; i < problem.variables.size(); ++i)
    TESSERA_TRY(check_variable(problem, i));
  for (std::size_t i = 0; i < problem.pairs.size(); ++i) TESSERA_TRY(check_pair(problem, i));
  if (problem.usage_limit && *problem.usage_limit < 0) {
    return invalid(fmt::format("usage limit {} is negative", *problem.usage_limit));
  }
  return check_usage_sum(problem);
}

double assignment_cost(const Problem& problem, std::span<const std::uint32_t> choice) {
  CompensatedSum sum;
  sum.add(problem.constant);
  for (std::size_t i = 0; i < choice.size(); ++i) sum.add(problem.variables[i].costs[choice[i]]);
  for (const PairCost& pair : problem.pairs) {
    const std::size_t columns = problem.variables[pair.b].costs.size();
    sum.add(pair.costs[choice[pair.a] * columns + choice[pair.b]]);
  }
  return sum.value();
}

std::int64_t peak_usage(const Problem& problem, std::span<const std::uint32_t> choice) {
  std::map<std::int64_t, std::int64_t> change_at;
  for (std::size_t i = 0; i < choice.size(); ++i) {
    const Variable& variable = problem.variables[i];
    if (variable.usages.empty() || variable.interval.lower >= variable.interval.upper) continue;
    change_at[variable.interval.lower] += variable.usages[choice[i]];
    change_at[variable.interval.upper] -= variable.usages[choice[i]];
  }
  std::int64_t live = 0;
  std::int64_t peak = 0;
  for (const auto& [time, change] : change_at) {
    live += change;
    peak = std::max(peak, live);
  }
  return peak;
}

Status validate(const Problem& problem, const Solution& solution) {
  TESSERA_TRY(check_problem(problem));
  TESSERA_TRY(check_choices(problem, solution.choice));
  TESSERA_TRY(check_claims(solution, assignment_cost(problem, solution.choice)));
  if (problem.usage_limit) {
    const std::int64_t peak = peak_usage(problem, solution.choice);
    if (peak > *problem.usage_limit) {
      return invalid(fmt::format("usage {} is above the limit {}", peak, *problem.usage_limit));
    }
  }
  return {};
}

}  // namespace tessera::solve
