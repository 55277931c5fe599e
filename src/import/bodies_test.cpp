// Bodies of If, Loop and Scan: captures become explicit inputs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "import/import.h"
#include "testing/import_model.h"

namespace tessera::importer {
namespace {

using tessera::testing::describe_nodes;
using tessera::testing::import_error;
using tessera::testing::import_model;
using tessera::testing::kBool;
using tessera::testing::kFloat;
using tessera::testing::kInt64;
using tessera::testing::OnnxModel;
using tessera::testing::OnnxNode;
using tessera::testing::set_floats;
using tessera::testing::set_value;
using tessera::testing::type_of;
using ::testing::HasSubstr;

const ir::Graph& graph_of(const ir::Module& module) {
  return module.methods.front().graph;
}

// A model with inputs c (bool) and x, to which the test adds one If named "i" with output y.
OnnxModel if_model() {
  OnnxModel model;
  model.input("c", kBool, {});
  model.input("x", kFloat, {2, 3});
  model.output("y");
  return model;
}

// One branch: output `result` = op(input).
void fill_branch(onnx::GraphProto& branch, const std::string& op,
                 const std::vector<std::string>& inputs, const std::string& result) {
  OnnxNode(branch, op, inputs, {result});
  branch.add_output()->set_name(result);
}

TEST(Bodies, OuterValuesBecomeCaptures) {
  OnnxModel model = if_model();
  model.node("Neg", {"x"}, {"h"});
  auto node = model.node("If", {"c"}, {"y"}, "i");
  fill_branch(node.graph("else_branch", "e"), "Relu", {"h"}, "r");  // listed before then_branch
  fill_branch(node.graph("then_branch", "t"), "Add", {"x", "h"}, "r");
  const ir::Module module = import_model(model);
  const ir::Graph& graph = graph_of(module);
  const ir::Node& branch = *graph.nodes()[1];
  ASSERT_EQ(branch.bodies.size(), 2U);
  EXPECT_EQ(branch.bodies[0]->name, "t");
  EXPECT_EQ(describe_nodes(*branch.bodies[0]), (std::vector<std::string>{"Add(x, h) -> r"}));
  EXPECT_EQ(branch.bodies[0]->inputs.size(), 2U);
  ASSERT_EQ(branch.captures[0].size(), 2U);
  EXPECT_EQ(graph.value(branch.captures[0][1]).name, "h");
  ASSERT_EQ(branch.captures[1].size(), 1U);
  EXPECT_EQ(graph.value(branch.captures[1][0]).name, "h");
  EXPECT_EQ(type_of(graph, "y"), "fp32[2, 3]");
}

TEST(Bodies, StatesThatStartAsOptionalsStayOptionals) {
  OnnxModel model(18);
  model.input("n", kInt64, {});
  auto& maybe = *model.graph().add_input();
  maybe.set_name("o");
  tessera::testing::set_tensor_type(
      *maybe.mutable_type()->mutable_optional_type()->mutable_elem_type(), kFloat, {2});
  model.input("x", kFloat, {2});
  auto node = model.node("Loop", {"n", "", "o"}, {"y"}, "l");
  auto& body = node.graph("body", "b");
  for (const char* name : {"i", "go", "state"}) body.add_input()->set_name(name);
  OnnxNode(body, "Identity", {"go"}, {"again"});
  OnnxNode(body, "Neg", {"x"}, {"next"});
  for (const char* name : {"again", "next"}) body.add_output()->set_name(name);
  model.output("y");
  const ir::Module module = import_model(model);
  const ir::Graph& graph = graph_of(module);
  EXPECT_EQ(describe_nodes(graph),
            (std::vector<std::string>{"Loop(n, _, o) -> l/optional",
                                      "OptionalGetElement(l/optional) -> y"}));
  EXPECT_THAT(describe_nodes(*graph.nodes()[0]->bodies[0]),
              ::testing::Contains("Optional(next) -> l/Optional_out"));
  EXPECT_EQ(type_of(graph, "y"), "fp32[2]");
}

// A model of opset 8 with a Scan that adds up.
OnnxModel batched_scan(const std::string& lengths) {
  OnnxModel model(8);
  model.input("n", kInt64, {3});
  model.input("h", kFloat, {3, 2});
  model.input("x", kFloat, {3, "t", 2});
  auto node = model.node("Scan", {lengths, "h", "x"}, {"y", "z"}, "s");
  node.integer("num_scan_inputs", 1);
  auto& body = node.graph("body", "b");
  for (const char* name : {"sum", "next"}) body.add_input()->set_name(name);
  OnnxNode(body, "Add", {"sum", "next"}, {"total"});
  for (const char* name : {"total", "total"}) body.add_output()->set_name(name);
  model.output("y");
  model.output("z");
  return model;
}

TEST(Bodies, OfTheFirstScanRunForEachSample) {
  const ir::Module module = import_model(batched_scan(""));
  const ir::Graph& graph = graph_of(module);
  EXPECT_EQ(describe_nodes(graph), (std::vector<std::string>{"Shape(x) -> s/Shape_out",
                                                             "Squeeze(s/Shape_out) -> "
                                                             "s/Squeeze_out",
                                                             "Loop(s/Squeeze_out) -> y, z"}));
  EXPECT_EQ(describe_nodes(*graph.nodes()[2]->bodies[0]),
            (std::vector<std::string>{"Gather(h, sample) -> s/Gather_out",
                                      "Gather(x, sample) -> s/Gather_out_1",
                                      "Scan(s/Gather_out, s/Gather_out_1) -> s/Scan_out, "
                                      "s/Scan_out_1",
                                      "Identity(condition) -> s/Identity_out"}));
  EXPECT_EQ(import_error(batched_scan("n")),
            "node 's' (Scan): Scan: input 'sequence_lens' of version 8 is not supported");
}

TEST(Bodies, OfSequenceMapBecomeALoop) {
  OnnxModel model(17);
  auto& words = *model.graph().add_input();
  words.set_name("s");
  tessera::testing::set_tensor_type(
      *words.mutable_type()->mutable_sequence_type()->mutable_elem_type(), kFloat, {"n"});
  model.input("x", kFloat, {1});
  model.input("z", kFloat, {1});
  auto node = model.node("SequenceMap", {"s", "x"}, {"y"}, "m");
  auto& body = node.graph("body", "b");
  body.add_input()->set_name("element");
  body.add_input()->set_name("offset");
  OnnxNode(body, "Add", {"element", "offset"}, {"sum"});
  fill_branch(body, "Mul", {"sum", "z"}, "product");
  model.output("y");
  const ir::Module module = import_model(model);
  const ir::Graph& graph = graph_of(module);
  EXPECT_EQ(describe_nodes(graph),
            (std::vector<std::string>{"SequenceLength(s) -> m/SequenceLength_out",
                                      "SequenceEmpty() -> m/SequenceEmpty_out",
                                      "Loop(m/SequenceLength_out, _, m/SequenceEmpty_out) -> y"}));
  EXPECT_EQ(describe_nodes(*graph.nodes()[2]->bodies[0]),
            (std::vector<std::string>{
                "SequenceAt(s, iteration) -> m/SequenceAt_out", "Add(m/SequenceAt_out, x) -> m/sum",
                "Mul(m/sum, z) -> m/product", "Identity(condition) -> m/Identity_out",
                "SequenceInsert(gathered, m/product) -> "
                "m/SequenceInsert_out"}));
  EXPECT_EQ(type_of(graph, "y"), "seq(fp32[?])");
}

TEST(Bodies, OfSequenceMapNeedASequence) {
  OnnxModel model(17);
  model.input("x", kFloat, {1});
  fill_branch(model.node("SequenceMap", {"x"}, {"y"}, "m").graph("body", "b"), "Neg", {"e"}, "r");
  model.output("y");
  EXPECT_EQ(import_error(model),
            "node 'm' (SequenceMap): input 'input_sequence': expected a sequence");
}

OnnxModel flex_model() {
  OnnxModel model(26);
  model.opset_import("ai.onnx.preview", 1);
  model.input("q", kFloat, {1, 4, "l", 16});
  model.input("k", kFloat, {1, 2, "s", 16});
  model.input("v", kFloat, {1, 2, "s", 8});
  model.output("y");
  return model;
}

TEST(Bodies, OfFlexAttentionAreInlined) {
  OnnxModel model = flex_model();
  auto node = model.node("FlexAttention", {"q", "k", "v"}, {"y"}, "f", "ai.onnx.preview");
  auto& score = node.graph("score_mod", "s");
  score.add_input()->set_name("scores");
  fill_branch(score, "Tanh", {"scores"}, "capped");
  const ir::Module module = import_model(model);
  const auto nodes = describe_nodes(graph_of(module));
  EXPECT_THAT(nodes, ::testing::Contains(HasSubstr("Tanh(f/MatMul_out) -> f/score_mod/capped")));
  EXPECT_THAT(nodes, ::testing::Contains(HasSubstr("Softmax(f/score_mod/capped)")));
  EXPECT_EQ(type_of(graph_of(module), "y"), "fp32[1, 4, l, 8]");
}

TEST(Bodies, FlexAttentionWithoutAnyIsAttention) {
  OnnxModel model = flex_model();
  model.node("FlexAttention", {"q", "k", "v"}, {"y"}, "f", "ai.onnx.preview");
  EXPECT_EQ(describe_nodes(graph_of(import_model(model))),
            (std::vector<std::string>{"Attention(q, k, v) -> y"}));
}

TEST(Bodies, FlexAttentionSaysWhatDoesNotFit) {
  OnnxModel model = flex_model();
  auto node = model.node("FlexAttention", {"q", "k", "v"}, {"y"}, "f", "ai.onnx.preview");
  fill_branch(node.graph("prob_mod", "p"), "Tanh", {"x"}, "capped");
  EXPECT_EQ(import_error(model),
            "node 'f' (ai.onnx.preview::FlexAttention): attribute 'prob_mod': expected 1 formal "
            "inputs, found 0");
}

TEST(Bodies, CapturesGoThroughEveryLevel) {
  OnnxModel model = if_model();
  auto outer = model.node("If", {"c"}, {"y"}, "outer");
  auto& then_branch = outer.graph("then_branch", "t");
  OnnxNode inner(then_branch, "If", {"c"}, {"z"}, "inner");
  fill_branch(inner.graph("then_branch", "tt"), "Relu", {"x"}, "r");
  fill_branch(inner.graph("else_branch", "te"), "Neg", {"x"}, "r");
  then_branch.add_output()->set_name("z");
  fill_branch(outer.graph("else_branch", "e"), "Abs", {"x"}, "r");
  const ir::Module module = import_model(model);
  const ir::Node& node = *graph_of(module).nodes()[0];
  const ir::Graph& body = *node.bodies[0];
  EXPECT_EQ(node.captures[0].size(), 2U);  // c and x, each once
  const ir::Node& nested = *body.nodes()[0];
  ASSERT_EQ(nested.captures[0].size(), 1U);
  EXPECT_EQ(body.value(nested.captures[0][0]).name, "x");
  EXPECT_EQ(body.value(nested.captures[0][0]).kind, ir::ValueKind::kInput);
}

TEST(Bodies, OuterConstantsAreCopiedIn) {
  OnnxModel model = if_model();
  model.floats("w", {3}, {1, 2, 3});
  auto node = model.node("If", {"c"}, {"y"}, "i");
  fill_branch(node.graph("then_branch", "t"), "Add", {"x", "w"}, "r");
  fill_branch(node.graph("else_branch", "e"), "Relu", {"x"}, "r");
  const ir::Module module = import_model(model);
  const ir::Node& branch = *graph_of(module).nodes()[0];
  const ir::Value* copied = tessera::testing::find_value(*branch.bodies[0], "w");
  ASSERT_NE(copied, nullptr);
  EXPECT_EQ(copied->kind, ir::ValueKind::kConstant);
  EXPECT_EQ(copied->constant.data(),
            tessera::testing::find_value(graph_of(module), "w")->constant.data());
  EXPECT_EQ(branch.captures[0].size(), 1U);
}

TEST(Bodies, InnerNamesHideOuterOnes) {
  OnnxModel model = if_model();
  auto node = model.node("If", {"c"}, {"y"}, "i");
  auto& branch = node.graph("then_branch", "t");
  set_floats(*branch.add_initializer(), "x", {2, 3}, {1, 2, 3, 4, 5, 6});
  fill_branch(branch, "Relu", {"x"}, "r");
  fill_branch(node.graph("else_branch", "e"), "Relu", {"x"}, "r");
  const ir::Module module = import_model(model);
  EXPECT_TRUE(graph_of(module).nodes()[0]->captures[0].empty());
}

TEST(Bodies, BranchWithoutNodes) {
  OnnxModel model = if_model();
  model.node("Neg", {"x"}, {"h"});
  auto node = model.node("If", {"c"}, {"y"}, "i");
  node.graph("then_branch", "t").add_output()->set_name("h");
  fill_branch(node.graph("else_branch", "e"), "Relu", {"x"}, "r");
  const ir::Module module = import_model(model);
  EXPECT_TRUE(graph_of(module).nodes()[1]->bodies[0]->nodes().empty());
  EXPECT_EQ(type_of(graph_of(module), "y"), "fp32[2, 3]");
}

// The node stands in front of the producer of what only its body reads.
TEST(Bodies, CapturesCountForTheOrder) {
  OnnxModel model = if_model();
  auto node = model.node("If", {"c"}, {"y"}, "i");
  fill_branch(node.graph("then_branch", "t"), "Relu", {"h"}, "r");
  fill_branch(node.graph("else_branch", "e"), "Neg", {"h"}, "r");
  model.node("Abs", {"x"}, {"h"});
  EXPECT_EQ(describe_nodes(graph_of(import_model(model))),
            (std::vector<std::string>{"Abs(x) -> h", "If(c) -> y"}));
}

TEST(Bodies, LoopWithCarriedValueAndCapture) {
  OnnxModel model;
  model.input("n", kInt64, {});
  model.input("x", kFloat, {2, "w"});
  auto loop = model.node("Loop", {"n", "", "x"}, {"last", "all"}, "l");
  auto& body = loop.graph("body", "b");
  set_value(*body.add_input(), "i", kInt64, {});
  set_value(*body.add_input(), "cond", kBool, {});
  body.add_input()->set_name("carried");  // without a type: that of the node's input
  OnnxNode(body, "Identity", {"cond"}, {"cond_out"});
  OnnxNode(body, "Add", {"carried", "x"}, {"next"});
  for (const char* name : {"cond_out", "next", "next"}) body.add_output()->set_name(name);
  model.output("last");
  model.output("all");
  const ir::Module module = import_model(model);
  const ir::Node& node = *graph_of(module).nodes()[0];
  EXPECT_EQ(node.bodies[0]->inputs.size(), 4U);
  ASSERT_EQ(node.captures[0].size(), 1U);
  EXPECT_EQ(graph_of(module).value(node.captures[0][0]).name, "x");
  EXPECT_EQ(type_of(graph_of(module), "last"), "fp32[2, w]");
}

TEST(Bodies, InsideOfFunctionsSeeTheFunctionsNames) {
  OnnxModel model;
  model.opset_import("local", 1);
  model.input("c", kBool, {});
  model.input("x", kFloat, {2});
  model.node("F", {"c", "x"}, {"y"}, "call", "local");
  model.output("y");
  auto& function = model.function("local", "F", {"k", "a"}, {"r"});
  OnnxNode node(function, "If", {"k"}, {"r"}, "i");
  fill_branch(node.graph("then_branch", "t"), "Relu", {"a"}, "o");
  fill_branch(node.graph("else_branch", "e"), "Neg", {"a"}, "o");
  const ir::Module module = import_model(model);
  const ir::Node& branch = *graph_of(module).nodes()[0];
  EXPECT_EQ(branch.name, "call/i");
  EXPECT_EQ(graph_of(module).value(branch.captures[0][0]).name, "x");
  EXPECT_EQ(module.source_nodes[branch.bodies[0]->nodes()[0]->origins[0]].name, "call/Relu_0");
}

TEST(Bodies, Errors) {
  OnnxModel missing = if_model();
  auto node = missing.node("If", {"c"}, {"y"}, "i");
  fill_branch(node.graph("then_branch", "t"), "Relu", {"x"}, "r");
  EXPECT_EQ(import_error(missing),
            "node 'i' (If): attribute 'else_branch': expected a graph, found none");

  OnnxModel ghost = if_model();
  auto other = ghost.node("If", {"c"}, {"y"}, "i");
  fill_branch(other.graph("then_branch", "t"), "Relu", {"ghost"}, "r");
  fill_branch(other.graph("else_branch", "e"), "Relu", {"x"}, "r");
  EXPECT_EQ(import_error(ghost),
            "node 'i' (If): attribute 'then_branch': node 'Relu_0' (Relu): input 0 'ghost': no "
            "node, input or initializer makes it");

  OnnxModel output = if_model();
  auto third = output.node("If", {"c"}, {"y"}, "i");
  third.graph("then_branch", "t").add_output()->set_name("phantom");
  fill_branch(third.graph("else_branch", "e"), "Relu", {"x"}, "r");
  EXPECT_EQ(import_error(output),
            "node 'i' (If): attribute 'then_branch': graph output 'phantom': no node, input or "
            "initializer makes it");

  OnnxModel arity;
  arity.input("x", kFloat, {4});
  auto& body = arity.node("Loop", {"", "", "x"}, {"y"}, "odd").graph("body", "lb");
  set_value(*body.add_input(), "i", kInt64, {});
  OnnxNode(body, "Identity", {"i"}, {"o"});
  body.add_output()->set_name("o");
  arity.output("y");
  EXPECT_THAT(import_error(arity), HasSubstr("node 'odd' (Loop)"));
}

}  // namespace
}  // namespace tessera::importer
