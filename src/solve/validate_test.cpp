#include "solve/validate.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace tessera::solve {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

Problem small_problem() {
  Problem problem;
  problem.constant = 1;
  problem.variables = {{"a", {1, 4}, {}, {3, 1}, {0, 2}},
                       {"b", {2, kInf, 5}, {}, {2, 2, 1}, {1, 3}}};
  problem.pairs = {{0, 1, {10, 0, 0, kInf, 0, 7}}};
  problem.usage_limit = 4;
  return problem;
}

Solution small_solution() {  // 1 + 1 + 5 + 0
  Solution solution;
  solution.choice = {0, 2};
  solution.cost = 7;
  solution.lower_bound = 7;
  solution.optimal = true;
  return solution;
}

std::string refusal(const Problem& problem, const Solution& solution) {
  const Status status = validate(problem, solution);
  return status ? "" : status.error().to_string();
}

std::string refusal(const Problem& problem) {
  const Status status = check_problem(problem);
  return status ? "" : status.error().to_string();
}

TEST(ValidateSolution, AcceptsARightOne) {
  EXPECT_EQ(refusal(small_problem(), small_solution()), "");
  Solution open = small_solution();
  open.lower_bound = 3.5;
  open.gap = 0.5;
  open.optimal = false;
  EXPECT_EQ(refusal(small_problem(), open), "");
}

TEST(ValidateSolution, NumberOfChoices) {
  Solution solution = small_solution();
  solution.choice.pop_back();
  EXPECT_EQ(refusal(small_problem(), solution), "expected 2 choices, found 1");
}

TEST(ValidateSolution, ChoiceOutOfRange) {
  Solution solution = small_solution();
  solution.choice[1] = 3;
  EXPECT_EQ(refusal(small_problem(), solution),
            "variable 1 ('b'): choice 3 is out of range (it has 3)");
}

TEST(ValidateSolution, ForbiddenChoice) {
  Solution solution = small_solution();
  solution.choice[1] = 1;
  EXPECT_EQ(refusal(small_problem(), solution), "variable 1 ('b'): choice 1 is forbidden");
}

TEST(ValidateSolution, ForbiddenPair) {
  Solution solution = small_solution();
  solution.choice = {1, 0};
  EXPECT_EQ(refusal(small_problem(), solution),
            "pair 0: choices 1 and 0 of variables 0 ('a') and 1 ('b') are forbidden together");
}

TEST(ValidateSolution, WrongCost) {
  Solution solution = small_solution();
  solution.cost = 6.5;
  EXPECT_EQ(refusal(small_problem(), solution),
            "claimed cost 6.5 is not the cost of the choices, 7");
  solution.cost = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(refusal(small_problem(), solution),
            "claimed cost nan is not the cost of the choices, 7");
}

TEST(ValidateSolution, BoundAboveTheCost) {
  Solution solution = small_solution();
  solution.lower_bound = 8;
  EXPECT_EQ(refusal(small_problem(), solution), "lower bound 8 is above the cost 7");
}

TEST(ValidateSolution, WrongGap) {
  Solution solution = small_solution();
  solution.gap = 0.25;
  EXPECT_EQ(refusal(small_problem(), solution),
            "claimed gap 0.25 is not that of cost 7 and lower bound 7, 0");
}

TEST(ValidateSolution, FalselyOptimal) {
  Solution solution = small_solution();
  solution.lower_bound = 3.5;
  solution.gap = 0.5;
  EXPECT_EQ(refusal(small_problem(), solution),
            "claims to be optimal, but the lower bound 3.5 is below the cost 7");
}

TEST(ValidateSolution, UsageLimit) {
  Problem problem = small_problem();
  problem.usage_limit = 3;  // 3 + 1 are live at time 1
  EXPECT_EQ(refusal(problem, small_solution()), "usage 4 is above the limit 3");
}

TEST(ValidateSolution, IntervalsAreHalfOpen) {
  Problem problem = small_problem();
  problem.variables[1].interval = {2, 3};
  problem.usage_limit = 3;
  EXPECT_EQ(refusal(problem, small_solution()), "");
  EXPECT_EQ(peak_usage(problem, small_solution().choice), 3);
}

TEST(CheckProblem, NamesEachFault) {
  Problem problem = small_problem();
  problem.constant = kInf;
  EXPECT_EQ(refusal(problem), "constant: expected a finite number, found inf");
  problem = small_problem();
  problem.variables[0].costs = {};
  EXPECT_EQ(refusal(problem), "variable 0 ('a'): expected at least one choice");
  problem = small_problem();
  problem.variables[0].costs[1] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(refusal(problem), "variable 0 ('a'): cost 1 is not a number");
  problem = small_problem();
  problem.pairs[0].costs[4] = -kInf;
  EXPECT_EQ(refusal(problem), "pair 0: cost 4 is -infinity");
  problem = small_problem();
  problem.variables[0].choice_names = {"x"};
  EXPECT_EQ(refusal(problem), "variable 0 ('a'): expected 2 choice names, found 1");
  problem = small_problem();
  problem.variables[0].usages = {1};
  EXPECT_EQ(refusal(problem), "variable 0 ('a'): expected 2 usages, found 1");
  problem.variables[0].usages = {1, -1};
  EXPECT_EQ(refusal(problem), "variable 0 ('a'): usage -1 is negative");
  problem = small_problem();
  problem.variables[0].interval = {3, 2};
  EXPECT_EQ(refusal(problem), "variable 0 ('a'): interval [3, 2) ends before it begins");
  problem = small_problem();
  problem.usage_limit = -1;
  EXPECT_EQ(refusal(problem), "usage limit -1 is negative");
  problem = small_problem();
  problem.variables[0].usages = {0, std::numeric_limits<std::int64_t>::max()};
  EXPECT_EQ(refusal(problem), "the sum of the largest usages does not fit 63 bits");
}

TEST(CheckProblem, NamesEachFaultOfAPair) {
  Problem problem = small_problem();
  problem.pairs[0].b = 2;
  EXPECT_EQ(refusal(problem), "pair 0: variable 2 does not exist (there are 2)");
  problem.pairs[0].b = 0;
  EXPECT_EQ(refusal(problem), "pair 0: expected two different variables, found 0 ('a') twice");
  problem = small_problem();
  problem.pairs[0].costs.pop_back();
  EXPECT_EQ(refusal(problem), "pair 0: expected 6 values (2 x 3), found 5");
}

TEST(AssignmentCost, SumsSmallCostsBesideLargeOnes) {
  Problem problem;
  problem.variables.push_back({"", {1e16}, {}, {}, {}});
  for (int i = 0; i < 1000; ++i) problem.variables.push_back({"", {0.001}, {}, {}, {}});
  problem.variables.push_back({"", {-1e16}, {}, {}, {}});
  const std::vector<std::uint32_t> choice(problem.variables.size(), 0);
  EXPECT_NEAR(assignment_cost(problem, choice), 1.0, 1e-12);
}

}  // namespace
}  // namespace tessera::solve
