#include "ir/cover.h"

#include <gtest/gtest.h>

#include "ir/text.h"
#include "ops/op_table.h"

namespace tessera::ir {
namespace {

TEST(WorkItem, OfANode) {
  const auto module = parse(R"(tessera.ir 1
module "m" { method "main" { input %x : fp32[2] %y = Add(%x, %x) : fp32[2] %z = Clip(%y, _, %x) : fp32[2] output %z } })");
  ASSERT_TRUE(module) << module.error().to_string();
  const Graph& graph = module->methods[0].graph;
  const WorkItem add = work_item(*module, graph, *graph.nodes()[0]);
  EXPECT_EQ(add.inputs, graph.inputs) << "each once";
  EXPECT_EQ(add.cover, nullptr);
  const WorkItem clip = work_item(*module, graph, *graph.nodes()[1]);
  EXPECT_EQ(clip.inputs, (std::vector<ValueId>{graph.nodes()[0]->outputs[0], graph.inputs[0]}))
      << "without the omitted one";
  EXPECT_EQ(clip.outputs, graph.outputs);
}

TEST(WorkItem, OfACover) {
  const auto module = parse(R"(tessera.ir 1
module "m" { method "main" { input %x : fp32[2] %y = Exp(%x) : fp32[2] %z = Relu(%y) : fp32[2] output %z } })");
  ASSERT_TRUE(module) << module.error().to_string();
  const Graph& graph = module->methods[0].graph;
  Cover cover;
  cover.nodes = {graph.nodes()[0]->id, graph.nodes()[1]->id};
  cover.inputs = graph.inputs;
  cover.outputs = graph.outputs;
  const WorkItem item = work_item(*module, graph, cover);
  ASSERT_EQ(item.nodes.size(), 2U);
  EXPECT_EQ(item.nodes[1]->op->name, "Relu");
  EXPECT_EQ(item.cover, &cover);
  EXPECT_EQ(item.inputs, graph.inputs);
  EXPECT_EQ(item.outputs, graph.outputs);
}

TEST(WorkItem, OfACoverThatBearsAnOperator) {
  const auto module = parse(R"(tessera.ir 1
module "m" { method "main" { input %x : fp32[2] %y = Sigmoid(%x) : fp32[2] %z = Mul(%x, %y) : fp32[2] output %z } })");
  ASSERT_TRUE(module) << module.error().to_string();
  const Graph& graph = module->methods[0].graph;
  Cover cover;
  cover.nodes = {graph.nodes()[0]->id, graph.nodes()[1]->id};
  cover.inputs = graph.inputs;
  cover.outputs = graph.outputs;
  auto swish = std::make_shared<Node>();
  swish->op = ops::find_op("", "Swish");
  swish->inputs = graph.inputs;
  swish->outputs = graph.outputs;
  cover.assembled = {swish};
  const WorkItem item = work_item(*module, graph, cover);
  EXPECT_EQ(item.nodes, std::vector<const Node*>{swish.get()}) << "in the place of its pieces";
  EXPECT_EQ(item.cover, &cover);
}

}  // namespace
}  // namespace tessera::ir
