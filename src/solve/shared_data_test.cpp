// The solvers on public problem sets, where those stand beside the tree.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "solve/brute_force.h"
#include "solve/memory_greedy.h"
#include "solve/memory_text.h"
#include "solve/memory_validate.h"
#include "solve/problem_text.h"
#include "solve/solve.h"
#include "solve/validate.h"
#include "testing/shared_data.h"

namespace tessera::solve {
namespace {

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// The arena over the peak of live bytes.
double greedy_ratio(const std::filesystem::path& path, std::int64_t expected_peak) {
  const Result<MemoryTable> table = parse_memory(contents(path));
  EXPECT_TRUE(table) << table.error().to_string();
  const Result<MemorySolution> solution = allocate_greedy(table->problem);
  EXPECT_TRUE(solution) << solution.error().to_string();
  const Status valid = validate(table->problem, *solution);
  EXPECT_TRUE(valid) << valid.error().to_string();
  EXPECT_EQ(solution->peak_live_bytes, expected_peak);
  return static_cast<double>(solution->arena_bytes) / static_cast<double>(expected_peak);
}

TEST(SharedData, Minimalloc) {
  TESSERA_SHARED_OR_SKIP(folder, "data/minimalloc");
  EXPECT_LT(greedy_ratio(folder / "A.1048576.csv", 1048576), 1.4);
  EXPECT_LT(greedy_ratio(folder / "C.1048576.csv", 1039360), 1.4);
  EXPECT_LT(greedy_ratio(folder / "D.1048576.csv", 986112), 1.4);
  EXPECT_LT(greedy_ratio(folder / "J.1048576.csv", 989184), 1.4);
}

TEST(SharedData, Idealloc) {
  TESSERA_SHARED_OR_SKIP(folder, "data/idealloc");
  EXPECT_LT(greedy_ratio(folder / "resnet50.csv", 1515472556), 1.0069);
  EXPECT_LT(greedy_ratio(folder / "pangu_2.6B.csv", 5530099775), 1.0077);
  EXPECT_LT(greedy_ratio(folder / "S_1.csv", 1498635932), 1.067);
}

TEST(SharedData, IopddlExample) {
  TESSERA_SHARED_OR_SKIP(file, "data/iopddl/example.json");
  const Result<Problem> problem = parse_problem(contents(file));
  ASSERT_TRUE(problem) << problem.error().to_string();
  EXPECT_EQ(problem->variables.size(), 5U);
  EXPECT_EQ(problem->usage_limit, 50);
  EXPECT_EQ(*parse_problem(print_problem(*problem)), *problem);
  const Result<Solution> expected = brute_force(*problem);
  const Result<Solution> solution = solve(*problem);
  ASSERT_TRUE(expected && solution);
  EXPECT_TRUE(validate(*problem, *solution));
  EXPECT_GE(solution->cost, expected->cost);
  EXPECT_LE(solution->lower_bound, expected->cost);
}

}  // namespace
}  // namespace tessera::solve
