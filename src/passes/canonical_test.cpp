// What makes two exports of one model print the same: attributes that say nothing, biases of zeros,
// and the canonical text.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/flatten.h"
#include "passes/canonical_text.h"
#include "passes/canonicalize_attributes.h"
#include "passes/propose_covers.h"
#include "passes/simplify_algebra.h"
#include "testing/pass_testing.h"

namespace tessera::passes {
namespace {

using ::testing::HasSubstr;
using testing::module_of;
using testing::run_passes;

constexpr Pass kAttributes = {"canonicalize_attributes", canonicalize_attributes, ""};
constexpr Pass kAlgebra = {"simplify_algebra", simplify_algebra, ""};

TEST(CanonicalizeAttributes, DropsDefaultsAlone) {
  const auto result = run_passes(
      "input %x : fp32[n, 4] const %s : int64[2] dense [0, -1] const %a : int64[1] dense [1] "
      "%r = Reshape(%x, %s) {allowzero = 0} %m = ReduceMean(%r, %a) {keepdims = 1} "
      "%k = ReduceMean(%r, %a) {keepdims = 0} output %m output %k",
      {kAttributes});
  EXPECT_TRUE(result.changed);
  EXPECT_EQ(result.text,
            "r = Reshape(x, [0, -1])\nm = ReduceMean(r, [1])\nk = ReduceMean(r, [1]) "
            "{keepdims=0}\n");
}

TEST(SimplifyAlgebra, ABiasOfZerosIsNone) {
  const std::string norm =
      "input %x : fp32[n, 2] const %g : fp32[2] dense [1, 2] const %b : fp32[2] dense ";
  const std::string node = " %y = LayerNormalization(%x, %g, %b) output %y";
  EXPECT_EQ(run_passes(norm + "[0, 0]" + node, {kAlgebra}).text,
            "y = LayerNormalization(x, [1, 2])\n");
  EXPECT_FALSE(run_passes(norm + "[0, 1]" + node, {kAlgebra}).changed);
}

std::string canonical(const std::string& statements) {
  ir::Module module = module_of(statements);
  std::vector<Note> notes;
  const auto covers = propose_covers(module, module.methods[0].graph, notes);
  return canonical_text(module, covers);
}

TEST(CanonicalText, DependsOnWhatIsComputedAlone) {
  const std::string input = "input %x : fp32[n, 2] ";
  const std::string a =
      canonical(input +
                "const %c : fp32[2] dense [1, 2] %dead = Neg(%x) %s = Sigmoid(%x) %w = Mul(%x, %s) "
                "%z = Abs(%x) %y = Add(%w, %c) output %y output %z");
  const std::string b = canonical(
      input +
      "const %one : fp32[2] dense [1, 2] %zz = Abs(%x) name \"other\" "
      "%ss = Sigmoid(%x) %yy = Mul(%ss, %x) %out = Add(%yy, %one) output %out output %zz");
  EXPECT_EQ(a, b);
  EXPECT_THAT(a, HasSubstr("%1 = Swish(%0) : fp32[n, 2]"));
  const std::string c =
      canonical(input +
                "const %c : fp32[2] dense [1, 3] %s = Sigmoid(%x) %w = Mul(%x, %s) %z = Abs(%x) "
                "%y = Add(%w, %c) output %y output %z");
  EXPECT_NE(a, c) << "another constant";
}

TEST(CanonicalText, BodiesOfAFlattenedGraph) {
  const ir::Module module = module_of(R"(
    const %trips : int64[] dense [2]
    input %x : fp32[2]
    %y = Loop(%trips, _, %x) bodies {
      body "body" captures [] {
        input %i : int64[]
        input %go : bool[]
        input %a : fp32[2]
        %s = Sigmoid(%a)
        %b = Mul(%s, %a)
        output %go
        output %b
      }
    }
    output %y)");
  ASSERT_FALSE(module.methods.empty());
  ir::Module flat = module_of("input %x : fp32[2] output %x");
  flat.methods[0] = ir::flatten(module.methods[0], {});
  std::vector<Note> notes;
  const auto covers = propose_covers(flat, flat.methods[0].graph, notes);
  EXPECT_THAT(canonical_text(flat, covers), HasSubstr("= Swish("));
}

TEST(LargestAssembled, LargerOnesTakeTheNodesFirst) {
  ir::Module module = module_of(
      "input %q : fp32[1, 2, 1, 3] input %k : fp32[1, 2, 1, 3] input %v : fp32[1, 2, 1, 3] "
      "input %pk : fp32[1, 2, m, 3] input %pv : fp32[1, 2, m, 3] "
      "%kk = Concat(%pk, %k) {axis = 2} %vv = Concat(%pv, %v) {axis = 2} "
      "%kt = Transpose(%kk) {perm = [0, 1, 3, 2]} %s = MatMul(%q, %kt) %p = Softmax(%s) "
      "%y = MatMul(%p, %vv) output %y output %kk output %vv");
  std::vector<Note> notes;
  const auto covers = propose_covers(module, module.methods[0].graph, notes);
  const auto largest = largest_assembled(covers);
  ASSERT_EQ(largest.size(), 1U);
  EXPECT_EQ(largest[0]->outputs.size(), 3U) << "the one with the cache";
}

}  // namespace
}  // namespace tessera::passes
