#include "solve/brute_force.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

namespace tessera::solve {
namespace {

TEST(BruteForce, TakesTheFirstOfTheCheapest) {
  Problem problem;
  problem.variables = {{"", {1, 0}, {}, {}, {}}, {"", {0, 1}, {}, {}, {}}};
  problem.pairs = {{0, 1, {2, 1, 2, 2}}};
  const Result<Solution> solution = brute_force(problem);
  ASSERT_TRUE(solution);
  EXPECT_EQ(solution->cost, 2);
  EXPECT_THAT(solution->choice, ::testing::ElementsAre(1, 0));
}

TEST(BruteForce, KeepsTheUsageLimit) {
  Problem problem;
  problem.variables = {{"", {0, 5}, {}, {9, 1}, {0, 1}}};
  problem.usage_limit = 8;
  EXPECT_EQ(brute_force(problem)->cost, 5);
}

TEST(BruteForce, RefusesTooManyAssignments) {
  Problem problem;
  problem.variables.assign(3, {"", {0, 1}, {}, {}, {}});
  const Result<Solution> solution = brute_force(problem, 7);
  ASSERT_FALSE(solution);
  EXPECT_EQ(solution.error().code, ErrorCode::kOutOfRange);
  EXPECT_EQ(solution.error().to_string(), "more than 7 assignments to enumerate");
}

TEST(BruteForce, RefusesAnInfeasibleProblem) {
  Problem problem;
  problem.variables = {{"", {std::numeric_limits<double>::infinity()}, {}, {}, {}}};
  const Result<Solution> solution = brute_force(problem);
  ASSERT_FALSE(solution);
  EXPECT_EQ(solution.error().to_string(), "none of the 1 assignments is allowed");
}

}  // namespace
}  // namespace tessera::solve
