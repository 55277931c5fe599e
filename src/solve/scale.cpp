#include "solve/scale.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "solve/validate.h"

namespace tessera::solve {
namespace {

constexpr int kCostBits = 56;  // the range of total costs in integers: well below kForbidden
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Range {
  long double least = 0;
  long double most = 0;  // of the finite costs
};

// {0, 0} where no cost is finite.
Range range_of(const std::vector<double>& costs) {
  double least = kInfinity;
  double most = -kInfinity;
  for (const double cost : costs) {
    if (std::isinf(cost)) continue;
    least = std::min(least, cost);
    most = std::max(most, cost);
  }
  if (std::isinf(least)) return {};
  return {static_cast<long double>(least), static_cast<long double>(most)};
}

class Scaler {
 public:
  Scaler(const Problem& problem, std::optional<std::span<const std::uint32_t>> incumbent)
      : problem_(problem), incumbent_(incumbent) {}

  ScaledProblem run() {
    find_ranges();
    if (incumbent_) range_ = std::max(0.0L, assignment_cost(problem_, *incumbent_) - scaled_.base);
    scaled_.exponent = exponent_for(range_);
    add_variables();
    add_pairs();
    scaled_.terms = problem_.variables.size() + problem_.pairs.size();
    scaled_.network.top =
        incumbent_ ? incumbent_cost() : convert(range_, 0) + static_cast<Cost>(scaled_.terms) + 1;
    return std::move(scaled_);
  }

 private:
  void find_ranges() {
    scaled_.base = problem_.constant;
    const auto count = [&](const std::vector<double>& costs, std::vector<Range>& ranges) {
      ranges.push_back(range_of(costs));
      scaled_.base += ranges.back().least;
      range_ += ranges.back().most - ranges.back().least;
    };
    for (const Variable& variable : problem_.variables) count(variable.costs, variables_);
    for (const PairCost& pair : problem_.pairs) count(pair.costs, pairs_);
  }

  static int exponent_for(long double range) {
    if (range <= 0) return 0;
    int bits = 0;
    std::frexp(range, &bits);  // range < 2^bits
    return kCostBits - bits;
  }

  Cost convert(long double cost, long double least) {
    const long double scaled = std::ldexp(cost - least, scaled_.exponent);
    if (scaled >= static_cast<long double>(kForbidden)) return kForbidden;
    const long double rounded = std::round(scaled);
    scaled_.exact = scaled_.exact && rounded == scaled;
    return static_cast<Cost>(rounded);
  }

  void add_variables() {
    for (std::size_t i = 0; i < problem_.variables.size(); ++i) {
      Network::Var& var = scaled_.network.vars.emplace_back();
      var.id = static_cast<std::uint32_t>(i);
      for (const double cost : problem_.variables[i].costs) {
        var.values.push_back(static_cast<std::uint32_t>(var.values.size()));
        var.unary.push_back(std::isinf(cost) ? kForbidden : convert(cost, variables_[i].least));
      }
    }
  }

  void add_pairs() {
    for (std::size_t i = 0; i < problem_.pairs.size(); ++i) {
      const PairCost& pair = problem_.pairs[i];
      Network::Table table;
      table.reserve(pair.costs.size());
      for (const double cost : pair.costs) {
        table.push_back(std::isinf(cost) ? kForbidden : convert(cost, pairs_[i].least));
      }
      if (scaled_.network.add_table(pair.a, pair.b, std::move(table))) ++scaled_.merged_pairs;
    }
  }

  [[nodiscard]] Cost incumbent_cost() const {
    Cost cost = 0;
    for (std::size_t i = 0; i < incumbent_->size(); ++i) {
      cost = add(cost, scaled_.network.vars[i].unary[(*incumbent_)[i]]);
    }
    for (const Network::Edge& edge : scaled_.network.edges) {
      const std::size_t columns = scaled_.network.vars[edge.b].values.size();
      cost = add(cost, (*edge.table)[(*incumbent_)[edge.a] * columns + (*incumbent_)[edge.b]]);
    }
    return cost;
  }

  const Problem& problem_;
  std::optional<std::span<const std::uint32_t>> incumbent_;
  ScaledProblem scaled_;
  std::vector<Range> variables_, pairs_;
  long double range_ = 0;
};

}  // namespace

double ScaledProblem::unscale(Cost cost) const {
  return static_cast<double>(base + std::ldexp(static_cast<long double>(cost), -exponent));
}

double ScaledProblem::unscale_bound(Cost bound) const {
  if (exact) return unscale(bound);
  const long double rounding = static_cast<long double>(terms) / 2;
  return static_cast<double>(base +
                             std::ldexp(static_cast<long double>(bound) - rounding, -exponent));
}

ScaledProblem scale(const Problem& problem,
                    std::optional<std::span<const std::uint32_t>> incumbent) {
  return Scaler(problem, incumbent).run();
}

}  // namespace tessera::solve
