#include "passes/qdq_covers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "passes/eliminate_common_subexpressions.h"
#include "passes/eliminate_dead_code.h"
#include "passes/fold_constants.h"
#include "passes/pipeline.h"
#include "passes/propose_covers.h"
#include "passes/separate_dequantize.h"
#include "testing/pass_testing.h"

namespace tessera::passes {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::module_of;
using ::testing::Not;
using testing::run_passes;

struct Proposed {
  std::vector<std::string> covers;  // of pattern qdq: "dx dw conv q (x s z w -> y)"
  std::vector<std::string> reasons;
};

Proposed propose(const std::string& statements) {
  ir::Module module = module_of(statements);
  ir::Graph& graph = module.methods[0].graph;
  std::vector<Note> notes;
  Proposed proposed;
  for (const ir::Cover& cover : propose_covers(module, graph, notes)) {
    if (cover.pattern != "qdq") continue;
    std::string text;
    for (const ir::NodeId node : cover.nodes) text += graph.find_node(node)->name + " ";
    proposed.covers.push_back(text + "-> " + graph.value(cover.outputs.at(0)).name);
  }
  for (const Note& note : notes) {
    if (note.pattern == "qdq") proposed.reasons.push_back(note.reason);
  }
  return proposed;
}

const std::string kParameters =
    "const %s : fp32[] dense [0.5] const %z : int8[] dense [3] const %sw : fp32[2] dense [1, 2] ";
const std::string kConv = "input %x : int8[1, 2, 4, 4] " + kParameters +
                          R"(const %w : int8[2, 2, 1, 1] dense [1, 2, 3, 4]
                             const %b : int32[2] dense [5, 6]
                             %dx = DequantizeLinear(%x, %s, %z) name "dx"
                             %dw = DequantizeLinear(%w, %sw) {axis = 0} name "dw"
                             %db = DequantizeLinear(%b, %s) name "db"
                             %c = Conv(%dx, %dw, %db) name "conv" )";

TEST(QdqCovers, AConvolutionWithItsOperandsAndResult) {
  const auto proposed = propose(kConv + "%y = QuantizeLinear(%c, %s, %z) name \"q\" output %y");
  EXPECT_EQ(proposed.covers, (std::vector<std::string>{"dx dw db conv q -> y"}));
  EXPECT_THAT(proposed.reasons, IsEmpty());
}

TEST(QdqCovers, AnEpilogueWithAResidualSum) {
  const auto proposed = propose("input %r : int8[1, 2, 4, 4] " + kConv + R"(
      %dr = DequantizeLinear(%r, %s, %z) name "dr"
      %sum = Add(%c, %dr) name "sum"
      %a = Relu(%sum) name "relu"
      %y = QuantizeLinear(%a, %s, %z) name "q"
      output %y)");
  EXPECT_EQ(proposed.covers, (std::vector<std::string>{"dx dw db conv dr sum relu q -> y"}));
}

TEST(QdqCovers, AGateThatReadsTheResultTwice) {
  const auto proposed = propose(kConv + R"(
      %g = Sigmoid(%c) name "gate"
      %m = Mul(%c, %g) name "mul"
      %y = QuantizeLinear(%m, %s, %z) name "q"
      output %y)");
  EXPECT_EQ(proposed.covers, (std::vector<std::string>{"dx dw db conv gate mul q -> y"}));
}

TEST(QdqCovers, WithoutQuantizeLinearEveryPrefix) {
  const auto proposed = propose(kConv + "%y = Relu(%c) name \"relu\" output %y");
  EXPECT_EQ(proposed.covers,
            (std::vector<std::string>{"dx dw db conv -> c", "dx dw db conv relu -> y"}));
}

TEST(QdqCovers, ElementwiseMovementAndPooling) {
  const std::string source = "input %x : int8[1, 2, 4, 4] " + kParameters +
                             "%d = DequantizeLinear(%x, %s, %z) name \"d\" ";
  const std::string result = " %y = QuantizeLinear(%v, %s, %z) name \"q\" output %y";
  EXPECT_EQ(propose(source + "%v = Relu(%d) name \"n\"" + result).covers,
            (std::vector<std::string>{"d n q -> y"}));
  EXPECT_EQ(propose(source + "%v = Transpose(%d) name \"n\"" + result).covers,
            (std::vector<std::string>{"d n q -> y"}));
  EXPECT_EQ(propose(source + "%v = GlobalAveragePool(%d) name \"n\"" + result).covers,
            (std::vector<std::string>{"d n q -> y"}));
  EXPECT_THAT(propose(source + "%v = Softmax(%d) name \"n\"" + result).covers, IsEmpty());
}

TEST(QdqCovers, NearMissesSayWhy) {
  const std::string result = " %y = QuantizeLinear(%c, %s, %z) name \"q\" output %y";
  const std::string weights = kParameters +
                              "const %w : int8[2, 2] dense [1, 2, 3, 4] "
                              "%dw = DequantizeLinear(%w, %s) name \"dw\" ";
  EXPECT_THAT(
      propose("input %x : fp32[3, 2] " + weights + "%c = MatMul(%x, %dw) name \"mm\"" + result)
          .reasons,
      Contains("operand 'x' of 'mm' is not dequantised"));
  EXPECT_THAT(propose("input %x : int8[3, 2] input %t : fp32[] " + weights +
                      "%d = DequantizeLinear(%x, %t, %z) name \"d\" %c = MatMul(%d, %dw)" + result)
                  .reasons,
              Contains("scale of 'd' is not constant"));
  EXPECT_THAT(propose("input %x : int8[3, 2] " + weights +
                      "%d = DequantizeLinear(%x, %s, %z) name \"d\" output %d "
                      "%c = MatMul(%d, %dw)" +
                      result)
                  .reasons,
              Contains("'d' is read outside of the group"));
}

// ---- The passes keep groups whole ---------------------------------------------------------------

const Pass kFold{"fold_constants", fold_constants, ""};
const Pass kMerge{"eliminate_common_subexpressions", eliminate_common_subexpressions, ""};
const Pass kSeparate{"separate_dequantize", separate_dequantize, ""};
const Pass kDead{"eliminate_dead_code", eliminate_dead_code, ""};

TEST(SeparateDequantize, EachReaderGetsItsOwnAndMergingLeavesThem) {
  const std::string statements = R"(
    input %r : fp32[2]
    const %s : fp32[] dense [0.5]
    %x = QuantizeLinear(%r, %s)
    %d = DequantizeLinear(%x, %s)
    %a = Neg(%d)
    %b = Exp(%d)
    %y = Add(%a, %b)
    output %y)";
  const auto result = run_passes(statements, {kSeparate, kMerge});
  EXPECT_THAT(result.text, HasSubstr("d = DequantizeLinear(x, [0.5])\n"));
  EXPECT_THAT(result.text, HasSubstr("d_1 = DequantizeLinear(x, [0.5])\n"));
  EXPECT_THAT(result.text, HasSubstr("a = Neg(d)\n"));
  EXPECT_THAT(result.text, HasSubstr("b = Exp(d_1)\n"));
  EXPECT_FALSE(run_passes(statements, {kMerge}).changed);
}

TEST(SeparateDequantize, AnOutputKeepsTheNode) {
  const auto result = run_passes(R"(
    input %r : fp32[2]
    const %s : fp32[] dense [0.5]
    %x = QuantizeLinear(%r, %s)
    %d = DequantizeLinear(%x, %s)
    %y = Neg(%d)
    output %d
    output %y)",
                                 {kSeparate});
  EXPECT_THAT(result.text, HasSubstr("d = DequantizeLinear(x, [0.5])\n"));
  EXPECT_THAT(result.text, HasSubstr("y = Neg(d_1)\n"));
}

const std::string kProduct = R"(
    input %r : fp32[3, 2]
    const %s : fp32[] dense [0.5]
    const %sw : fp32[2] dense [0.5, 0.25]
    const %w : int8[2, 2] dense [1, 2, 3, 4]
    %dw = DequantizeLinear(%w, %sw) {axis = 0}
    %t = Transpose(%dw)
    %q = QuantizeLinear(%r, %s) )";

TEST(SeparateDequantize, TransposesOfWeightsMoveToTheQuantisedElements) {
  const auto result =
      run_passes(kProduct + "%d = DequantizeLinear(%q, %s) %y = MatMul(%d, %t) output %y",
                 {kFold, kSeparate, kFold, kDead});
  EXPECT_THAT(result.text, HasSubstr("DequantizeLinear([1, 3, 2, 4], [0.5, 0.25]) {axis=1}"));
  EXPECT_THAT(result.text, Not(HasSubstr("Transpose")));
}

TEST(FoldConstants, WeightsThatAreOnlyStoredInFewBitsBecomeReal) {
  const auto result = run_passes(kProduct + "%y = MatMul(%r, %t) output %y", {kFold, kDead});
  EXPECT_EQ(result.text, "y = MatMul(r, [0.5, 0.75, 1, 1])\n");
}

TEST(Simplify, LeavesAQuantisedGraphItsGroups) {
  ir::Module module = module_of("input %r : int8[1, 2, 4, 4] " + kConv + R"(
      %q = QuantizeLinear(%c, %s, %z) name "q"
      %d = DequantizeLinear(%q, %s, %z) name "d"
      %e = DequantizeLinear(%r, %s, %z) name "e"
      %sum = Add(%d, %e) name "sum"
      %p = QuantizeLinear(%sum, %s, %z) name "p"
      %f = DequantizeLinear(%p, %s, %z) name "f"
      %m = MaxPool(%f) {kernel_shape = [2, 2]} name "pool"
      %y = QuantizeLinear(%m, %s, %z) name "y"
      output %y)");
  ASSERT_TRUE(simplify(module, {}, {}));
  std::vector<Note> notes;
  std::size_t groups = 0;
  for (const ir::Cover& cover : propose_covers(module, module.methods[0].graph, notes))
    groups += cover.pattern == "qdq" ? 1 : 0;
  EXPECT_EQ(groups, 3U) << testing::brief(module.methods[0].graph);
}

}  // namespace
}  // namespace tessera::passes
