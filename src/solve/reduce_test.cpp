#include "solve/reduce.h"

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "solve/brute_force.h"
#include "solve/bucket_elimination.h"
#include "solve/random_problem_test.h"
#include "solve/scale.h"
#include "solve/soft_consistency.h"
#include "solve/validate.h"

namespace tessera::solve {
namespace {

Network network_of(const Problem& problem) {
  return scale(problem, std::nullopt).network;
}

TEST(Reduce, DropsForbiddenAndDominatedChoices) {
  const double inf = std::numeric_limits<double>::infinity();
  Problem problem;  // value 1 of `a` has no partner; value 2 is never better than 0
  problem.variables = {{"a", {1, 0, 2}, {}, {}, {}},
                       {"b", {0, 1}, {}, {}, {}},
                       {"c", {0, 1}, {}, {}, {}},
                       {"d", {0, 1}, {}, {}, {}}};
  problem.pairs = {{0, 1, {0, 3, inf, inf, 1, 3}}, {0, 2, {0, 3, 0, 3, 0, 3}}};
  Network network = network_of(problem);
  ReductionCounts counts;
  const ReduceResult result = reduce(network, counts);
  EXPECT_EQ(counts.forbidden_choices, 1U);
  EXPECT_GE(counts.dominated_choices + counts.degree0 + counts.degree1, 1U);
  EXPECT_EQ(result.eliminations.size(), 4U);
  std::vector<std::uint32_t> choice(4, 9);
  restore(result.eliminations, choice);
  EXPECT_EQ(choice, (std::vector<std::uint32_t>{0, 0, 0, 0}));
}

TEST(Reduce, TreesAndCyclesVanish) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    Problem problem = random_band_problem(seed, 30, 5, 1);
    problem.pairs.push_back({0, 29, problem.pairs[0].costs});  // closes the cycle
    Network network = network_of(problem);
    ReductionCounts counts;
    const ReduceResult result = reduce(network, counts);
    EXPECT_EQ(result.eliminations.size(), 30U);
    std::vector<std::uint32_t> choice(30);
    restore(result.eliminations, choice);
    const ScaledProblem scaled = scale(problem, std::nullopt);
    EXPECT_TRUE(scaled.exact);
    EXPECT_EQ(assignment_cost(problem, choice), scaled.unscale(network.constant));
  }
}

// The optimum of what remains, by elimination without reductions, is that of the whole.
TEST(Reduce, KeepsTheOptimum) {
  int cores = 0;
  for (unsigned seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Problem problem = seed % 2 == 0 ? random_problem(seed) : random_dense_problem(seed, 7, 3);
    Network whole = network_of(problem);
    Network reduced = whole;
    const auto solved = eliminate_buckets(whole, *elimination_order(whole, 1'000'000));
    ReductionCounts counts;
    const ReduceResult result = reduce(reduced, counts);
    if (solved.cost >= whole.top) {
      const auto rest = reduced.infeasible()
                            ? EliminationResult{}
                            : eliminate_buckets(reduced, *elimination_order(reduced, 1'000'000));
      EXPECT_GE(rest.cost, whole.top);
      continue;
    }
    ASSERT_FALSE(reduced.infeasible());
    const auto rest = eliminate_buckets(reduced, *elimination_order(reduced, 1'000'000));
    EXPECT_EQ(rest.cost, solved.cost);
    std::vector<std::uint32_t> choice(problem.variables.size(), 0);
    for (std::size_t i = 0; i < choice.size(); ++i) {
      if (!reduced.vars[i].live) continue;
      choice[i] = reduced.vars[i].values[rest.positions[i]];
      ++cores;
    }
    restore(result.eliminations, choice);
    EXPECT_EQ(cost_of(whole, choice), solved.cost);
  }
  EXPECT_GT(cores, 100);
}

// Sweeps never change the cost of an assignment below the top, and their bound holds.
TEST(Sweep, KeepsCostsAndBoundsThem) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Problem problem = random_dense_problem(seed, 6, 3);
    const Network whole = network_of(problem);
    Network swept = whole;
    for (int i = 0; i < 5; ++i) sweep(swept);
    const auto best = eliminate_buckets(whole, *elimination_order(whole, 1'000'000));
    EXPECT_LE(swept.constant, best.cost);
    std::vector<std::uint32_t> positions(6, 0);
    for (std::uint32_t code = 0; code < 729; ++code) {
      for (std::uint32_t i = 0, rest = code; i < 6; ++i, rest /= 3) positions[i] = rest % 3;
      ASSERT_EQ(cost_of(swept, positions), cost_of(whole, positions));
    }
    std::uint64_t work = 0;
    EXPECT_GE(cost_of(swept, decode(swept, work)), best.cost);
  }
}

}  // namespace
}  // namespace tessera::solve
