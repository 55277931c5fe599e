#include "passes/fold_constants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/eliminate_dead_code.h"
#include "passes/fold_known_shapes.h"
#include "testing/pass_testing.h"

namespace tessera::passes {
namespace {

using testing::run_passes;

const Pass kFold{"fold_constants", fold_constants, ""};
const Pass kKnown{"fold_known_shapes", fold_known_shapes, ""};
const Pass kDead{"eliminate_dead_code", eliminate_dead_code, ""};

TEST(FoldConstants, RunsNodesOfConstants) {
  const auto result = run_passes(R"(
    input %x : fp32[2]
    const %a : fp32[2] dense [1, 2]
    const %b : fp32[] dense [10]
    %sum = Add(%a, %b)
    %root = Mul(%sum, %sum)
    %y = Add(%x, %root)
    output %y)",
                                 {kFold});
  EXPECT_EQ(result.text, "y = Add(x, [121, 144])\n");
}

TEST(FoldConstants, LeavesOutputsOfTheGraph) {
  const auto result = run_passes("const %a : fp32[2] dense [1, 2] %y = Neg(%a) output %y", {kFold});
  EXPECT_FALSE(result.changed);
  EXPECT_EQ(result.text, "y = Neg([1, 2])\n");
}

TEST(FoldConstants, DeclinesLargeResults) {
  const std::string statements = R"(
    input %x : fp32[256]
    const %a : fp32[1] dense [1]
    const %shape : int64[2] dense [200, 256]
    %big = Expand(%a, %shape) name "expand"
    %y = Add(%x, %big)
    output %y)";
  auto result = run_passes(statements, {kFold});
  EXPECT_FALSE(result.changed);
  ASSERT_EQ(result.notes.size(), 1U);
  EXPECT_EQ(
      result.notes[0],
      (Note{"fold_constants", {"expand"}, "the result takes 204800 bytes, its inputs only 20"}));
  PassOptions options;
  options.fold_limit_bytes = 100000;
  result = run_passes(statements, {kFold}, options);
  ASSERT_EQ(result.notes.size(), 1U);
  EXPECT_EQ(result.notes[0].reason, "the result takes 204800 bytes; the limit is 100000");
}

TEST(FoldConstants, WeightsMayBeLarge) {
  const std::string statements = R"(
    input %x : fp32[1, 200]
    const %shape : int64[2] dense [200, 256]
    %w = ConstantOfShape(%shape) name "weights"
    %y = MatMul(%x, %w)
    output %y)";
  EXPECT_EQ(run_passes(statements, {kFold}).module.methods[0].graph.nodes().size(), 1U);
  PassOptions options;
  options.fold_weights_limit_bytes = 100000;
  const auto result = run_passes(statements, {kFold}, options);
  ASSERT_EQ(result.notes.size(), 1U);
  EXPECT_EQ(result.notes[0].reason, "the result takes 204800 bytes; the limit is 100000");
}

TEST(FoldKnownShapes, TurnsFixedSizesIntoConstants) {
  const auto result = run_passes(R"(
    input %x : fp32[n, 6]
    const %one : int64[1] dense [1]
    const %three : int64[1] dense [3]
    const %rest : int64[1] dense [-1]
    %shape = Shape(%x)
    %columns = Gather(%shape, %one) {axis = 0}
    %target = Concat(%rest, %columns) {axis = 0}
    %flat = Mul(%columns, %three)
    %y = Reshape(%x, %target)
    %z = Add(%flat, %one)
    output %y
    output %z)",
                                 {kKnown, kDead});
  EXPECT_EQ(result.text, "y = Reshape(x, [-1, 6])\nz = Add([18], [1])\n");
}

TEST(FoldKnownShapes, LeavesSizesThatAreNotFixed) {
  const auto result = run_passes(
      "input %x : fp32[n, 6] %s = Shape(%x) %y = Identity(%s) %z = Neg(%y) output %z", {kKnown});
  EXPECT_FALSE(result.changed);
}

}  // namespace
}  // namespace tessera::passes
