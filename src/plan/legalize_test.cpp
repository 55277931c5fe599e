#include "plan/legalize.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/plan_testing_test.h"

namespace tessera::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Legalize, TwoReadersShareAConversion) {
  Stages stages(
      R"(input %x : fp32[1, 8, 2, 2] %a = Relu(%x) name "a" %b = Relu(%a) name "b" %c = Exp(%a) name "c" output %b output %c)");
  auto& cpu = stages.devices.add("cpu");
  cpu.offer("a", 1, {kPlain}, kLast);
  cpu.offer("b", 1, {kPlain}, kPlain);
  cpu.offer("c", 1, {kPlain}, kPlain);
  cpu.convert(kLast, kPlain, 5);
  stages.lower();
  EXPECT_EQ(stages.steps(),
            (std::vector<std::string>{"call cpu 'a': x!in -> a[nhwc/fp32]",
                                      "convert cpu 'a': a[nhwc/fp32] -> a",
                                      "call cpu 'b': a -> b!out", "call cpu 'c': a -> c!out"}));
  EXPECT_EQ(stages.solution.cost, 3 + round_price_us(5));
  ASSERT_EQ(stages.lowered.regions.size(), 1U);
  EXPECT_EQ(stages.lowered.regions[0].steps.size(), 4U);
  EXPECT_EQ(stages.lowered.regions[0].compute_us, 3);
}

TEST(Legalize, ConversionsOnlyForReadersThatWantThem) {
  Stages stages(
      R"(input %x : fp32[1, 8, 2, 2] %a = Relu(%x) name "a" %b = Relu(%a) name "b" %c = Exp(%a) name "c" output %b output %c)");
  auto& cpu = stages.devices.add("cpu");
  cpu.offer("a", 1, {kPlain}, kLast);
  cpu.offer("b", 1, {kLast}, kPlain);
  cpu.offer("c", 1, {kPlain}, kPlain);
  cpu.convert(kLast, kPlain, 5);
  stages.lower();
  EXPECT_EQ(stages.steps(),
            (std::vector<std::string>{
                "call cpu 'a': x!in -> a[nhwc/fp32]", "call cpu 'b': a[nhwc/fp32] -> b!out",
                "convert cpu 'a': a[nhwc/fp32] -> a", "call cpu 'c': a -> c!out"}));
}

TEST(Legalize, CrossingAndComingBack) {
  Stages stages(
      R"(input %x : fp32[1, 8, 2, 2] %a = Relu(%x) name "a" %b = Exp(%a) name "b" %c = Relu(%b) name "c" output %c)");
  auto& cpu = stages.devices.add("cpu");
  auto& npu = stages.devices.add("npu", "npu");
  npu.offer("a", 1, {kLastHalf}, kLastHalf);
  cpu.offer("b", 1, {kPlain}, kPlain);
  npu.offer("c", 1, {kLastHalf}, kLastHalf);
  cpu.convert(kPlain, kLast, 1);
  cpu.convert(kLast, kPlain, 1);
  npu.convert(kLast, kLastHalf, 1);
  npu.convert(kLastHalf, kLast, 1);
  stages.lower();
  EXPECT_EQ(stages.steps(),
            (std::vector<std::string>{"convert cpu 'x': x!in -> x[nhwc/fp32]",
                                      "transfer npu 'x': x[nhwc/fp32] -> x[nhwc/fp32@npu]",
                                      "convert npu 'x': x[nhwc/fp32@npu] -> x[nhwc/fp16@npu]",
                                      "call npu 'a': x[nhwc/fp16@npu] -> a[nhwc/fp16@npu]",
                                      "convert npu 'a': a[nhwc/fp16@npu] -> a[nhwc/fp32@npu]",
                                      "transfer npu 'a': a[nhwc/fp32@npu] -> a[nhwc/fp32]",
                                      "convert cpu 'a': a[nhwc/fp32] -> a", "call cpu 'b': a -> b",
                                      "convert cpu 'b': b -> b[nhwc/fp32]",
                                      "transfer npu 'b': b[nhwc/fp32] -> b[nhwc/fp32@npu]",
                                      "convert npu 'b': b[nhwc/fp32@npu] -> b[nhwc/fp16@npu]",
                                      "call npu 'c': b[nhwc/fp16@npu] -> c[nhwc/fp16@npu]",
                                      "convert npu 'c': c[nhwc/fp16@npu] -> c[nhwc/fp32@npu]",
                                      "transfer npu 'c': c[nhwc/fp32@npu] -> c[nhwc/fp32]",
                                      "convert cpu 'c': c[nhwc/fp32] -> c!out"}));
  std::vector<std::string> regions;
  for (const Region& region : stages.lowered.regions)
    regions.push_back(stages.target().info(region.device).name);
  EXPECT_EQ(regions, (std::vector<std::string>{"cpu", "npu", "cpu", "npu", "cpu"}));
  for (const LoweredStep& step : stages.lowered.steps)
    EXPECT_EQ(step.region == UINT32_MAX, step.opcode == artefact::Opcode::kTransfer);
}

TEST(Legalize, ConstantsStandInTheFormThatTheKernelReads) {
  Stages stages(
      R"(input %x : fp32[1, 8, 2, 2] const %w : fp32[1, 1, 1, 1] dense [3] const %k : fp32[1, 1, 1, 1] dense [4]
                   %a = Add(%x, %w) name "a" %b = Mul(%a, %k) name "b" output %b)");
  auto& cpu = stages.devices.add("cpu");
  cpu.offer("a", 1, {kPlain, kLastHalf}, kPlain);
  auto& baked = cpu.offer("b", 1, {kPlain, kPlain}, kPlain);
  baked.inputs[1] = std::nullopt;
  stages.lower();
  EXPECT_EQ(stages.steps(), (std::vector<std::string>{"call cpu 'a': x!in w!const[nhwc/fp16] -> a",
                                                      "call cpu 'b': a -> b!out"}));
  EXPECT_EQ(stages.lowered.buffers[stages.lowered.steps[0].inputs[1]].constant.span<float>()[0], 3);
}

TEST(Legalize, OutputsThatLieElsewhereAreCopied) {
  Stages stages(R"(input %x : fp32[1, 8, 2, 2] const %w : fp32[1] dense [3] %a = Relu(%x) name "a"
                   output %x output %w output %a output %a)");
  stages.devices.add("npu", "npu");  // the first of the user's, but not the one that copies
  stages.devices.add("cpu").offer("a", 1, {kPlain}, kPlain);
  stages.lower();
  EXPECT_EQ(stages.steps(),
            (std::vector<std::string>{
                "call cpu 'a': x!in -> a!out", "transfer cpu 'x': x!in -> x!out",
                "transfer cpu 'w': w!const -> w!out", "transfer cpu 'a': a!out -> a!out"}));
  EXPECT_EQ(
      std::set(stages.lowered.output_buffers.begin(), stages.lowered.output_buffers.end()).size(),
      4U);
}

TEST(Legalize, NewStatesAreWrittenBackLast) {
  Stages stages(
      R"(input %x : fp32[2] input %s : fp32[2] %t = Add(%x, %s) name "t" %y = Relu(%s) name "y"
                   output %t output %s output %y state "s" -> "t" initial none)");
  auto& cpu = stages.devices.add("cpu");
  cpu.offer("t", 1, {kPlain}, kPlain);
  cpu.offer("y", 1, {kPlain}, kPlain);
  stages.lower();
  // the old state is an output too: it is copied before it changes
  EXPECT_EQ(stages.steps(),
            (std::vector<std::string>{
                "call cpu 't': x!in s!state -> t", "call cpu 'y': s!state -> y!out",
                "transfer cpu 's': s!state -> s!out", "write_back cpu 't': t -> s!state"}));
}

TEST(Legalize, StatesThatChangePlaces) {
  Stages stages(R"(input %p : fp32[2] input %q : fp32[2] %y = Relu(%p) name "y"
                   output %y output %p output %q state "p" -> "q" initial none state "q" -> "p" initial none)");
  stages.devices.add("cpu").offer("y", 1, {kPlain}, kPlain);
  stages.lower();
  EXPECT_EQ(stages.steps(),
            (std::vector<std::string>{
                "call cpu 'y': p!state -> y!out", "transfer cpu 'p': p!state -> p",
                "transfer cpu 'q': q!state -> q", "write_back cpu 'p': p -> q!state",
                "write_back cpu 'q': q -> p!state"}));
}

TEST(Legalize, AStateThatStaysIsNotWritten) {
  Stages stages(
      R"(input %s : fp32[2] %y = Relu(%s) name "y" output %y output %s state "s" -> "s" initial none)");
  stages.devices.add("cpu").offer("y", 1, {kPlain}, kPlain);
  stages.lower();
  EXPECT_EQ(stages.steps(), (std::vector<std::string>{"call cpu 'y': s!state -> y!out"}));
}

TEST(Legalize, OrderOfCoversIsByTheirLastNode) {
  Stages stages(
      R"(input %x : fp32[1, 8, 2, 2] %a = Relu(%x) name "a" %b = Exp(%x) name "b" %c = Neg(%a) name "c" output %b output %c)");
  auto& cpu = stages.devices.add("cpu");
  cpu.offer("cover0", 1, {kPlain}, kPlain);
  cpu.offer("b", 1, {kPlain}, kPlain);
  stages.cover({"a", "c"});
  stages.lower();
  EXPECT_EQ(stages.steps(), (std::vector<std::string>{"call cpu 'b': x!in -> b!out",
                                                      "call cpu 'a': x!in -> c!out"}));
  EXPECT_THAT(stages.lowered.steps[1].nodes, ElementsAre(0, 2));
}

// a1 -> b1 and b2 -> a2 cross: the covers {a1, a2} and {b1, b2} each need a result of the other,
// and each alone is convex.
struct Crossed : Stages {
  Crossed()
      : Stages(R"(input %x : fp32[1, 8, 2, 2] input %y : fp32[1, 8, 2, 2]
                  %a1 = Relu(%x) name "a1" %b2 = Relu(%y) name "b2" %b1 = Add(%a1, %x) name "b1" %a2 = Add(%b2, %y) name "a2"
                  %z = Relu(%a2) name "z" output %b1 output %a2 output %z)") {
    auto& cpu = devices.add("cpu");
    for (const char* node : {"a1", "a2", "b1", "b2", "z"}) cpu.offer(node, 10, {kPlain}, kPlain);
    for (const char* pair : {"cover0", "cover1", "cover2"}) cpu.offer(pair, 1, {kPlain}, kPlain);
    cover({"a1", "a2"});
    cover({"b1", "b2"});
    cover({"z", "z"});  // behind the cycle, on none
  }
};

TEST(CyclicCovers, ThoseOnACycleAndNoOthers) {
  Crossed stages;
  stages.assign();
  EXPECT_THAT(stages.assignment.cover_option, ElementsAre(0, 0, 0));
  EXPECT_THAT(cyclic_covers(stages.graph(), stages.choices, stages.assignment), ElementsAre(0, 1));
}

TEST(CyclicCovers, ForbiddenTogetherOneOfThemRemains) {
  Crossed stages;
  stages.assign();
  forbid_together(stages.problem, {0, 1});
  const auto solution = solve::solve(stages.problem.problem);
  ASSERT_TRUE(solution) << solution.error().to_string();
  const Assignment assignment = decode(stages.problem, solution->choice);
  EXPECT_EQ((assignment.cover_option[0] >= 0 ? 1 : 0) + (assignment.cover_option[1] >= 0 ? 1 : 0),
            1);
  EXPECT_EQ(assignment.cover_option[2], 0);
  EXPECT_EQ(solution->cost, 2 + 2 * round_price_us(10));
  EXPECT_THAT(cyclic_covers(stages.graph(), stages.choices, assignment), IsEmpty());
}

}  // namespace
}  // namespace tessera::plan
