#include "plans/domains.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tessera::bench {

Domains::Domains(const solve::Problem& problem) {
  for (const solve::Variable& variable : problem.variables) {
    auto& choices = choices_.emplace_back();
    for (std::uint32_t k = 0; k < variable.costs.size(); ++k)
      if (std::isfinite(variable.costs[k])) choices.push_back(k);
  }
  std::vector<std::vector<HardPair>> pairs(problem.variables.size());
  for (const solve::PairCost& pair : problem.pairs) {
    if (std::ranges::all_of(pair.costs, [](double cost) { return std::isfinite(cost); })) continue;
    const std::size_t rows = problem.variables[pair.a].costs.size();
    const std::size_t columns = problem.variables[pair.b].costs.size();
    HardPair of_a{pair.b, std::vector(columns, std::vector<bool>(rows))};
    HardPair of_b{pair.a, std::vector(rows, std::vector<bool>(columns))};
    for (std::size_t i = 0; i < rows; ++i) {
      for (std::size_t j = 0; j < columns; ++j) {
        const bool allowed = std::isfinite(pair.costs[i * columns + j]);
        of_a.allowed[j][i] = allowed;
        of_b.allowed[i][j] = allowed;
      }
    }
    pairs[pair.a].push_back(std::move(of_a));
    pairs[pair.b].push_back(std::move(of_b));
  }
  pairs_ = std::make_shared<const std::vector<std::vector<HardPair>>>(std::move(pairs));
}

bool Domains::forbid(const Forced& taken) {
  return std::erase(choices_[taken.variable], taken.choice) == 0 || propagate(taken.variable);
}

bool Domains::force(const Forced& kept) {
  auto& choices = choices_[kept.variable];
  if (std::ranges::find(choices, kept.choice) == choices.end()) return false;
  choices = {kept.choice};
  return propagate(kept.variable);
}

bool Domains::has_partner(const std::vector<bool>& allowed, std::uint32_t variable) const {
  return std::ranges::any_of(choices_[variable], [&](std::uint32_t k) { return allowed[k]; });
}

bool Domains::propagate(std::uint32_t changed) {
  std::vector<std::uint32_t> open = {changed};
  while (!open.empty()) {
    const std::uint32_t variable = open.back();
    open.pop_back();
    if (choices_[variable].empty()) return false;
    for (const HardPair& pair : (*pairs_)[variable]) {
      const auto gone = std::erase_if(choices_[pair.neighbour], [&](std::uint32_t k) {
        return !has_partner(pair.allowed[k], variable);
      });
      if (gone > 0) open.push_back(pair.neighbour);
    }
  }
  return true;
}

void Domains::restrict(solve::Problem& problem) const {
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    std::vector<double>& costs = problem.variables[i].costs;
    std::vector<double> left(costs.size(), std::numeric_limits<double>::infinity());
    for (const std::uint32_t k : choices_[i]) left[k] = costs[k];
    costs = std::move(left);
  }
}

}  // namespace tessera::bench
