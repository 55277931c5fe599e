#include "compiler/plan_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "artefact/write/writer.h"
#include "compiler/compile.h"
#include "testing/onnx_builder.h"
#include "testing/random.h"
#include "testing/temp_dir.h"

namespace tessera::compiler {
namespace {

using ::testing::HasSubstr;

// A convolution with a Relu: alone, or one cover.
std::string small_model() {
  testing::OnnxModel model(17);
  testing::Random random(3);
  model.input("x", testing::kFloat, {1, 16, 12, 12});
  model.floats("w", {16, 16, 3, 3}, random.floats(16 * 16 * 9));
  model.node("Conv", {"x", "w"}, {"c"}, "conv").ints("pads", {1, 1, 1, 1});
  model.node("Relu", {"c"}, {"y"}, "relu");
  model.output("y", testing::kFloat, {1, 16, 12, 12});
  return model.serialize();
}

Result<Compiled> explore(std::function<Status(const PlanSpace&)> body) {
  const testing::TempDir folder;
  CompileOptions options;
  options.explore = std::move(body);
  return compile(folder.write("m.onnx", small_model()), options);
}

TEST(PlanSpace, TheChosenPlanIsEmittedAsTheCompilationDoes) {
  artefact::ProgramImage again;
  auto compiled = explore([&](const PlanSpace& space) -> Status {
    TESSERA_ASSIGN(again, space.emit(space.planned().solution.choice));
    return {};
  });
  ASSERT_TRUE(compiled) << compiled.error().to_string();
  compiled->image.manifest.clear();
  compiled->image.evidence.clear();
  const auto expected = artefact::serialize_program(compiled->image);
  const auto found = artefact::serialize_program(again);
  ASSERT_TRUE(expected && found);
  EXPECT_EQ(*expected, *found);
}

TEST(PlanSpace, SolvesTheProblemWithoutWhatTheCallerForbids) {
  const auto compiled = explore([](const PlanSpace& space) -> Status {
    const Planned& planned = space.planned();
    TESSERA_ASSIGN(const auto same, space.solve(planned.problem));
    EXPECT_EQ(same.choice, planned.solution.choice);
    plan::AssignmentProblem forbidden = planned.problem;
    const std::uint32_t variable = forbidden.node_variables.front();
    forbidden.problem.variables[variable].costs[same.choice[variable]] =
        std::numeric_limits<double>::infinity();
    TESSERA_ASSIGN(const auto other, space.solve(forbidden));
    EXPECT_NE(other.choice[variable], same.choice[variable]);
    EXPECT_GE(other.cost, same.cost);
    return {};
  });
  ASSERT_TRUE(compiled) << compiled.error().to_string();
}

TEST(PlanSpace, AnErrorOfTheCallerEndsTheCompilation) {
  const auto compiled =
      explore([](const PlanSpace&) -> Status { return fail(ErrorCode::kInternal, "enough"); });
  ASSERT_FALSE(compiled);
  EXPECT_EQ(compiled.error().to_string(), "enough");
}

}  // namespace
}  // namespace tessera::compiler
