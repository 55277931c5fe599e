#include "solve/random_problem_test.h"

#include <limits>
#include <random>
#include <string>

namespace tessera::solve {
namespace {

// std::mt19937 gives the same numbers everywhere; the standard distributions do not.
std::uint32_t below(std::mt19937& random, std::uint32_t bound) {
  return random() % bound;
}

std::vector<double> integer_costs(std::mt19937& random, std::size_t count, std::uint32_t bound) {
  std::vector<double> costs;
  for (std::size_t i = 0; i < count; ++i) costs.push_back(below(random, bound));
  return costs;
}

void add_integer_pair(std::mt19937& random, Problem& problem, std::uint32_t a, std::uint32_t b) {
  const std::size_t size = problem.variables[a].costs.size() * problem.variables[b].costs.size();
  problem.pairs.push_back({a, b, integer_costs(random, size, 100)});
}

Problem integer_variables(std::mt19937& random, std::uint32_t variables, std::uint32_t choices) {
  Problem problem;
  for (std::uint32_t i = 0; i < variables; ++i) {
    problem.variables.push_back({"", integer_costs(random, choices, 100), {}, {}, {}});
  }
  return problem;
}

// Some infinite, some fractional, some negative, many equal.
double drawn_cost(std::mt19937& random, std::uint32_t infinite_percent, std::uint32_t kind) {
  if (below(random, 100) < infinite_percent) return std::numeric_limits<double>::infinity();
  const std::uint32_t value = below(random, 30);
  switch (kind) {
    case 0: return value % 4;
    case 1: return value / 7.0;
    case 2: return static_cast<double>(value) - 15;
    default: return value * 1e6 + below(random, 1000) / 1000.0;
  }
}

}  // namespace

Problem random_problem(unsigned seed) {
  std::mt19937 random(seed);
  Problem problem;
  problem.name = "random " + std::to_string(seed);
  problem.constant = below(random, 3) == 0 ? below(random, 100) / 8.0 : 0;
  const std::uint32_t count = 2 + below(random, 9);
  const std::uint32_t infinite_percent = (seed % 3) * 10;
  const std::uint32_t kind = below(random, 4);
  const std::uint32_t shape = below(random, 4);
  const std::uint32_t most_choices = count <= 6 ? 4 : 3;
  for (std::uint32_t i = 0; i < count; ++i) {
    Variable& variable = problem.variables.emplace_back();
    const std::uint32_t choices = 1 + below(random, most_choices);
    for (std::uint32_t j = 0; j < choices; ++j) {
      variable.costs.push_back(drawn_cost(random, infinite_percent / 2, kind));
    }
  }
  const auto add = [&](std::uint32_t a, std::uint32_t b) {
    if (below(random, 2) == 0) std::swap(a, b);
    PairCost& pair = problem.pairs.emplace_back(PairCost{a, b, {}});
    const std::size_t size = problem.variables[a].costs.size() * problem.variables[b].costs.size();
    for (std::size_t i = 0; i < size; ++i) {
      pair.costs.push_back(drawn_cost(random, infinite_percent, kind));
    }
  };
  for (std::uint32_t i = 1; i < count; ++i) add(below(random, i), i);  // a tree
  if (shape == 1) add(0, count - 1);
  if (shape >= 2) {
    for (std::uint32_t i = 0; i < count * shape; ++i) {
      const std::uint32_t a = below(random, count);
      const std::uint32_t b = below(random, count);
      if (a != b) add(a, b);
    }
  }
  return problem;
}

Problem random_dense_problem(unsigned seed, std::uint32_t variables, std::uint32_t choices) {
  std::mt19937 random(seed);
  Problem problem = integer_variables(random, variables, choices);
  for (std::uint32_t a = 0; a < variables; ++a) {
    for (std::uint32_t b = a + 1; b < variables; ++b) {
      if (below(random, 4) != 0) add_integer_pair(random, problem, a, b);
    }
  }
  return problem;
}

Problem random_band_problem(unsigned seed, std::uint32_t variables, std::uint32_t choices,
                            std::uint32_t width) {
  std::mt19937 random(seed);
  Problem problem = integer_variables(random, variables, choices);
  for (std::uint32_t a = 0; a < variables; ++a) {
    for (std::uint32_t b = a + 1; b <= a + width && b < variables; ++b) {
      add_integer_pair(random, problem, a, b);
    }
  }
  return problem;
}

Problem random_grid_problem(unsigned seed, std::uint32_t rows, std::uint32_t columns,
                            std::uint32_t choices) {
  std::mt19937 random(seed);
  Problem problem = integer_variables(random, rows * columns, choices);
  for (std::uint32_t column = 0; column < columns; ++column) {
    for (std::uint32_t row = 0; row < rows; ++row) {
      const std::uint32_t at = column * rows + row;
      if (row + 1 < rows) add_integer_pair(random, problem, at, at + 1);
      if (column + 1 < columns) add_integer_pair(random, problem, at, at + rows);
    }
  }
  return problem;
}

}  // namespace tessera::solve
