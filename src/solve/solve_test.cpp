#include "solve/solve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "solve/brute_force.h"
#include "solve/random_problem_test.h"
#include "solve/validate.h"

namespace tessera::solve {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Solve, AnEmptyProblemCostsItsConstant) {
  Problem problem;
  problem.constant = 2.5;
  const Result<Solution> solution = solve(problem);
  ASSERT_TRUE(solution) << solution.error().to_string();
  EXPECT_EQ(solution->cost, 2.5);
  EXPECT_TRUE(solution->optimal);
  EXPECT_TRUE(solution->choice.empty());
}

TEST(Solve, TakesTheCheapestPair) {
  Problem problem;
  problem.variables = {{"a", {1, 4}, {}, {}, {}}, {"b", {1, 1}, {}, {}, {}}};
  problem.pairs = {{0, 1, {10, 20, 8, 5}}};
  const Result<Solution> solution = solve(problem);
  ASSERT_TRUE(solution);
  EXPECT_THAT(solution->choice, ElementsAre(1, 1));
  EXPECT_EQ(solution->cost, 10);
  EXPECT_EQ(solution->lower_bound, 10);
  EXPECT_EQ(solution->gap, 0);
}

// Against enumeration: trees, cycles, dense graphs, infinities, negative costs, parallel pairs.
TEST(Solve, EqualsBruteForceOnRandomProblems) {
  int infeasible = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Problem problem = random_problem(seed);
    SolveOptions options;
    if (seed % 2 == 1) options.elimination_entries = 0;  // only branch and bound
    const Result<Solution> solution = solve(problem, options);
    const Result<Solution> expected = brute_force(problem);
    ASSERT_EQ(solution.has_value(), expected.has_value())
        << (solution ? expected.error() : solution.error()).to_string();
    if (!expected) {
      EXPECT_EQ(solution.error().code, ErrorCode::kFailedPrecondition);
      ++infeasible;
      continue;
    }
    const double tolerance = 1e-9 * std::max(1.0, std::fabs(expected->cost));
    EXPECT_NEAR(solution->cost, expected->cost, tolerance);
    EXPECT_TRUE(solution->optimal);
    const Status valid = validate(problem, *solution);
    EXPECT_TRUE(valid) << valid.error().to_string();
  }
  EXPECT_GT(infeasible, 20);
  EXPECT_LT(infeasible, 1500);
}

TEST(Solve, ABoundUnderAnyNodeLimitHolds) {
  int open = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Problem problem = random_dense_problem(seed, 8, 4);
    const Result<Solution> expected = brute_force(problem);
    ASSERT_TRUE(expected);
    for (const std::uint64_t limit : {0, 1, 3, 10}) {
      SolveOptions options;
      options.node_limit = limit;
      options.elimination_entries = 0;
      const Result<Solution> solution = solve(problem, options);
      ASSERT_TRUE(solution) << solution.error().to_string();
      EXPECT_LE(solution->search_nodes, limit);
      EXPECT_LE(solution->lower_bound, expected->cost + 1e-9);
      EXPECT_GE(solution->cost, expected->cost - 1e-9);
      EXPECT_TRUE(validate(problem, *solution));
      EXPECT_TRUE(!solution->optimal || std::fabs(solution->cost - expected->cost) <= 1e-9);
      open += solution->optimal ? 0 : 1;
    }
  }
  EXPECT_GT(open, 0);  // the limits did stop some searches
}

TEST(Solve, IsNeverWorseThanTheInitialAssignment) {
  for (unsigned seed = 0; seed < 8; ++seed) {
    const Problem problem = random_dense_problem(seed, 25, 5);
    SolveOptions options;
    options.node_limit = 0;
    options.elimination_entries = 0;
    const Result<Solution> first = solve(problem, options);
    ASSERT_TRUE(first);
    options.node_limit = 200;
    const Result<Solution> longer = solve(problem, options);
    ASSERT_TRUE(longer);
    options.node_limit = 0;
    options.initial = longer->choice;
    const Result<Solution> again = solve(problem, options);
    ASSERT_TRUE(again);
    EXPECT_LE(again->cost, longer->cost);
  }
}

TEST(Solve, IsDeterministic) {
  const Problem problem = random_dense_problem(7, 16, 5);
  SolveOptions options;
  options.elimination_entries = 0;
  const Result<Solution> first = solve(problem, options);
  const Result<Solution> second = solve(problem, options);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->choice, second->choice);
  EXPECT_EQ(first->search_nodes, second->search_nodes);
  EXPECT_EQ(first->lower_bound, second->lower_bound);
}

TEST(Solve, SolvesALongChainByReductionsAlone) {
  const Problem problem = random_band_problem(1, 2000, 12, 1);
  const Result<Solution> solution = solve(problem);
  ASSERT_TRUE(solution);
  EXPECT_TRUE(solution->optimal);
  EXPECT_EQ(solution->search_nodes, 0U);
  EXPECT_EQ(solution->reductions.bucket_eliminated, 0U);
}

TEST(Solve, SolvesTreewidthThreeByDynamicProgramming) {
  const Problem problem = random_band_problem(2, 2000, 8, 3);
  const Result<Solution> solution = solve(problem);
  ASSERT_TRUE(solution);
  EXPECT_TRUE(solution->optimal);
  EXPECT_EQ(solution->search_nodes, 0U);
}

TEST(Solve, SolvesAGrid) {
  const Problem problem = random_grid_problem(3, 5, 400, 4);
  const Result<Solution> solution = solve(problem);
  ASSERT_TRUE(solution);
  EXPECT_TRUE(solution->optimal);
}

// Without dynamic programming the search goes deep; its limits leave a valid answer.
TEST(Solve, StopsADeepSearch) {
  const Problem problem = random_grid_problem(4, 30, 40, 3);
  SolveOptions options;
  options.elimination_entries = 0;
  options.node_limit = 400;
  const Result<Solution> by_nodes = solve(problem, options);
  ASSERT_TRUE(by_nodes) << by_nodes.error().to_string();
  EXPECT_GT(by_nodes->lower_bound, 0.9 * by_nodes->cost);
  options.node_limit = 1'000'000;
  options.work_limit = 1'000'000;
  const Result<Solution> by_work = solve(problem, options);
  ASSERT_TRUE(by_work) << by_work.error().to_string();
  EXPECT_LE(by_work->lower_bound, by_nodes->cost);
  EXPECT_LE(by_nodes->lower_bound, by_work->cost);
}

TEST(Solve, HugeCostsThatStandForInfinityDoNotCostPrecision) {
  Problem problem = random_dense_problem(11, 8, 3);
  const Result<Solution> expected = brute_force(problem);
  ASSERT_TRUE(expected);
  for (Variable& variable : problem.variables) variable.costs.push_back(1e18);
  for (PairCost& pair : problem.pairs) {
    std::vector<double> costs;
    for (std::size_t i = 0; i < 4; ++i) {
      for (std::size_t j = 0; j < 4; ++j)
        costs.push_back(i < 3 && j < 3 ? pair.costs[i * 3 + j] : 1e18);
    }
    pair.costs = costs;
  }
  const Result<Solution> solution = solve(problem);
  ASSERT_TRUE(solution);
  EXPECT_EQ(solution->cost, expected->cost);
  EXPECT_TRUE(solution->optimal);
}

TEST(Solve, RefusesAnInfeasibleProblem) {
  Problem problem;
  const double inf = std::numeric_limits<double>::infinity();
  problem.variables = {
      {"a", {0, 0}, {}, {}, {}}, {"b", {0, 0}, {}, {}, {}}, {"c", {0, 0}, {}, {}, {}}};
  const std::vector<double> different = {inf, 0, 0, inf};  // an odd cycle has no 2-colouring
  problem.pairs = {{0, 1, different}, {1, 2, different}, {2, 0, different}};
  const Result<Solution> solution = solve(problem);
  ASSERT_FALSE(solution);
  EXPECT_EQ(solution.error().code, ErrorCode::kFailedPrecondition);
  EXPECT_EQ(solution.error().to_string(),
            "no assignment is allowed: every one holds a forbidden choice or pair");
}

TEST(Solve, RefusesAMalformedProblemAndInitialAssignment) {
  Problem problem;
  problem.variables = {{"a", {1, 2}, {}, {}, {}}};
  SolveOptions options;
  options.initial = {{0, 0}};
  EXPECT_EQ(solve(problem, options).error().to_string(),
            "initial assignment: expected 1 choices, found 2");
  options.initial = {{2}};
  EXPECT_EQ(solve(problem, options).error().to_string(),
            "initial assignment: choice 2 of variable 0 is out of range (it has 2)");
  problem.variables[0].costs.clear();
  EXPECT_EQ(solve(problem).error().to_string(), "variable 0 ('a'): expected at least one choice");
}

TEST(Solve, StopsWhenCancelled) {
  std::stop_source source;
  source.request_stop();
  SolveOptions options;
  options.cancel = source.get_token();
  const Result<Solution> solution = solve(random_dense_problem(1, 10, 4), options);
  ASSERT_FALSE(solution);
  EXPECT_EQ(solution.error().code, ErrorCode::kCancelled);
  EXPECT_EQ(solution.error().to_string(), "solving was cancelled");
}

TEST(Solve, ReportsProgress) {
  SolveOptions options;
  options.elimination_entries = 0;
  options.node_limit = 1000;
  std::vector<std::uint64_t> nodes;
  options.progress = [&](const SolveProgress& progress) {
    nodes.push_back(progress.search_nodes);
    EXPECT_TRUE(std::isfinite(progress.best_cost));
  };
  ASSERT_TRUE(solve(random_dense_problem(5, 40, 6), options));
  EXPECT_THAT(nodes, ElementsAre(256, 512, 768));
}

TEST(Solve, KeepsAUsageLimitWhereItCan) {
  int limited = 0;
  for (unsigned seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Problem problem = random_dense_problem(seed, 6, 3);
    std::mt19937 random(seed);
    for (Variable& variable : problem.variables) {
      variable.interval = {0, 1 + static_cast<std::int64_t>(random() % 3)};
      for (std::size_t i = 0; i < 3; ++i)
        variable.usages.push_back(static_cast<std::int64_t>(random() % 10));
    }
    problem.usage_limit = 20;
    const Result<Solution> expected = brute_force(problem);
    const Result<Solution> solution = solve(problem);
    if (!solution) {
      EXPECT_EQ(solution.error().code, ErrorCode::kResourceExhausted);
      EXPECT_THAT(solution.error().to_string(),
                  HasSubstr("no assignment was found that keeps the usage limit 20"));
      continue;
    }
    ASSERT_TRUE(expected);
    ++limited;
    EXPECT_TRUE(validate(problem, *solution));
    EXPECT_GE(solution->cost, expected->cost - 1e-9);
    EXPECT_LE(solution->lower_bound, expected->cost + 1e-9);
  }
  EXPECT_GT(limited, 100);
}

}  // namespace
}  // namespace tessera::solve
