#include "passes/hoist_loop_invariants.h"

#include <gtest/gtest.h>

#include "testing/pass_testing.h"

namespace tessera::passes {
namespace {

using testing::run_passes;

const Pass kHoist{"hoist_loop_invariants", hoist_loop_invariants, ""};

// A loop that adds `invariant` (of captured a and b) to what it carries.
std::string loop_with(const std::string& invariant, const std::string& type = "fp32[2]") {
  const auto result =
      run_passes("const %m : int64[] dense [3] input %x : " + type + " input %p : " + type +
                     " input %q : " + type + R"( %y = Loop(%m, _, %x) bodies {
        body captures [%p, %q] {
          input %i : int64[] input %go : bool[] input %v : )" +
                     type + " input %a : " + type + " input %b : " + type + " " + invariant + R"(
          %w = Add(%v, %t) %on = Identity(%go) output %on output %w } }
      output %y)",
                 {kHoist});
  return result.text;
}

TEST(HoistLoopInvariants, WhatTheLoopDoesNotChangeStandsBeforeIt) {
  const std::string text = loop_with("%s = Mul(%a, %b) %t = Relu(%s)");
  EXPECT_TRUE(text.starts_with("s = Mul(p, q)\nt = Relu(s)\ny = Loop(")) << text;
}

TEST(HoistLoopInvariants, WhatReadsACarriedValueStays) {
  EXPECT_TRUE(loop_with("%s = Mul(%a, %v) %t = Relu(%s)").starts_with("y = Loop("));
}

TEST(HoistLoopInvariants, WhatMayFailStays) {
  EXPECT_TRUE(loop_with("%t = Div(%a, %b)", "int64[2]").starts_with("y = Loop("));
  EXPECT_TRUE(loop_with("%t = Div(%a, %b)").starts_with("t = Div(p, q)\n"));
}

}  // namespace
}  // namespace tessera::passes
