#include <gtest/gtest.h>

#include "passes/eliminate_dead_code.h"
#include "passes/simplify_algebra.h"
#include "passes/simplify_reshape.h"
#include "passes/simplify_transpose.h"
#include "testing/pass_testing.h"

namespace tessera::passes {
namespace {

using testing::run_passes;

const Pass kAlgebra{"simplify_algebra", simplify_algebra, ""};
const Pass kTranspose{"simplify_transpose", simplify_transpose, ""};
const Pass kReshape{"simplify_reshape", simplify_reshape, ""};
const Pass kDead{"eliminate_dead_code", eliminate_dead_code, ""};

// ---- Algebra ------------------------------------------------------------------------------------

// What becomes of `y = Relu(op(x, c))`, or of op(c, x) where `swapped`.
std::string algebra(const std::string& op, const std::string& type, const std::string& constant,
                    bool swapped = false, PassOptions options = {}) {
  const std::string operands = swapped ? "(%c, %x)" : "(%x, %c)";
  return run_passes("input %x : " + type + " const %c : " + constant + " %t = " + op + operands +
                        " %y = Neg(%t) output %y",
                    {kAlgebra}, options)
      .text;
}

TEST(SimplifyAlgebra, NeutralConstantsGo) {
  EXPECT_EQ(algebra("Mul", "fp32[2, 3]", "fp32[] dense [1]"), "y = Neg(x)\n");
  EXPECT_EQ(algebra("Mul", "fp32[2, 3]", "fp32[3] dense [1, 1, 1]", true), "y = Neg(x)\n");
  EXPECT_EQ(algebra("Add", "fp32[n, 3]", "fp32[1, 3] dense [0, 0, 0]"), "y = Neg(x)\n");
  EXPECT_EQ(algebra("Sub", "int64[2]", "int64[1] dense [0]"), "y = Neg(x)\n");
  EXPECT_EQ(algebra("Div", "fp32[2]", "fp32[1] dense [1]"), "y = Neg(x)\n");
  EXPECT_EQ(algebra("Pow", "fp32[2]", "fp32[1] dense [1]"), "y = Neg(x)\n");
}

TEST(SimplifyAlgebra, NotWhereBroadcastingWidens) {
  EXPECT_EQ(algebra("Mul", "fp32[3]", "fp32[2, 1] dense [1, 1]"),
            "t = Mul(x, [1, 1])\ny = Neg(t)\n");
  EXPECT_EQ(algebra("Mul", "fp32[3]", "fp32[1, 1] dense [1]"), "t = Mul(x, [1])\ny = Neg(t)\n")
      << "the rank grows";
  EXPECT_EQ(algebra("Add", "fp32[1]", "fp32[2] dense [0, 0]"), "t = Add(x, [0, 0])\ny = Neg(t)\n");
  EXPECT_EQ(algebra("Add", "fp32[n]", "fp32[3] dense [0, 0, 0]"),
            "t = Add(x, [0, 0, 0])\ny = Neg(t)\n")
      << "n may be 1";
}

TEST(SimplifyAlgebra, NotWhereTheConstantMatters) {
  EXPECT_EQ(algebra("Mul", "fp32[2]", "fp32[2] dense [1, 2]"), "t = Mul(x, [1, 2])\ny = Neg(t)\n");
  EXPECT_EQ(algebra("Sub", "fp32[2]", "fp32[1] dense [0]", true), "t = Sub([0], x)\ny = Neg(t)\n");
  EXPECT_EQ(algebra("Div", "int64[2]", "int64[1] dense [3]"), "t = Div(x, [3])\ny = Neg(t)\n")
      << "integers truncate";
}

TEST(SimplifyAlgebra, DivisionBecomesMultiplication) {
  PassOptions exact;
  exact.exact = true;
  EXPECT_EQ(algebra("Div", "fp32[2]", "fp32[2] dense [4, -0.5]", false, exact),
            "t = Mul(x, [0.25, -2])\ny = Neg(t)\n");
  EXPECT_EQ(algebra("Div", "fp32[2]", "fp32[1] dense [6]"),
            "t = Mul(x, [0.16666667])\ny = Neg(t)\n");
  EXPECT_EQ(algebra("Div", "fp32[2]", "fp32[1] dense [6]", false, exact),
            "t = Div(x, [6])\ny = Neg(t)\n");
  EXPECT_EQ(algebra("Div", "fp32[2]", "fp32[1] dense [0]"), "t = Div(x, [0])\ny = Neg(t)\n");
  EXPECT_EQ(algebra("Div", "fp32[2]", "fp32[1] dense [3e38]"), "t = Div(x, [3e+38])\ny = Neg(t)\n")
      << "no subnormal reciprocals";
}

TEST(SimplifyAlgebra, Powers) {
  EXPECT_EQ(algebra("Pow", "fp32[2]", "fp32[] dense [2]"), "t = Mul(x, x)\ny = Neg(t)\n");
  const std::string root =
      "input %x : fp32[2] const %c : fp32[] dense [0.5] %a = Abs(%x) %t = Pow(%a, %c) %y = Neg(%t) "
      "output %y";
  EXPECT_EQ(run_passes(root, {kAlgebra}).text, "a = Abs(x)\nt = Sqrt(a)\ny = Neg(t)\n");
  PassOptions exact;
  exact.exact = true;
  EXPECT_FALSE(run_passes(root, {kAlgebra}, exact).changed);
}

// ---- Transposes ---------------------------------------------------------------------------------

TEST(SimplifyTranspose, TwoBecomeOne) {
  const auto result = run_passes(R"(
    input %x : fp32[2, 3, 4]
    %a = Transpose(%x) {perm = [1, 2, 0]} name "a"
    %y = Transpose(%a) {perm = [0, 2, 1]} name "b"
    output %y)",
                                 {kTranspose, kDead});
  EXPECT_EQ(result.text, "y = Transpose(x) {perm=[1, 0, 2]}\n");
  EXPECT_EQ(result.module.methods[0].graph.nodes()[0]->origins, (std::vector<ir::OriginId>{0, 1}));
}

TEST(SimplifyTranspose, TwoUndoEachOther) {
  const auto result = run_passes(
      "input %x : fp32[2, 3, n] %a = Transpose(%x) %b = Transpose(%a) %y = Relu(%b) output %y",
      {kTranspose, kTranspose, kDead});
  EXPECT_EQ(result.text, "y = Relu(x)\n");
}

TEST(SimplifyTranspose, OnesAreReshaped) {
  const auto result =
      run_passes("input %x : fp32[n, 5, 1, 1] %y = Transpose(%x) {perm = [0, 2, 3, 1]} output %y",
                 {kTranspose});
  EXPECT_EQ(result.text, "y = Reshape(x, [-1, 1, 1, 5])\n");
}

TEST(SimplifyTranspose, OthersStay) {
  EXPECT_FALSE(
      run_passes("input %x : fp32[2, 3] %y = Transpose(%x) output %y", {kTranspose}).changed);
  EXPECT_FALSE(
      run_passes("input %x : fp32[n, m, 1] %y = Transpose(%x) {perm = [0, 2, 1]} output %y",
                 {kTranspose})
          .changed)
      << "two sizes that are no numbers";
}

// ---- Reshapes -----------------------------------------------------------------------------------

TEST(SimplifyReshape, StackedViewsBecomeOne) {
  const auto result = run_passes(R"(
    input %x : fp32[n, 4, 6]
    const %axes : int64[1] dense [1]
    const %shape : int64[3] dense [-1, 2, 12]
    %a = Flatten(%x) {axis = 1}
    %b = Unsqueeze(%a, %axes)
    %y = Reshape(%b, %shape)
    output %y)",
                                 {kReshape, kDead});
  EXPECT_EQ(result.text, "y = Reshape(x, [-1, 2, 12])\n");
}

TEST(SimplifyReshape, TargetsThatCopySizesAreWrittenOut) {
  const auto result = run_passes(R"(
    input %x : fp32[n, 4, 6]
    const %first : int64[2] dense [-1, 8]
    const %second : int64[3] dense [0, 2, 4]
    %a = Reshape(%x, %first)
    %y = Reshape(%a, %second)
    output %y)",
                                 {kReshape, kDead});
  EXPECT_EQ(result.text, "y = Reshape(x, [-1, 2, 4])\n");
}

TEST(SimplifyReshape, ViewsThatChangeNothingGo) {
  const auto result = run_passes(R"(
    input %x : fp32[2, 6]
    const %s : int64[2] dense [3, 4]
    const %t : int64[2] dense [2, 6]
    %a = Reshape(%x, %s)
    %b = Reshape(%a, %t)
    %y = Relu(%b)
    output %y)",
                                 {kReshape, kReshape, kDead});
  EXPECT_EQ(result.text, "y = Relu(x)\n");
}

TEST(SimplifyReshape, ASharedViewStays) {
  const auto result = run_passes(R"(
    input %x : fp32[2, 6]
    const %s : int64[1] dense [12]
    const %t : int64[2] dense [4, 3]
    %a = Reshape(%x, %s)
    %b = Reshape(%a, %t)
    output %a
    output %b)",
                                 {kReshape, kDead});
  EXPECT_EQ(result.text, "a = Reshape(x, [12])\nb = Reshape(x, [4, 3])\n");
}

}  // namespace
}  // namespace tessera::passes
