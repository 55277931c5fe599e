#include "passes/inline_constant_branches.h"

#include <gtest/gtest.h>

#include "testing/pass_testing.h"

namespace tessera::passes {
namespace {

using testing::run_passes;

const Pass kInline{"inline_constant_branches", inline_constant_branches, ""};

std::string with_condition(const std::string& condition) {
  return run_passes("input %x : fp32[2] " + condition + R"(
      %y = If(%c) bodies {
        body captures [%x] { input %a : fp32[2] %r = Relu(%a) %s = Neg(%r) output %s }
        body captures [%x] { input %a : fp32[2] output %a }
      }
      %z = Abs(%y)
      output %z)",
                    {kInline})
      .text;
}

TEST(InlineConstantBranches, TheBranchTakesTheNodesPlace) {
  EXPECT_EQ(with_condition("const %c : bool[] dense [1]"), "r = Relu(x)\ns = Neg(r)\nz = Abs(s)\n");
}

TEST(InlineConstantBranches, ABranchWithoutNodesLeavesNothing) {
  EXPECT_EQ(with_condition("const %c : bool[1] dense [0]"), "z = Abs(x)\n");
}

TEST(InlineConstantBranches, AConditionThatOnlyTheRunKnowsStays) {
  EXPECT_NE(with_condition("input %c : bool[]").find("If"), std::string::npos);
}

TEST(InlineConstantBranches, AnOutputThatIsAConstantGetsANode) {
  const auto result = run_passes(R"(
      input %x : fp32[2]
      const %c : bool[] dense [0]
      %y = If(%c) bodies {
        body captures [%x] { input %a : fp32[2] %r = Relu(%a) output %r }
        body captures [] { const %k : fp32[2] dense [1, 2] output %k }
      }
      output %y)",
                                 {kInline});
  EXPECT_EQ(result.text, "y = Identity([1, 2])\n");
}

}  // namespace
}  // namespace tessera::passes
