#include "solve/problem_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "solve/random_problem_test.h"

namespace tessera::solve {
namespace {

using ::testing::ElementsAre;

constexpr double kInf = std::numeric_limits<double>::infinity();

std::string refusal(std::string_view json) {
  const Result<Problem> problem = parse_problem(json);
  return problem ? "" : problem.error().to_string();
}

// A problem with two nodes, and these edges beside.
std::string with_edges(const std::string& edges) {
  return R"({"nodes": {"costs": [[1, 2], [3, 4, 5]]}, "edges": )" + edges + "}";
}

TEST(ProblemText, ReadsTheFormOfIopddl) {
  const Result<Problem> problem = parse_problem(R"({"problem": {"name": "example",
      "nodes": {"intervals": [[30, 70], [40, 70]], "costs": [[15], [55, 1000000000000000000]],
                "usages": [[10], [25, 25]]},
      "edges": {"nodes": [[1, 0]], "costs": [[30, 40]]}, "usage_limit": 50}})");
  ASSERT_TRUE(problem) << problem.error().to_string();
  EXPECT_EQ(problem->name, "example");
  EXPECT_THAT(problem->variables[1].costs, ElementsAre(55, 1e18));
  EXPECT_THAT(problem->variables[1].usages, ElementsAre(25, 25));
  EXPECT_EQ(problem->variables[0].interval, (Interval{30, 70}));
  EXPECT_EQ(problem->pairs[0], (PairCost{1, 0, {30, 40}}));
  EXPECT_EQ(problem->usage_limit, 50);
}

TEST(ProblemText, ReadsInfinitiesAndNamesWithoutTheOuterObject) {
  const Result<Problem> problem = parse_problem(R"({"constant": 1.5, "nodes": {
      "costs": [[1, null, "inf"]], "names": ["conv1"], "choices": [["cpu", "npu", "gpu"]]}})");
  ASSERT_TRUE(problem) << problem.error().to_string();
  EXPECT_THAT(problem->variables[0].costs, ElementsAre(1, kInf, kInf));
  EXPECT_EQ(problem->variables[0].name, "conv1");
  EXPECT_THAT(problem->variables[0].choice_names, ElementsAre("cpu", "npu", "gpu"));
  EXPECT_EQ(problem->constant, 1.5);
}

TEST(ProblemText, PrintsOneLine) {
  Problem problem;
  problem.name = "p";
  problem.variables = {{"a", {1, kInf}, {"x", "y"}, {}, {}}, {"b", {0.5}, {"z"}, {}, {}}};
  problem.pairs = {{0, 1, {2, 3}}};
  EXPECT_EQ(print_problem(problem),
            R"({"problem":{"edges":{"costs":[[2.0,3.0]],"nodes":[[0,1]]},"name":"p","nodes":)"
            R"({"choices":[["x","y"],["z"]],"costs":[[1.0,null],[0.5]],"names":["a","b"]}}})"
            "\n");
}

TEST(ProblemText, ParsesBackWhatItPrints) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Problem problem = random_problem(seed);
    for (std::size_t i = 0; i < problem.variables.size(); ++i) {
      Variable& variable = problem.variables[i];
      if (seed % 2 == 0) variable.name = std::to_string(i).append("/\"\n\u00e9");
      for (std::size_t j = 0; j < variable.costs.size(); ++j) {
        if (seed % 3 == 0) variable.usages.push_back(static_cast<std::int64_t>(i * 7 + j));
        if (seed % 5 == 0) variable.choice_names.push_back(std::to_string(j));
      }
      if (seed % 3 == 0) variable.interval = {static_cast<std::int64_t>(i), 9};
    }
    if (seed % 3 == 0) problem.usage_limit = 1000;
    const Result<Problem> again = parse_problem(print_problem(problem));
    ASSERT_TRUE(again) << again.error().to_string();
    EXPECT_EQ(*again, problem);
  }
}

TEST(ProblemText, NamesThePlaceOfAFault) {
  EXPECT_EQ(refusal("{\"nodes\": "), "not JSON, at byte 11");
  EXPECT_EQ(refusal(R"({"nodes": {"costs": [[NaN]]}})"), "not JSON, at byte 23");
  EXPECT_EQ(refusal(R"({"nodes": {"costs": [[1e999]]}})"), "not JSON: a number is out of range");
  EXPECT_EQ(refusal("[1]"), "document: expected an object, found [1]");
  EXPECT_EQ(refusal("{}"), "document: 'nodes' is missing");
  EXPECT_EQ(refusal(R"({"problem": 3})"), "document: expected an object, found 3");
  EXPECT_EQ(refusal(R"({"nodes": {}})"), "nodes: 'costs' is missing");
  EXPECT_EQ(refusal(R"({"nodes": {"costs": [[1], []]}})"),
            "nodes.costs[1]: expected at least one cost, found []");
  EXPECT_EQ(refusal(R"({"nodes": {"costs": [[1, "two"]]}})"),
            "nodes.costs[0][1]: expected a number, null or \"inf\", found \"two\"");
  EXPECT_EQ(refusal(R"({"nodes": {"costs": [[1]], "names": []}})"),
            "nodes.names: expected 1 entries (one per node), found 0");
  EXPECT_EQ(refusal(R"({"nodes": {"costs": [[1]], "names": [7]}})"),
            "nodes.names[0]: expected a string, found 7");
  EXPECT_EQ(refusal(R"({"nodes": {"costs": [[1]], "usages": [[1, 2]]}})"),
            "nodes.usages[0]: expected 1 values, found 2");
  EXPECT_EQ(refusal(R"({"nodes": {"costs": [[1]], "usages": [[-2]]}})"),
            "nodes.usages[0][0]: expected a usage that is not negative, found -2");
  EXPECT_EQ(refusal(R"({"nodes": {"costs": [[1]], "usages": [[18446744073709551615]]}})"),
            "nodes.usages[0][0]: expected a whole number of 64 bits, found 18446744073709551615");
  EXPECT_EQ(refusal(R"({"nodes": {"costs": [[1]], "choices": [["a", "b"]]}})"),
            "nodes.choices[0]: expected 1 values, found 2");
  EXPECT_EQ(refusal(R"({"nodes": {"costs": [[1]], "intervals": [[5, 4]]}})"),
            "nodes.intervals[0]: expected [lower, upper], found [5,4]");
  EXPECT_EQ(refusal(R"({"nodes": {"costs": [[1]]}, "constant": null})"),
            "constant: expected a number, found null");
  EXPECT_EQ(refusal(R"({"nodes": {"costs": [[1]]}, "usage_limit": -1})"),
            "usage limit -1 is negative");
}

TEST(ProblemText, NamesThePlaceOfAFaultInTheEdges) {
  EXPECT_EQ(refusal(with_edges("7")), "edges: expected an object, found 7");
  EXPECT_EQ(refusal(with_edges(R"({"nodes": [[0, 1]]})")), "edges: 'costs' is missing");
  EXPECT_EQ(refusal(with_edges(R"({"nodes": [[0, 1]], "costs": []})")),
            "edges.costs: expected 1 entries (one per edge), found 0");
  EXPECT_EQ(refusal(with_edges(R"({"nodes": [[0, 1]], "costs": [[1, 2, 3, 4, 5]]})")),
            "edges.costs[0]: expected 6 values (2 x 3), found 5");
  EXPECT_EQ(refusal(with_edges(R"({"nodes": [[0, -1]], "costs": [[1]]})")),
            "edges.nodes[0][1]: expected an index, found -1");
  EXPECT_EQ(refusal(with_edges(R"({"nodes": [[0, 2]], "costs": [[1]]})")),
            "edges.nodes[0][1]: node 2 does not exist (there are 2)");
  EXPECT_EQ(refusal(with_edges(R"({"nodes": [[1, 1]], "costs": [[1]]})")),
            "edges.nodes[0]: expected two different nodes, found [1,1]");
  EXPECT_EQ(refusal(with_edges(R"({"nodes": [[0, 1, 0]], "costs": [[1]]})")),
            "edges.nodes[0]: expected 2 values, found 3");
  EXPECT_EQ(refusal(with_edges(R"({"nodes": [[0.5, 1]], "costs": [[1]]})")),
            "edges.nodes[0][0]: expected a whole number of 64 bits, found 0.5");
}

TEST(SolutionText, PrintsAndParsesBack) {
  Solution solution;
  solution.choice = {3, 0, 1};
  solution.cost = 12.5;
  solution.lower_bound = 10;
  solution.gap = 0.2;
  const std::string text = print_solution(solution, 0.25);
  EXPECT_EQ(text, R"({"cost":12.5,"lower_bound":10.0,"gap":0.2,"seconds":0.25,"solution":[3,0,1]})"
                  "\n");
  const Result<Solution> again = parse_solution(text);
  ASSERT_TRUE(again);
  EXPECT_EQ(again->choice, solution.choice);
  EXPECT_EQ(again->cost, 12.5);
  EXPECT_EQ(again->lower_bound, 10);
  EXPECT_FALSE(again->optimal);
  EXPECT_THAT(parse_solution("[2, 1]")->choice, ElementsAre(2, 1));
}

TEST(SolutionText, NamesThePlaceOfAFault) {
  EXPECT_EQ(parse_solution("{}").error().to_string(), "document: 'solution' is missing");
  EXPECT_EQ(parse_solution("[-1]").error().to_string(), "solution[0]: expected an index, found -1");
  EXPECT_EQ(parse_solution(R"({"solution": [], "cost": "x"})").error().to_string(),
            "cost: expected a number, found \"x\"");
}

}  // namespace
}  // namespace tessera::solve
