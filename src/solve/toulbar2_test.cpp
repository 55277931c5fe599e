// An independent judge of the solver: toulbar2, an exact solver of cost function networks.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "solve/random_problem_test.h"
#include "solve/solve.h"
#include "testing/temp_dir.h"

namespace tessera::solve {
namespace {

constexpr const char* kProgram = "/usr/bin/toulbar2";

std::string json_list(const std::vector<double>& costs) {
  std::string out;
  for (const double cost : costs) out += fmt::format("{}{}", out.empty() ? "" : ",", cost);
  return "[" + out + "]";
}

// toulbar2's cfn format; costs must be finite.
std::string cfn_text(const Problem& problem) {
  std::string variables;
  std::string functions;
  for (std::size_t i = 0; i < problem.variables.size(); ++i) {
    const std::vector<double>& costs = problem.variables[i].costs;
    variables += fmt::format("{}\"x{}\":{}", i == 0 ? "" : ",", i, costs.size());
    functions += fmt::format("{}\"u{}\":{{\"scope\":[\"x{}\"],\"costs\":{}}}", i == 0 ? "" : ",", i,
                             i, json_list(costs));
  }
  for (std::size_t i = 0; i < problem.pairs.size(); ++i) {
    const PairCost& pair = problem.pairs[i];
    functions += fmt::format(",\"p{}\":{{\"scope\":[\"x{}\",\"x{}\"],\"costs\":{}}}", i, pair.a,
                             pair.b, json_list(pair.costs));
  }
  return fmt::format(
      "{{\"problem\":{{\"name\":\"p\",\"mustbe\":\"<1000000\"}},\"variables\":{{{}}},"
      "\"functions\":{{{}}}}}",
      variables, functions);
}

std::optional<double> optimum_by_toulbar2(const Problem& problem,
                                          const std::filesystem::path& folder) {
  const std::filesystem::path input = folder / "problem.cfn";
  const std::filesystem::path output = folder / "answer.txt";
  std::ofstream(input) << cfn_text(problem);
  const std::string command =
      fmt::format("{} -timer=20 '{}' > '{}' 2>&1", kProgram, input.string(), output.string());
  if (std::system(command.c_str()) != 0) return std::nullopt;  // NOLINT(cert-env33-c)
  std::ifstream file(output);
  std::stringstream text;
  text << file.rdbuf();
  const std::string answer = text.str();
  const std::string key = "Optimum: ";
  const std::size_t at = answer.find(key);
  if (at == std::string::npos) return std::nullopt;
  return std::strtod(answer.c_str() + at + key.size(), nullptr);
}

TEST(Toulbar2, AgreesOnTheOptimum) {
  if (!std::filesystem::exists(kProgram)) GTEST_SKIP() << "not here: " << kProgram;
  const testing::TempDir folder;
  const std::vector<Problem> problems = {
      random_dense_problem(1, 12, 4),   random_dense_problem(2, 14, 3),
      random_band_problem(3, 30, 4, 3), random_band_problem(4, 200, 6, 2),
      random_grid_problem(5, 4, 10, 3),
  };
  for (std::size_t i = 0; i < problems.size(); ++i) {
    SCOPED_TRACE(fmt::format("problem {}", i));
    const std::optional<double> expected = optimum_by_toulbar2(problems[i], folder.path());
    ASSERT_TRUE(expected);
    const Result<Solution> solution = solve(problems[i]);
    ASSERT_TRUE(solution) << solution.error().to_string();
    EXPECT_TRUE(solution->optimal);
    EXPECT_EQ(solution->cost, *expected);
  }
}

}  // namespace
}  // namespace tessera::solve
