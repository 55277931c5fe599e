#include "passes/propose_covers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/pass_testing.h"

namespace tessera::passes {
namespace {

using ::testing::IsEmpty;
using testing::module_of;

struct Proposed {
  std::vector<std::string> covers;  // "anchor_epilogue: conv relu (x w -> y)"
  std::vector<std::string> reasons;
};

Proposed propose(const std::string& statements) {
  ir::Module module = module_of(statements);
  ir::Graph& graph = module.methods[0].graph;
  std::vector<Note> notes;
  Proposed proposed;
  std::uint32_t id = 0;
  for (const ir::Cover& cover : propose_covers(module, graph, notes)) {
    EXPECT_EQ(cover.id, id++);
    if (!cover.assembled.empty()) continue;  // reassemble/reassemble_test.cpp
    std::string text = cover.pattern + ":";
    for (const ir::NodeId node : cover.nodes) text += " " + graph.find_node(node)->name;
    text += " (";
    for (const ir::ValueId input : cover.inputs) text += graph.value(input).name + " ";
    text += "-> " + graph.value(cover.outputs.at(0)).name + ")";
    proposed.covers.push_back(text);
    EXPECT_EQ(cover.has_anchor, cover.pattern == "anchor_epilogue");
  }
  for (const Note& note : notes)
    if (note.pattern == "anchor_epilogue") proposed.reasons.push_back(note.reason);
  return proposed;
}

// `statements` behind %c, a convolution of the input %x.
Proposed propose_behind_conv(const char* statements) {
  std::string text =
      "input %x : fp32[n, 2, 4, 4] const %w : fp32[2, 2, 1, 1] dense [1, 2, 3, 4] "
      "%c = Conv(%x, %w) name \"conv\" ";
  text += statements;
  return propose(text);
}

TEST(ProposeCovers, EveryPrefixOfAnEpilogue) {
  const auto proposed = propose_behind_conv(R"(
    const %b : fp32[2, 1, 1] dense [1, 2]
    %s = Add(%c, %b) name "bias"
    %r = Relu(%s) name "relu"
    output %r)");
  EXPECT_EQ(proposed.covers,
            (std::vector<std::string>{"anchor_epilogue: conv bias (x w b -> s)",
                                      "anchor_epilogue: conv bias relu (x w b -> r)",
                                      "elementwise_group: bias relu (c b -> r)"}));
  EXPECT_THAT(proposed.reasons, IsEmpty());
}

TEST(ProposeCovers, AnOutputEndsAChain) {
  const auto proposed = propose_behind_conv(
      "%s = Relu(%c) name \"relu\" %r = Exp(%s) name \"exp\" output %s output %r");
  EXPECT_EQ(proposed.covers, (std::vector<std::string>{"anchor_epilogue: conv relu (x w -> s)"}));
}

TEST(ProposeCovers, ResidualSums) {
  const auto before =
      propose_behind_conv("%s = Add(%c, %x) name \"sum\" %r = Relu(%s) name \"relu\" output %r");
  EXPECT_EQ(before.covers, (std::vector<std::string>{"anchor_epilogue: conv sum (x w -> s)",
                                                     "anchor_epilogue: conv sum relu (x w -> r)",
                                                     "elementwise_group: sum relu (c x -> r)"}));
  const auto after = propose_behind_conv(
      "%z = Softmax(%x) name \"later\" %s = Add(%c, %z) name \"sum\" output %s");
  EXPECT_THAT(after.covers, IsEmpty());
  EXPECT_EQ(after.reasons,
            (std::vector<std::string>{
                "'sum' ends the epilogue: operand 'z' is not there before the anchor"}));
}

TEST(ProposeCovers, SiluReadsTheResultTwice) {
  const auto proposed = propose_behind_conv(
      "%s = Sigmoid(%c) name \"sigmoid\" %y = Mul(%c, %s) name \"mul\" output %y");
  EXPECT_EQ(proposed.covers,
            (std::vector<std::string>{"anchor_epilogue: conv sigmoid mul (x w -> y)",
                                      "elementwise_group: sigmoid mul (c -> y)"}));
}

TEST(ProposeCovers, HardSwishInPieces) {
  const auto proposed = propose_behind_conv(R"(
    const %three : fp32[] dense [3]
    const %zero : fp32[] dense [0]
    const %six : fp32[] dense [6]
    %a = Add(%c, %three) name "add"
    %k = Clip(%a, %zero, %six) name "clip"
    %m = Mul(%c, %k) name "mul"
    %y = Div(%m, %six) name "div"
    output %y)");
  EXPECT_EQ(proposed.covers, (std::vector<std::string>{
                                 "anchor_epilogue: conv add clip mul (x w three zero six -> m)",
                                 "anchor_epilogue: conv add clip mul div (x w three zero six -> y)",
                                 "elementwise_group: add clip mul div (c three zero six -> y)"}));
}

TEST(ProposeCovers, WhatIsLeftBesideAnEpilogue) {
  const auto proposed = propose_behind_conv(
      "%a = Relu(%c) name \"a\" %b = Exp(%a) name \"b\" %y = Neg(%b) name \"n\" output %y");
  EXPECT_EQ(proposed.covers,
            (std::vector<std::string>{
                "anchor_epilogue: conv a (x w -> a)", "anchor_epilogue: conv a b (x w -> b)",
                "anchor_epilogue: conv a b n (x w -> y)", "elementwise_group: a b n (c -> y)",
                "elementwise_group: b n (a -> y)"}));
}

TEST(ProposeCovers, ProductsHaveTheirChannelsLast) {
  const auto proposed = propose(R"(
    input %x : fp32[n, 5, 4]
    const %w : fp32[4, 3] dense [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
    const %b : fp32[3] dense [1, 2, 3]
    const %odd : fp32[5, 1] dense [1, 2, 3, 4, 5]
    %m = MatMul(%x, %w) name "matmul"
    %s = Add(%m, %b) name "bias"
    %y = Mul(%s, %odd) name "rows"
    output %y)");
  EXPECT_EQ(proposed.covers,
            (std::vector<std::string>{"anchor_epilogue: matmul bias (x w b -> s)",
                                      "elementwise_group: bias rows (m b odd -> y)"}));
  EXPECT_EQ(proposed.reasons,
            (std::vector<std::string>{"'rows' ends the epilogue: constant 'odd' has neither "
                                      "one element nor one for each channel"}));
}

TEST(ProposeCovers, OtherEndsOfAChain) {
  const auto wider = propose_behind_conv(
      "input %z : fp32[2, 1, 2, 4, 4] %s = Add(%c, %z) name \"wide\" output %s");
  EXPECT_THAT(wider.covers, IsEmpty());
  EXPECT_EQ(
      wider.reasons,
      (std::vector<std::string>{
          "'wide' ends the epilogue: its result has another shape or dtype than the anchor's"}));
  const auto division = propose_behind_conv("%s = Div(%c, %x) name \"div\" output %s");
  EXPECT_EQ(division.reasons,
            (std::vector<std::string>{
                "'div' ends the epilogue: only Add, Sub and Mul may read a second tensor, 'x'"}));
  const auto gate =
      propose_behind_conv("input %g : fp32[n, 2, 1, 1] %s = Mul(%c, %g) name \"gate\" output %s");
  EXPECT_EQ(gate.reasons,
            (std::vector<std::string>{"'gate' ends the epilogue: operand 'g' has another shape "
                                      "or dtype than the anchor's result"}));
}

TEST(ProposeCovers, GroupsJoinBranchesOfOneShape) {
  const auto proposed = propose(R"(
    input %x : fp32[n, 4]
    input %z : fp32[n, 4]
    %a = Sigmoid(%x) name "a"
    %b = Tanh(%z) name "b"
    %y = Mul(%a, %b) name "y"
    output %y)");
  EXPECT_EQ(proposed.covers, (std::vector<std::string>{"elementwise_group: a b y (x z -> y)"}));
}

TEST(ProposeCovers, GroupsStopWhereAValueIsReadOutside) {
  const auto proposed = propose(R"(
    input %x : fp32[n, 4]
    %a = Exp(%x) name "a"
    %b = Neg(%a) name "b"
    %s = Softmax(%b) name "s"
    %c = Add(%b, %s) name "c"
    %y = Relu(%c) name "y"
    output %y)");
  EXPECT_EQ(proposed.covers, (std::vector<std::string>{"elementwise_group: a b (x -> b)",
                                                       "elementwise_group: c y (b s -> y)"}))
      << "b, s, c would be a path that leaves and comes back";
}

TEST(ProposeCovers, NothingForIntegersOrUnknownShapes) {
  EXPECT_THAT(propose("input %x : int64[4] %a = Neg(%x) %y = Abs(%a) output %y").covers, IsEmpty());
  EXPECT_THAT(propose("input %x : fp32[?] %a = Neg(%x) %y = Abs(%a) output %y").covers, IsEmpty());
}

}  // namespace
}  // namespace tessera::passes
