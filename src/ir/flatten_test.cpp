#include "ir/flatten.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/infer.h"
#include "ir/late_sizes.h"
#include "ir/text.h"

namespace tessera::ir {
namespace {

using ::testing::ElementsAre;

Module module_of(const std::string& statements) {
  auto module = parse("tessera.ir 1 module \"m\" { symbol \"n\" in [1, 64] method \"main\" {" +
                      statements + "} }");
  EXPECT_TRUE(module) << module.error().to_string();
  const auto unknown = infer(*module);
  EXPECT_TRUE(unknown) << unknown.error().to_string();
  return *std::move(module);
}

std::vector<std::string> node_texts(const Graph& graph) {
  std::vector<std::string> texts;
  for (const auto& node : graph.nodes()) {
    std::string text = std::to_string(node->block) + " " + std::string(node->op->name) + "(";
    for (const ValueId id : node->inputs)
      text += (text.ends_with("(") ? "" : ", ") + (id == kNoValue ? "-" : graph.value(id).name);
    texts.push_back(text + ")");
  }
  return texts;
}

const std::string kBranches = R"(
    input %c : bool[]
    input %x : fp32[n]
    const %k : fp32[1] dense [2]
    %y = If(%c) bodies {
      body captures [%x, %k] { input %a : fp32[n] input %b : fp32[1] %t = Mul(%a, %b) %r = Relu(%t) output %r }
      body captures [%x] { input %a : fp32[n] output %a }
    }
    %z = Neg(%y)
    output %z)";

TEST(Flatten, BodiesStandBeforeTheirNodeAndReadWhatTheyCapture) {
  const Module module = module_of(kBranches);
  const Method flat = flatten(module.methods.front(), {.branch_share = 0.25, .trips = 3});
  EXPECT_EQ(node_texts(flat.graph),
            (std::vector<std::string>{"1 Mul(x, k)", "1 Relu(t)", "0 If(c, r, x)", "0 Neg(y)"}));
  ASSERT_EQ(flat.graph.blocks.size(), 3U);
  EXPECT_EQ(flat.graph.blocks[1].name, "then_branch");
  EXPECT_EQ(flat.graph.blocks[2].name, "else_branch");
  EXPECT_EQ(flat.graph.weight_of(1), 0.25);
  const Node& control = *flat.graph.nodes()[2];
  EXPECT_EQ(own_input_count(flat.graph, control), 1U);
  EXPECT_THAT(blocks_of(flat.graph, control.id), ElementsAre(1U, 2U));
}

const std::string kLoop = R"(
    input %m : int64[]
    input %x : fp32[n]
    %y, %s = Loop(%m, _, %x) bodies {
      body captures [] {
        input %i : int64[] input %goes : bool[] input %v : fp32[n]
        %go = Identity(%goes) %w = Concat(%v, %v) {axis = 0} %p = ReduceSum(%v) {keepdims = 0}
        output %go output %w output %p
      }
    }
    output %y
    output %s)";

TEST(Flatten, LoopsHaveArgumentsAndResults) {
  const Module module = module_of(kLoop);
  const Method flat = flatten(module.methods.front(), {.branch_share = 0.5, .trips = 3});
  EXPECT_EQ(node_texts(flat.graph),
            (std::vector<std::string>{"1 Identity(goes)", "1 Concat(v, v)", "1 ReduceSum(v)",
                                      "0 Loop(m, -, x, go, w, p)"}));
  const Block& block = flat.graph.blocks.at(1);
  EXPECT_EQ(block.arguments.size(), 3U);
  EXPECT_EQ(block.results.size(), 3U);
  EXPECT_EQ(flat.graph.weight_of(1), 3);
  EXPECT_EQ(flat.graph.block_of(block.arguments[2]), 1U);
}

TEST(LateSizes, ResultsOfControlFlowAreLate) {
  const Module module = module_of(kBranches);
  const Method flat = flatten(module.methods.front(), {});
  const LateSizes late = find_late_sizes(flat.graph);
  std::vector<std::string> names;
  for (const ValueId id : late.values) names.push_back(flat.graph.value(id).name);
  EXPECT_EQ(names, (std::vector<std::string>{"y"})) << "z has the sizes of x";
  EXPECT_TRUE(late.nodes.empty());
  for (const Block& block : flat.graph.blocks)
    for (const ValueId id : block.results)
      EXPECT_TRUE(late.allocated.contains(id)) << "a body gives " << flat.graph.value(id).name;
}

TEST(LateSizes, NodesThatDecideASize) {
  const Module module = module_of(R"(
      input %x : fp32[n, 3]
      %i = NonZero(%x)
      %t = Transpose(%i)
      %y = Relu(%x)
      output %t
      output %y)");
  const Method flat = flatten(module.methods.front(), {});
  const LateSizes late = find_late_sizes(flat.graph);
  std::vector<std::string> nodes;
  for (const NodeId id : late.nodes)
    nodes.push_back(std::string(flat.graph.find_node(id)->op->name));
  EXPECT_EQ(nodes, (std::vector<std::string>{"NonZero"})) << "the sizes of Transpose follow";
  EXPECT_EQ(late.values.size(), 2U);
  EXPECT_EQ(late.allocated, late.values) << "there are no bodies";
}

TEST(LateSizes, ACarriedSizeIsKnownInsideOfTheBody) {
  const Module module = module_of(kLoop);
  const Method flat = flatten(module.methods.front(), {});
  const LateSizes late = find_late_sizes(flat.graph);
  EXPECT_TRUE(late.nodes.empty());
  for (const ValueId id : late.values) EXPECT_EQ(flat.graph.block_of(id), 0U);
}

}  // namespace
}  // namespace tessera::ir
