#include "ir/ir.h"

#include <gtest/gtest.h>

#include "ir/text.h"
#include "ir/use_index.h"
#include "ops/op_table.h"

namespace tessera::ir {
namespace {

const ValueType kType = ValueType::tensor(DType::kFp32, Shape{2});

// x -> relu -> y -> exp -> z; both y and z are outputs.
struct Chain {
  Graph graph;
  ValueId x = graph.add_input("x", kType);
  ValueId y = graph.add_value("y", kType);
  ValueId z = graph.add_value("z", kType);
  NodeId relu = add("relu", "Relu", {x}, {y});
  NodeId exp = add("exp", "Exp", {y}, {z});

  NodeId add(std::string name, std::string_view op, std::vector<ValueId> inputs,
             std::vector<ValueId> outputs, std::size_t position = SIZE_MAX) {
    Node node;
    node.op = ops::find_op("", op);
    node.name = std::move(name);
    node.inputs = std::move(inputs);
    node.outputs = std::move(outputs);
    node.origins = {0};
    return graph.add_node(std::move(node), position).id;
  }
};

std::vector<std::string> node_names(const Graph& graph) {
  std::vector<std::string> names;
  for (const auto& node : graph.nodes()) names.push_back(node->name);
  return names;
}

TEST(Graph, NodesKnowTheirPlaces) {
  Chain chain;
  EXPECT_EQ(chain.graph.producer(chain.y)->name, "relu");
  EXPECT_EQ(chain.graph.producer(chain.x), nullptr);
  EXPECT_EQ(chain.graph.position_of(chain.exp), 1U);
  EXPECT_EQ(chain.graph.find_node(99), nullptr);
  const Node* exp = chain.graph.find_node(chain.exp);
  chain.add("first", "Relu", {chain.x, kNoValue, kNoValue}, {chain.graph.add_value("f", kType)}, 0);
  EXPECT_EQ(node_names(chain.graph), (std::vector<std::string>{"first", "relu", "exp"}));
  EXPECT_EQ(chain.graph.find_node(chain.exp), exp) << "pointers stay";
  EXPECT_EQ(chain.graph.nodes()[0]->inputs.size(), 1U) << "trailing omitted inputs go";
}

TEST(Graph, UsesCountReadersAndOutputs) {
  Chain chain;
  chain.graph.outputs = {chain.y, chain.z};
  const auto uses = chain.graph.uses(chain.y);
  ASSERT_EQ(uses.size(), 1U);
  EXPECT_EQ(uses[0].node->name, "exp");
  EXPECT_EQ(chain.graph.use_count(chain.y), 2U);
  EXPECT_TRUE(chain.graph.is_output(chain.y));
  const UseIndex index(chain.graph);
  EXPECT_EQ(index.use_count(chain.y), 2U);
  EXPECT_EQ(index.sole_reader(chain.x)->name, "relu");
  EXPECT_EQ(index.sole_reader(chain.y), nullptr) << "it is an output too";
  EXPECT_EQ(index.use_count(1000), 0U);
}

TEST(Graph, CapturesAreUses) {
  Chain chain;
  Node* exp = chain.graph.find_node(chain.exp);
  exp->captures = {{}, {}};
  chain.graph.add_capture(*exp, 0, chain.x);
  chain.graph.add_capture(*exp, 1, chain.x);
  chain.graph.add_capture(*exp, 1, chain.y);
  const auto uses = chain.graph.uses(chain.y);
  ASSERT_EQ(uses.size(), 2U);
  EXPECT_EQ(uses[1].index, 3U);
  const ValueId other = chain.graph.add_input("other", kType);
  EXPECT_TRUE(chain.graph.replace_uses(chain.x, other));
  EXPECT_EQ(exp->captures[1][0], other);
  EXPECT_EQ(chain.graph.use_count(chain.x), 0U);
  EXPECT_EQ(UseIndex(chain.graph).use_count(other), 3U);
}

TEST(Graph, ReadersFollowEveryChange) {
  Chain chain;
  Node& exp = *chain.graph.find_node(chain.exp);
  exp.captures = {{}};
  chain.graph.add_capture(exp, 0, chain.x);
  chain.graph.set_input(exp, 0, chain.x);
  EXPECT_EQ(chain.graph.use_count(chain.y), 0U);
  const auto uses = chain.graph.uses(chain.x);
  ASSERT_EQ(uses.size(), 3U);
  EXPECT_EQ(uses[0].node->name, "relu");
  EXPECT_EQ(uses[1].node, &exp);
  EXPECT_EQ(uses[2].index, 1U) << "the capture, behind the one input";
  chain.graph.set_inputs(exp, {chain.y, kNoValue});
  EXPECT_EQ(exp.inputs, std::vector<ValueId>{chain.y}) << "nothing omitted at the end";
  chain.graph.erase_capture(exp, 0, 0);
  EXPECT_EQ(chain.graph.use_count(chain.x), 1U);
  EXPECT_TRUE(chain.graph.knows_its_reads());
  exp.inputs = {chain.x};
  EXPECT_FALSE(chain.graph.knows_its_reads());
}

// A value that all read, nodes that come between others at one place, and go again.
TEST(Graph, ReadersStandInTheOrderOfExecution) {
  Chain chain;
  constexpr int kAdded = 100;
  std::set<NodeId> added;
  for (int i = 0; i < kAdded; ++i) {
    const ValueId made = chain.graph.add_value("v" + std::to_string(i), kType);
    added.insert(chain.add("n" + std::to_string(i), "Relu", {chain.x}, {made}, 1));
  }
  EXPECT_EQ(chain.graph.position_of(chain.relu), 0U);
  EXPECT_EQ(chain.graph.position_of(chain.exp), kAdded + 1U);
  const auto uses = chain.graph.uses(chain.x);
  ASSERT_EQ(uses.size(), kAdded + 1U);
  for (std::size_t i = 0; i < uses.size(); ++i)
    EXPECT_EQ(chain.graph.position_of(uses[i].node->id), i);
  EXPECT_EQ(uses[1].node->name, "n99");
  for (const NodeId id : added) chain.graph.erase_node(id);
  EXPECT_EQ(chain.graph.uses(chain.x).size(), 1U);
  EXPECT_EQ(chain.graph.position_of(chain.exp), 1U);
}

TEST(Graph, ReplacingAnOutputKeepsItsName) {
  Chain chain;
  chain.graph.outputs = {chain.z};
  const ValueId w = chain.graph.add_value("w", kType);
  chain.add("tanh", "Tanh", {chain.y}, {w});
  ASSERT_TRUE(chain.graph.replace_uses(chain.z, w));
  EXPECT_EQ(chain.graph.outputs, std::vector<ValueId>{w});
  EXPECT_EQ(chain.graph.value(w).name, "z");
  EXPECT_EQ(chain.graph.value(chain.z).name, "w");
}

TEST(Graph, AnInputCannotTakeOverAnOutput) {
  Chain chain;
  chain.graph.outputs = {chain.y, chain.z};
  EXPECT_FALSE(chain.graph.replace_uses(chain.z, chain.x));
  EXPECT_FALSE(chain.graph.replace_uses(chain.z, chain.y)) << "an output itself";
  EXPECT_EQ(chain.graph.outputs, (std::vector<ValueId>{chain.y, chain.z}));
  EXPECT_EQ(chain.graph.find_node(chain.exp)->inputs, std::vector<ValueId>{chain.y});
}

TEST(Graph, ErasesNodes) {
  Chain chain;
  chain.graph.erase_nodes({chain.relu, chain.exp});
  EXPECT_TRUE(chain.graph.nodes().empty());
  EXPECT_EQ(chain.graph.find_node(chain.relu), nullptr);
  EXPECT_EQ(chain.graph.producer(chain.y), nullptr);
}

TEST(GraphDeathTest, AUsedNodeIsNotErased) {
  Chain chain;
  EXPECT_DEATH(chain.graph.erase_node(chain.relu), "internal error");
  chain.graph.outputs = {chain.z};
  EXPECT_DEATH(chain.graph.erase_node(chain.exp), "internal error");
}

TEST(Graph, FreshNamesAreFree) {
  Chain chain;
  EXPECT_EQ(chain.graph.fresh_name("new"), "new");
  EXPECT_EQ(chain.graph.fresh_name("new"), "new_1") << "not given twice, even if unused yet";
  EXPECT_EQ(chain.graph.fresh_name("y"), "y_1");
  chain.graph.add_value("relu_1", kType);
  EXPECT_EQ(chain.graph.fresh_name("relu"), "relu_2") << "a node bears relu, a value relu_1";
  chain.graph.rename_value(chain.x, "other");
  EXPECT_EQ(chain.graph.fresh_name("x"), "x") << "free again";
  EXPECT_EQ(chain.graph.fresh_name("other"), "other_1");
  chain.graph.erase_node(chain.exp);
  EXPECT_EQ(chain.graph.fresh_name("exp"), "exp");
}

TEST(Graph, SortsStably) {
  Chain chain;
  const ValueId w = chain.graph.add_value("w", kType);
  const ValueId v = chain.graph.add_value("v", kType);
  chain.add("late", "Relu", {w}, {v}, 0);
  chain.add("maker", "Exp", {chain.x}, {w});
  ASSERT_TRUE(chain.graph.sort_topologically());
  EXPECT_EQ(node_names(chain.graph), (std::vector<std::string>{"relu", "exp", "maker", "late"}));
  ASSERT_TRUE(chain.graph.sort_topologically());
  EXPECT_EQ(node_names(chain.graph), (std::vector<std::string>{"relu", "exp", "maker", "late"}));
}

TEST(Graph, NamesANodeOnACycle) {
  Chain chain;
  const ValueId after = chain.graph.add_value("after", kType);
  chain.add("behind", "Relu", {chain.z}, {after});
  chain.graph.set_inputs(*chain.graph.find_node(chain.relu), {chain.z});
  const Status sorted = chain.graph.sort_topologically();
  ASSERT_FALSE(sorted);
  const std::string message = sorted.error().to_string();
  EXPECT_TRUE(
      message == "node 'relu' (Relu) stands on a cycle: it reads, through others, its own output" ||
      message == "node 'exp' (Exp) stands on a cycle: it reads, through others, its own output")
      << message;
}

TEST(Origins, MergeToASortedUnion) {
  EXPECT_EQ(merge_origins({0, 2, 5}, {1, 2}), (std::vector<OriginId>{0, 1, 2, 5}));
}

}  // namespace
}  // namespace tessera::ir
