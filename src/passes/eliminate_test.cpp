#include <gtest/gtest.h>

#include "passes/eliminate_common_subexpressions.h"
#include "passes/eliminate_dead_code.h"
#include "passes/eliminate_no_ops.h"
#include "testing/pass_testing.h"

namespace tessera::passes {
namespace {

using testing::run_passes;

const Pass kDead{"eliminate_dead_code", eliminate_dead_code, ""};
const Pass kCommon{"eliminate_common_subexpressions", eliminate_common_subexpressions, ""};
const Pass kNoOps{"eliminate_no_ops", eliminate_no_ops, ""};

// ---- Dead code ----------------------------------------------------------------------------------

TEST(EliminateDeadCode, RemovesWhatNobodyReads) {
  const auto result = run_passes(
      "input %x : fp32[2] %a = Exp(%x) %b = Neg(%a) %y = Relu(%x) %c = Exp(%y) output %y", {kDead});
  EXPECT_EQ(result.text, "y = Relu(x)\n");
}

TEST(EliminateDeadCode, DropsOptionalOutputs) {
  const auto result = run_passes("input %x : fp32[2] %y, %mask = Dropout(%x) output %y", {kDead});
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.text, "y = Dropout(x)\n");
}

TEST(EliminateDeadCode, DropsUnreadCaptures) {
  const auto result = run_passes(R"(
    input %c : bool[]
    input %x : fp32[2]
    %e = Exp(%x)
    %y = If(%c) bodies {
      body captures [%x, %e] { input %a : fp32[2] input %b : fp32[2] %r = Relu(%a) output %r }
      body captures [%x] { input %a : fp32[2] %r = Neg(%a) output %r }
    }
    output %y)",
                                 {kDead, kDead});
  EXPECT_EQ(result.text, "y = If(c)\n");
  EXPECT_EQ(result.module.methods[0].graph.nodes()[0]->captures[0].size(), 1U);
}

TEST(EliminateDeadCode, LeavesALiveGraphAlone) {
  EXPECT_FALSE(
      run_passes("input %x : fp32[2] input %unread : fp32[2] %y = Relu(%x) output %y", {kDead})
          .changed);
}

// ---- Common subexpressions ----------------------------------------------------------------------

TEST(EliminateCommonSubexpressions, MergesEqualNodes) {
  const auto result = run_passes(R"(
    input %x : fp32[2]
    input %w : fp32[2]
    %a = Add(%x, %w) name "a"
    %b = Add(%w, %x) name "b"
    %y = Mul(%a, %b)
    output %y)",
                                 {kCommon});
  EXPECT_EQ(result.text, "a = Add(x, w)\ny = Mul(a, a)\n");
  EXPECT_EQ(result.module.methods[0].graph.nodes()[0]->origins, (std::vector<ir::OriginId>{0, 1}))
      << "origins of both";
}

TEST(EliminateCommonSubexpressions, MergesConstantsAndWhatReadsThem) {
  const auto result = run_passes(R"(
    input %x : fp32[2]
    const %c : fp32[2] dense [1, 2]
    const %d : fp32[2] dense [1, 2]
    %a = Sub(%x, %c)
    %b = Sub(%x, %d)
    %y = Mul(%a, %b)
    output %y)",
                                 {kCommon});
  EXPECT_EQ(result.text, "a = Sub(x, [1, 2])\ny = Mul(a, a)\n");
}

TEST(EliminateCommonSubexpressions, KeepsWhatDiffers) {
  EXPECT_FALSE(run_passes("input %x : fp32[2] input %w : fp32[2] %a = Sub(%x, %w) %b = Sub(%w, %x) "
                          "%y = Mul(%a, %b) output %y",
                          {kCommon})
                   .changed);
  EXPECT_FALSE(run_passes("input %x : fp32[2] %a = LeakyRelu(%x) {alpha = 0.5} %b = LeakyRelu(%x) "
                          "{alpha = 0.25} %y = Mul(%a, %b) output %y",
                          {kCommon})
                   .changed);
  EXPECT_FALSE(run_passes("input %x : fp32[2] const %l : fp32[] dense [0] %a = Clip(%x, %l) %b = "
                          "Clip(%x, _, %l) %y = Mul(%a, %b) output %y",
                          {kCommon})
                   .changed)
      << "an omitted input is another input";
  EXPECT_FALSE(run_passes("input %x : fp32[2] const %z : fp32[1] dense [0] const %m : fp32[1] "
                          "dense [-0] %a = Div(%x, %z) %b = Div(%x, %m) %y = Sub(%a, %b) output %y",
                          {kCommon})
                   .changed)
      << "-0 is another constant";
}

TEST(EliminateCommonSubexpressions, KeepsTwoOutputsOfTheGraph) {
  const auto both =
      run_passes("input %x : fp32[2] %a = Relu(%x) %b = Relu(%x) output %a output %b", {kCommon});
  EXPECT_FALSE(both.changed);
  const auto one = run_passes(
      "input %x : fp32[2] %a = Relu(%x) %b = Relu(%x) %c = Exp(%a) output %b output %c", {kCommon});
  EXPECT_EQ(one.text, "b = Relu(x)\nc = Exp(b)\n") << "the output keeps its name";
}

// ---- No-ops -------------------------------------------------------------------------------------

TEST(EliminateNoOps, RemovesWhatPassesItsInputThrough) {
  const auto result = run_passes(R"(
    input %x : fp32[2, 3]
    const %pads : int64[4] dense [0, 0, 0, 0]
    const %shape : int64[2] dense [2, 3]
    %a = Identity(%x)
    %b = Cast(%a) {to = 1}
    %c = Dropout(%b)
    %d = Concat(%c) {axis = 1}
    %e = Sum(%d)
    %f = Pad(%e, %pads)
    %g = Expand(%f, %shape)
    %y = Relu(%g)
    output %y)",
                                 {kNoOps});
  EXPECT_EQ(result.text, "y = Relu(x)\n");
  EXPECT_EQ(result.module.methods[0].graph.nodes()[0]->origins.size(), 8U)
      << "origins go to the reader of an input";
}

TEST(EliminateNoOps, KeepsNamesOfOutputs) {
  const auto result =
      run_passes("input %x : fp32[2] %a = Relu(%x) %y = Identity(%a) output %y", {kNoOps});
  EXPECT_EQ(result.text, "y = Relu(x)\n");
  EXPECT_FALSE(run_passes("input %x : fp32[2] %y = Identity(%x) output %y", {kNoOps}).changed)
      << "an input is no output";
}

TEST(EliminateNoOps, KeepsWhatDoesSomething) {
  EXPECT_FALSE(
      run_passes("input %x : fp32[2] %y = Cast(%x) {to = 7} %z = Neg(%y) output %z", {kNoOps})
          .changed);
  EXPECT_FALSE(run_passes("input %x : fp32[2] const %p : int64[2] dense [0, 1] %y = Pad(%x, %p) %z "
                          "= Relu(%y) output %z",
                          {kNoOps})
                   .changed);
  EXPECT_FALSE(run_passes("input %x : fp32[1] const %s : int64[1] dense [2] %y = Expand(%x, %s) %z "
                          "= Relu(%y) output %z",
                          {kNoOps})
                   .changed);
  EXPECT_FALSE(
      run_passes("input %x : fp32[2] %y, %mask = Dropout(%x) %z = Not(%mask) output %y output %z",
                 {kNoOps})
          .changed)
      << "its mask is read";
}

}  // namespace
}  // namespace tessera::passes
