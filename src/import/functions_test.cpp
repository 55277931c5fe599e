// Local functions: expansion, attributes, operator sets, limits.

#include "import/functions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "import/import.h"
#include "testing/import_model.h"

namespace tessera::importer {
namespace {

using tessera::testing::describe_nodes;
using tessera::testing::import_error;
using tessera::testing::import_model;
using tessera::testing::kFloat;
using tessera::testing::OnnxModel;
using tessera::testing::OnnxNode;
using tessera::testing::type_of;
using ::testing::HasSubstr;

OnnxModel model_with_call(const std::vector<std::string>& inputs = {"x"},
                          const std::vector<std::string>& outputs = {"y"}) {
  OnnxModel model;
  model.opset_import("local", 1);
  model.input("x", kFloat, {2, 3});
  model.node("F", inputs, outputs, "call", "local");
  model.output("y");
  return model;
}

const ir::Graph& graph_of(const ir::Module& module) {
  return module.methods.front().graph;
}

TEST(Functions, ExpandWithNamesOfTheCall) {
  OnnxModel model = model_with_call();
  auto& function = model.function("local", "F", {"a"}, {"r"});
  OnnxNode(function, "Relu", {"a"}, {"t"}, "first");
  OnnxNode(function, "Neg", {"t"}, {"r"});
  const ir::Module module = import_model(model);
  EXPECT_EQ(describe_nodes(graph_of(module)),
            (std::vector<std::string>{"Relu(x) -> call/t", "Neg(call/t) -> y"}));
  ASSERT_EQ(module.source_nodes.size(), 2U);
  EXPECT_EQ(module.source_nodes[0].name, "call/first");
  EXPECT_EQ(module.source_nodes[1].name, "call/Neg_1");
}

TEST(Functions, TwoCallsStayApart) {
  OnnxModel model = model_with_call({"x"}, {"m"});
  model.node("F", {"m"}, {"y"}, "call", "local");  // of the same name, too
  auto& function = model.function("local", "F", {"a"}, {"r"});
  OnnxNode(function, "Relu", {"a"}, {"t"}, "n");
  OnnxNode(function, "Neg", {"t"}, {"r"});
  EXPECT_EQ(describe_nodes(graph_of(import_model(model))),
            (std::vector<std::string>{"Relu(x) -> call/t", "Neg(call/t) -> m",
                                      "Relu(m) -> call/t_1", "Neg(call/t_1) -> y"}));
}

TEST(Functions, AttributesComeFromTheCallOrTheirPreset) {
  for (const bool given : {true, false}) {
    OnnxModel model;
    model.opset_import("local", 1);
    model.input("x", kFloat, {2, 3});
    auto call = model.node("F", {"x"}, {"y"}, "call", "local");
    if (given) call.integer("where", 0);
    model.output("y");
    auto& function = model.function("local", "F", {"a"}, {"r"});
    auto& preset = *function.add_attribute_proto();
    preset.set_name("where");
    preset.set_type(onnx::AttributeProto::INT);
    preset.set_i(1);
    OnnxNode(function, "Flatten", {"a"}, {"r"})
        .reference("axis", onnx::AttributeProto::INT, "where");
    EXPECT_EQ(type_of(graph_of(import_model(model)), "y"), given ? "fp32[1, 6]" : "fp32[2, 3]");
  }
}

TEST(Functions, AttributesPassThroughNestedCalls) {
  OnnxModel model;
  model.opset_import("local", 1);
  model.input("x", kFloat, {2, 3});
  model.node("F", {"x"}, {"y"}, "call", "local").integer("outer", 0);
  model.output("y");
  auto& outer = model.function("local", "F", {"a"}, {"r"});
  outer.add_attribute("outer");
  OnnxNode(outer, "G", {"a"}, {"r"}, "inner", "local")
      .reference("axis", onnx::AttributeProto::INT, "outer");
  auto& inner = model.function("local", "G", {"a"}, {"r"});
  inner.add_attribute("axis");
  OnnxNode(inner, "Flatten", {"a"}, {"r"}, "f")
      .reference("axis", onnx::AttributeProto::INT, "axis");
  const ir::Module module = import_model(model);
  EXPECT_EQ(type_of(graph_of(module), "y"), "fp32[1, 6]");
  EXPECT_EQ(module.source_nodes[0].name, "call/inner/f");
}

TEST(Functions, OwnOperatorSetsHold) {
  OnnxModel model(18);
  model.opset_import("local", 1);
  model.input("x", kFloat, {2, 3});
  model.node("F", {"x"}, {"y"}, "call", "local");
  model.output("y");
  auto& function = model.function("local", "F", {"a"}, {"r"}, 17);
  OnnxNode(function, "ReduceMean", {"a"}, {"r"}).ints("axes", {1});  // an attribute up to opset 17
  EXPECT_EQ(type_of(graph_of(import_model(model)), "y"), "fp32[2, 1]");
}

TEST(Functions, OmittedInputsStayOmitted) {
  OnnxModel model = model_with_call({"x", "", "x"});
  auto& function = model.function("local", "F", {"a", "low", "high"}, {"r"});
  OnnxNode(function, "Neg", {"high"}, {"n"});
  OnnxNode(function, "Clip", {"a", "low"}, {"r"});
  EXPECT_EQ(describe_nodes(graph_of(import_model(model))),
            (std::vector<std::string>{"Neg(x) -> call/n", "Clip(x) -> y"}));
}

TEST(Functions, ThatReturnTheirInputGiveAnIdentity) {
  OnnxModel model = model_with_call();
  model.function("local", "F", {"a"}, {"a"});
  const ir::Module module = import_model(model);
  EXPECT_EQ(describe_nodes(graph_of(module)), (std::vector<std::string>{"Identity(x) -> y"}));
  EXPECT_EQ(module.source_nodes[0].name, "call");
}

TEST(Functions, OverloadsAreDistinct) {
  OnnxModel model = model_with_call();
  model.graph().mutable_node(0)->set_overload("second");
  OnnxNode(model.function("local", "F", {"a"}, {"r"}), "Relu", {"a"}, {"r"});
  auto& second = model.function("local", "F", {"a"}, {"r"});
  second.set_overload("second");
  OnnxNode(second, "Neg", {"a"}, {"r"});
  EXPECT_EQ(describe_nodes(graph_of(import_model(model))),
            (std::vector<std::string>{"Neg(x) -> y"}));
}

TEST(Functions, RecursionNamesTheCircle) {
  OnnxModel model = model_with_call();
  OnnxNode(model.function("local", "F", {"a"}, {"r"}), "G", {"a"}, {"r"}, "", "local");
  OnnxNode(model.function("local", "G", {"a"}, {"r"}), "F", {"a"}, {"r"}, "", "local");
  EXPECT_EQ(import_error(model),
            "local functions are recursive: 'local::F' -> 'local::G' -> 'local::F' form a cycle of "
            "calls");
}

TEST(Functions, RecursionIsFoundWhereNobodyCalls) {
  OnnxModel model = model_with_call();
  OnnxNode(model.function("local", "F", {"a"}, {"r"}), "Relu", {"a"}, {"r"});
  auto& outer = model.function("local", "G", {"a"}, {"r"});
  auto& body = OnnxNode(outer, "If", {"a"}, {"r"}).graph("then_branch", "then");
  OnnxNode(body, "H", {"a"}, {"t"}, "", "local");
  OnnxNode(model.function("local", "H", {"a"}, {"r"}), "H", {"a"}, {"r"}, "", "local");
  EXPECT_EQ(import_error(model),
            "local functions are recursive: 'local::H' -> 'local::H' form a cycle of calls");
}

TEST(Functions, LargeCirclesAreCut) {
  OnnxModel model = model_with_call();
  OnnxNode(model.function("local", "F", {"a"}, {"r"}), "Relu", {"a"}, {"r"});
  for (int i = 0; i < 1000; ++i)
    OnnxNode(model.function("local", "L" + std::to_string(i), {"a"}, {"r"}),
             "L" + std::to_string((i + 1) % 1000), {"a"}, {"r"}, "", "local");
  EXPECT_THAT(import_error(model), HasSubstr("'local::L9' -> (990 more) -> 'local::L0' form"));
}

// Each calls the next twice: as many ways through them as there are powers of two.
TEST(Functions, UncalledOnesTakeNoExponentialTime) {
  OnnxModel model = model_with_call();
  OnnxNode(model.function("local", "F", {"a"}, {"r"}), "Relu", {"a"}, {"r"});
  for (int level = 0; level < 400; ++level) {
    auto& function = model.function("local", "L" + std::to_string(level), {"a"}, {"r"});
    const std::string next = level == 399 ? "F" : "L" + std::to_string(level + 1);
    OnnxNode(function, next, {"a"}, {"t"}, "", "local");
    OnnxNode(function, next, {"t"}, {"r"}, "", "local");
  }
  EXPECT_EQ(import_error(model), "no error");
}

TEST(Functions, ExpansionIsBounded) {
  OnnxModel model = model_with_call();
  for (int level = 0; level < 40; ++level) {
    auto& function =
        model.function("local", level == 0 ? "F" : "L" + std::to_string(level), {"a"}, {"r"});
    const std::string next = "L" + std::to_string(level + 1);
    OnnxNode(function, next, {"a"}, {"t"}, "", "local");
    OnnxNode(function, next, {"t"}, {"r"}, "", "local");
  }
  OnnxNode(model.function("local", "L40", {"a"}, {"r"}), "Relu", {"a"}, {"r"});
  EXPECT_THAT(import_error(model), HasSubstr("expands to more than 250000 nodes"));
}

TEST(Functions, GraphsOfTooManyNodesAreRefused) {
  OnnxModel model;
  model.input("x", testing::kFloat, {4});
  for (std::uint64_t i = 0; i <= kMaxExpandedNodes; ++i)
    model.node("Relu", {"x"}, {"a value with the number " + std::to_string(i)});
  model.output("a value with the number 0");
  EXPECT_EQ(import_error(model), "the graph expands to more than 250000 nodes");
}

TEST(Functions, CallsNestOnlySoDeep) {
  OnnxModel model = model_with_call();
  for (int level = 0; level < kMaxCallDepth; ++level) {
    auto& function =
        model.function("local", level == 0 ? "F" : "L" + std::to_string(level), {"a"}, {"r"});
    OnnxNode(function, "L" + std::to_string(level + 1), {"a"}, {"r"}, "", "local");
  }
  OnnxNode(model.function("local", "L" + std::to_string(kMaxCallDepth), {"a"}, {"r"}), "Relu",
           {"a"}, {"r"});
  EXPECT_THAT(import_error(model),
              HasSubstr("calls of local functions nest deeper than 256 levels"));
}

TEST(Functions, BadCallsAndDefinitions) {
  OnnxModel inputs = model_with_call({"x", "x"});
  OnnxNode(inputs.function("local", "F", {"a"}, {"r"}), "Relu", {"a"}, {"r"});
  EXPECT_EQ(import_error(inputs),
            "node 'call' (local::F): local function 'local::F': expected at most 1 inputs and 1 "
            "outputs, found 2 and 1");
  OnnxModel missing = model_with_call();
  OnnxNode(missing.function("local", "F", {"a"}, {"r"}), "Relu", {"a"}, {"t"});
  EXPECT_EQ(import_error(missing),
            "local function 'local::F': output 'r': no node or input makes it");
  OnnxModel twice = model_with_call();
  OnnxNode(twice.function("local", "F", {"a"}, {"r"}), "Relu", {"a"}, {"r"});
  OnnxNode(twice.function("local", "F", {"a"}, {"r"}), "Relu", {"a"}, {"r"});
  EXPECT_EQ(import_error(twice), "local function 'local::F' stands there twice");
  OnnxModel nameless = model_with_call();
  nameless.function("local", "", {"a"}, {"r"});
  EXPECT_EQ(import_error(nameless), "expected a name for each local function, found an empty one");
  OnnxModel unversioned = model_with_call();
  unversioned.function("local", "F", {"a"}, {"r"}).clear_opset_import();
  EXPECT_EQ(import_error(unversioned),
            "local function 'local::F': expected at least one opset import (opset_import), found "
            "none");
  OnnxModel preset = model_with_call();
  auto& wrong = *preset.function("local", "F", {"a"}, {"r"}).add_attribute_proto();
  wrong.set_name("axis");
  wrong.set_type(onnx::AttributeProto::INT);
  wrong.add_ints(1);
  EXPECT_EQ(import_error(preset),
            "local function 'local::F': attribute 'axis': expected a value in 'i', as its type 2 "
            "says, found one in 'ints'");
  OnnxModel names = model_with_call();
  OnnxNode(names.function("local", "F", {"a", "a"}, {"r"}), "Relu", {"a"}, {"r"});
  EXPECT_EQ(import_error(names), "local function 'local::F': input 'a' is named twice");
  OnnxModel outside = model_with_call();
  OnnxNode(outside.function("local", "F", {"a"}, {"r"}), "Add", {"a", "x"}, {"r"}, "n");
  EXPECT_EQ(import_error(outside),
            "local function 'local::F': node 'call/n' (Add): input 1 'x': no node, input or "
            "initializer makes it");
}

}  // namespace
}  // namespace tessera::importer
