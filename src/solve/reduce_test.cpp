#include "solve/reduce.h"

#include <gtest/gtest.h>

#include <algorithm>
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

// Calls `check(positions)` for every assignment.
template <typename Check>
void for_each_assignment(const Network& network, const Check& check) {
  std::vector<std::uint32_t> positions(network.vars.size(), 0);
  for (std::size_t i = 0; i < positions.size();) {
    if (i == 0) check(positions);
    if (::testing::Test::HasFatalFailure()) return;
    if (++positions[i] < network.vars[i].values.size()) {
      i = 0;
    } else {
      positions[i++] = 0;
    }
  }
}

// With forbidden choices, and a top that some assignments reach: those below it keep their cost,
// none of the others falls below it.
TEST(Sweep, KeepsCostsBelowTheTop) {
  unsigned below = 0;
  unsigned above = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Network whole = network_of(random_problem(seed));
    if (whole.vars.size() > 7) continue;
    std::vector<std::uint32_t> some(whole.vars.size(), 0);
    whole.top = std::max(Cost{1}, std::min(whole.top, cost_of(whole, some)));
    Network swept = whole;
    for (unsigned i = 0; i < 1 + seed % 5 && !swept.infeasible(); ++i) sweep(swept);
    if (!swept.infeasible() && seed % 2 == 0) improve_bound(swept, 3, 1'000'000);
    for_each_assignment(whole, [&](const std::vector<std::uint32_t>& positions) {
      const Cost cost = cost_of(whole, positions);
      if (cost >= whole.top) {
        ++above;
        ASSERT_GE(cost_of(swept, positions), whole.top);
      } else {
        ++below;
        ASSERT_FALSE(swept.infeasible());
        ASSERT_EQ(cost_of(swept, positions), cost);
      }
    });
  }
  EXPECT_GT(below, 1000U);
  EXPECT_GT(above, 1000U);
}

// No sum overflows where costs are as large as the largest top allows.
TEST(Sweep, KeepsTheLargestCosts) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Network whole = network_of(random_dense_problem(seed, 6, 3));
    const Cost factor = kForbidden / 4 / whole.top;
    whole.top = kForbidden / 4;
    for (Network::Var& var : whole.vars) {
      for (Cost& cost : var.unary) cost *= factor;
    }
    for (std::uint32_t edge = 0; edge < whole.edges.size(); ++edge) {
      for (Cost& cost : whole.mutable_table(edge)) cost *= factor;
    }
    Network swept = whole;
    improve_bound(swept, 200, 10'000'000);
    ASSERT_FALSE(swept.infeasible());
    for_each_assignment(whole, [&](const std::vector<std::uint32_t>& positions) {
      ASSERT_EQ(cost_of(swept, positions), cost_of(whole, positions));
    });
  }
}

}  // namespace
}  // namespace tessera::solve
