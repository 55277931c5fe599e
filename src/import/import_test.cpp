// What sound models become.

#include "import/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/import_model.h"
#include "testing/temp_dir.h"

namespace tessera::importer {
namespace {

using tessera::testing::describe_nodes;
using tessera::testing::import_error;
using tessera::testing::import_model;
using tessera::testing::kFloat;
using tessera::testing::kInt64;
using tessera::testing::OnnxModel;
using tessera::testing::set_floats;
using tessera::testing::set_ints;
using tessera::testing::set_tensor_type;
using tessera::testing::type_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const ir::Graph& graph_of(const ir::Module& module) {
  return module.methods.front().graph;
}

OnnxModel relu_model() {
  OnnxModel model;
  model.input("x", kFloat, {2, 3});
  model.node("Relu", {"x"}, {"y"}, "r");
  model.output("y", kFloat, {2, 3});
  return model;
}

TEST(Import, KeepsNamesOfTheInterface) {
  const ir::Module module = import_model(relu_model());
  const ir::Graph& graph = graph_of(module);
  ASSERT_EQ(graph.inputs.size(), 1U);
  ASSERT_EQ(graph.outputs.size(), 1U);
  EXPECT_EQ(graph.value(graph.inputs[0]).name, "x");
  EXPECT_EQ(graph.value(graph.outputs[0]).name, "y");
  EXPECT_EQ(type_of(graph, "y"), "fp32[2, 3]");
  EXPECT_EQ(module.methods.front().name, "main");
  EXPECT_EQ(graph.nodes().front()->name, "r");
}

TEST(Import, CarriesSequencesAndOptionals) {
  OnnxModel model(18);
  auto& words = *model.graph().add_input();
  words.set_name("s");
  set_tensor_type(*words.mutable_type()->mutable_sequence_type()->mutable_elem_type(), kFloat,
                  {"", 2});
  auto& maybe = *model.graph().add_input();
  maybe.set_name("o");
  set_tensor_type(*maybe.mutable_type()->mutable_optional_type()->mutable_elem_type(), kInt64, {});
  model.node("OptionalGetElement", {"o"}, {"i"});
  model.node("SequenceAt", {"s", "i"}, {"x"});
  model.node("SequenceErase", {"s", "i"}, {"rest"});
  model.node("OptionalHasElement", {""}, {"none"});
  model.output("x", kFloat, {"", 2});
  model.output("rest");
  model.output("none");
  const ir::Module module = import_model(model);
  const ir::Graph& graph = graph_of(module);
  EXPECT_EQ(type_of(graph, "s"), "seq(fp32[s_d0, 2])");
  EXPECT_EQ(type_of(graph, "o"), "opt(int64[])");
  EXPECT_EQ(type_of(graph, "x"), "fp32[element, 2]");
  EXPECT_EQ(type_of(graph, "rest"), "seq(fp32[s_d0, 2])");
  EXPECT_EQ(type_of(graph, "none"), "bool[]");
}

TEST(Import, NamesNodesWithoutANameByOperatorAndIndex) {
  OnnxModel model;
  model.input("x", kFloat, {2});
  model.node("Relu", {"x"}, {"a"}, "first");
  model.node("Neg", {"a"}, {"y"});
  model.output("y", kFloat, {2});
  const ir::Module module = import_model(model);
  ASSERT_EQ(module.source_nodes.size(), 2U);
  EXPECT_EQ(module.source_nodes[0].name, "first");
  EXPECT_EQ(module.source_nodes[1].name, "Neg_1");
  EXPECT_EQ(module.source_nodes[1].op_type, "Neg");
  EXPECT_THAT(graph_of(module).nodes()[1]->origins, ElementsAre(1U));
}

TEST(Import, NodesThatShareANameStayApart) {
  OnnxModel model;
  model.input("x", kFloat, {2});
  model.node("Relu", {"x"}, {"a"}, "same");
  model.node("Neg", {"a"}, {"y"}, "same");
  model.output("y", kFloat, {2});
  const ir::Module module = import_model(model);
  EXPECT_EQ(graph_of(module).nodes()[0]->name, "same");
  EXPECT_EQ(graph_of(module).nodes()[1]->name, "same_1");
  EXPECT_EQ(module.source_nodes[1].name, "same");
}

TEST(Import, SortsNodesThatAreListedOutOfOrder) {
  OnnxModel model;
  model.input("x", kFloat, {2});
  model.node("Neg", {"a"}, {"y"}, "second");
  model.node("Relu", {"x"}, {"a"}, "first");
  model.output("y", kFloat, {2});
  EXPECT_EQ(describe_nodes(graph_of(import_model(model))),
            (std::vector<std::string>{"Relu(x) -> a", "Neg(a) -> y"}));
}

TEST(Import, MetadataHoldsOpsetsProducerAndHash) {
  OnnxModel model = relu_model();
  model.opset_import("com.microsoft", 1);
  model.proto().set_producer_name("maker");
  auto& entry = *model.proto().add_metadata_props();
  entry.set_key("author");
  entry.set_value("somebody");
  const ir::Module module = import_model(model);
  EXPECT_EQ(module.metadata.at("opset_import.ai.onnx"), "17");
  EXPECT_EQ(module.metadata.at("opset_import.com.microsoft"), "1");
  EXPECT_EQ(module.metadata.at("producer_name"), "maker");
  EXPECT_EQ(module.metadata.at("metadata_props.author"), "somebody");
  EXPECT_EQ(module.metadata.at("ir_version"), "8");
  EXPECT_EQ(module.metadata.at("model_hash").size(), 32U);
}

// ---- Types --------------------------------------------------------------------------------------

TEST(Import, DimensionNamesBecomeSymbols) {
  OnnxModel model;
  model.input("x", kFloat, {"batch", 3, "p2o.DynamicDimension.0"});
  model.node("Relu", {"x"}, {"y"});
  model.output("y", kFloat, {"batch", 3, "other"});
  const ir::Module module = import_model(model);
  EXPECT_EQ(type_of(graph_of(module), "y"), "fp32[batch, 3, `p2o.DynamicDimension.0`]");
  EXPECT_TRUE(module.symbols.contains("p2o.DynamicDimension.0"));
}

TEST(Import, SizesWithoutANameGetFreshSymbols) {
  OnnxModel model;
  model.input("x", kFloat, {"", -1, "?", "x_d0"});
  model.node("Relu", {"x"}, {"y"});
  model.output("y");
  EXPECT_EQ(type_of(graph_of(import_model(model)), "y"), "fp32[x_d0_2, x_d1, x_d2, x_d0]");
}

TEST(Import, RangesApplyToSymbols) {
  OnnxModel model = relu_model();
  model.input("z", kFloat, {"batch"});
  ImportOptions options;
  options.ranges["batch"] = {1, 8};
  EXPECT_EQ(import_model(model, options).symbols.at("batch"), (SymbolRange{1, 8}));
  options.ranges = {{"bach", {1, 8}}};
  EXPECT_EQ(import_error(model, options),
            "range of symbol 'bach': the model has no such symbol; it has 'batch'");
  options.ranges = {{"batch", {4, 2}}};
  EXPECT_EQ(import_error(model, options),
            "range of symbol 'batch': expected 0 <= min <= max, found 4..2");
}

TEST(Import, GivenShapesReplaceASymbolEverywhere) {
  OnnxModel model;
  model.input("x", kFloat, {"batch", 3});
  model.input("z", kFloat, {"batch", 3});
  model.node("Relu", {"z"}, {"y"});
  model.output("y", kFloat, {"batch", 3});
  ImportOptions options;
  options.input_shapes["x"] = {4, 3};
  EXPECT_EQ(type_of(graph_of(import_model(model, options)), "y"), "fp32[4, 3]");
}

TEST(Import, GivenShapesAreChecked) {
  OnnxModel model;
  model.input("x", kFloat, {"n", "n"});
  model.node("Relu", {"x"}, {"y"});
  model.output("y");
  ImportOptions options;
  options.input_shapes = {{"w", {1}}};
  EXPECT_EQ(import_error(model, options),
            "shape of input 'w': the model has no such input; it has 'x'");
  options.input_shapes = {{"x", {1, 2, 3}}};
  EXPECT_EQ(import_error(model, options),
            "shape of input 'x': expected 2 sizes, as the model declares, found 3");
  options.input_shapes = {{"x", {1, 2}}};
  EXPECT_EQ(import_error(model, options), "input 'x': symbol 'n': given two sizes, 1 and 2");
}

TEST(Import, DeclaredTypesOfInnerValuesAreHints) {
  OnnxModel model;
  model.input("x", kFloat, {"batch", 3});
  model.node("Relu", {"x"}, {"a"});
  model.node("Neg", {"a"}, {"y"});
  model.value_info("a", kFloat, {1, 3});  // what an exporter saw once
  model.value_info("nobody", kFloat, {7});
  model.output("y", kFloat, {"batch", 3});
  EXPECT_EQ(type_of(graph_of(import_model(model)), "a"), "fp32[batch, 3]");
}

TEST(Import, StatesNameInputsAndOutputs) {
  ImportOptions options;
  options.states = {{"x", "y"}};
  const ir::Module module = import_model(relu_model(), options);
  ASSERT_EQ(module.methods.front().states.size(), 1U);
  EXPECT_EQ(module.methods.front().states[0].output, "y");
  options.states = {{"past", "y"}};
  EXPECT_EQ(import_error(relu_model(), options), "state 'past=y': the model has no input 'past'");
  options.states = {{"x", "present"}};
  EXPECT_EQ(import_error(relu_model(), options),
            "state 'x=present': the model has no output 'present'");
}

// ---- Constants ----------------------------------------------------------------------------------

TEST(Import, InitializersThatAreInputsAreConstants) {
  for (const int ir_version : {3, 8}) {
    OnnxModel model(9, ir_version);
    model.input("x", kFloat, {2});
    model.input("w", kFloat, {2});
    model.floats("w", {2}, {1, 2});
    model.node("Add", {"x", "w"}, {"y"});
    model.output("y", kFloat, {2});
    const ir::Module module = import_model(model);
    EXPECT_EQ(graph_of(module).inputs.size(), 1U);
    EXPECT_EQ(tessera::testing::find_value(graph_of(module), "w")->kind, ir::ValueKind::kConstant);
  }
}

TEST(Import, ConstantNodesOfEveryForm) {
  OnnxModel model;
  model.node("Constant", {}, {"i"}).integer("value_int", 7);
  model.node("Constant", {}, {"is"}).ints("value_ints", {1, 2});
  model.node("Constant", {}, {"f"}).real("value_float", 0.5F);
  model.node("Constant", {}, {"fs"}).floats("value_floats", {1, 2, 3});
  model.node("Constant", {}, {"s"}).text("value_string", "abc");
  model.node("Constant", {}, {"ss"}).strings("value_strings", {"a", "b"});
  auto dense = model.node("Constant", {}, {"t"});
  set_floats(dense.tensor("value"), "", {2, 1}, {3, 4});
  auto sparse = model.node("Constant", {}, {"sp"});
  auto& tensor = sparse.sparse_tensor("sparse_value");
  set_floats(*tensor.mutable_values(), "v", {2}, {5, 6});
  set_ints(*tensor.mutable_indices(), "i", {2}, {1, 3});
  tensor.add_dims(4);
  for (const char* name : {"i", "is", "f", "fs", "s", "ss", "t", "sp"}) model.output(name);
  const ir::Module module = import_model(model);
  const ir::Graph& graph = graph_of(module);
  EXPECT_TRUE(graph.nodes().empty());
  EXPECT_EQ(type_of(graph, "i"), "int64[]");
  EXPECT_EQ(type_of(graph, "is"), "int64[2]");
  EXPECT_EQ(type_of(graph, "f"), "fp32[]");
  EXPECT_EQ(type_of(graph, "fs"), "fp32[3]");
  EXPECT_EQ(type_of(graph, "s"), "string[]");
  EXPECT_EQ(type_of(graph, "ss"), "string[2]");
  EXPECT_EQ(type_of(graph, "t"), "fp32[2, 1]");
  EXPECT_THAT(tessera::testing::find_value(graph, "sp")->constant.span<float>(),
              ElementsAre(0, 5, 0, 6));
  EXPECT_EQ(tessera::testing::find_value(graph, "ss")->constant.span<std::string>()[1], "b");
}

TEST(Import, SparseInitializersWithARowOfIndicesEach) {
  OnnxModel model;
  auto& sparse = *model.graph().add_sparse_initializer();
  set_floats(*sparse.mutable_values(), "w", {2}, {5, 6});
  set_ints(*sparse.mutable_indices(), "i", {2, 2}, {0, 1, 1, 2});
  sparse.add_dims(2);
  sparse.add_dims(3);
  model.output("w");
  const ir::Module module = import_model(model);
  EXPECT_THAT(tessera::testing::find_value(graph_of(module), "w")->constant.span<float>(),
              ElementsAre(0, 5, 0, 0, 0, 6));
}

TEST(Import, InputsAndConstantsMayBeOutputs) {
  OnnxModel model;
  model.input("x", kFloat, {2});
  model.floats("w", {1}, {1});
  model.output("x", kFloat, {2});
  model.output("w", kFloat, {1});
  const ir::Module module = import_model(model);
  EXPECT_EQ(graph_of(module).outputs.size(), 2U);
  EXPECT_EQ(graph_of(module).outputs[0], graph_of(module).inputs[0]);
}

TEST(Import, OmittedInputsAndOutputsHaveNoValue) {
  OnnxModel model;
  model.input("x", kFloat, {4});
  model.floats("hi", {}, {6});
  model.node("Clip", {"x", "", "hi"}, {"y"}, "c");
  model.output("y", kFloat, {4});
  EXPECT_EQ(describe_nodes(graph_of(import_model(model))),
            (std::vector<std::string>{"Clip(x, _, hi) -> y"}));
}

// ---- Older operator versions --------------------------------------------------------------------

TEST(Import, AttributesOfOlderVersionsBecomeInputs) {
  OnnxModel model(9);
  model.input("x", kFloat, {4});
  model.node("Clip", {"x"}, {"y"}, "c").real("min", 0).real("max", 6);
  model.output("y", kFloat, {4});
  const ir::Module module = import_model(model);
  const auto& node = *graph_of(module).nodes().back();
  EXPECT_EQ(node.op->name, "Clip");
  ASSERT_EQ(node.inputs.size(), 3U);
  EXPECT_THAT(graph_of(module).value(node.inputs[2]).constant.span<float>(), ElementsAre(6));
  EXPECT_TRUE(node.attributes.entries().empty());
}

TEST(Import, ReplacedNodesKeepTheNamesOfTheirResults) {
  OnnxModel model(11);
  model.input("x", kFloat, {2, 3, 4});
  model.node("Softmax", {"x"}, {"y"}, "s").integer("axis", 1);  // coerces to a matrix
  model.output("y", kFloat, {2, 3, 4});
  const ir::Module module = import_model(model);
  EXPECT_EQ(type_of(graph_of(module), "y"), "fp32[2, 3, 4]");
  EXPECT_EQ(graph_of(module).value(graph_of(module).outputs[0]).name, "y");
  for (const auto& node : graph_of(module).nodes()) EXPECT_THAT(node->origins, ElementsAre(0U));
}

// ---- Files --------------------------------------------------------------------------------------

TEST(Import, FilesNameTheModuleWhereTheGraphHasNoName) {
  OnnxModel model = relu_model();
  model.graph().clear_name();
  const tessera::testing::TempDir folder;
  const auto module = import_file(folder.write("net.onnx", model.serialize()));
  ASSERT_TRUE(module.has_value()) << module.error().to_string();
  EXPECT_EQ(module->name, "net");
}

TEST(Inspect, ListsInterfaceOperatorsAndAllThatIsUnsupported) {
  OnnxModel model;
  model.opset_import("com.nowhere", 3);
  model.input("x", kFloat, {"n", 3});
  model.input("w", kFloat, {3});
  model.floats("w", {3}, {1, 2, 3});
  model.node("Reluu", {"x"}, {"a"}, "typo");
  model.node("Relu", {"a"}, {"b"});
  model.node("Frobnicate", {"b"}, {"c"}, "odd", "com.nowhere");
  model.node("Reluu", {"c"}, {"y"}, "again");
  model.output("y", kFloat, {"n", 3});
  model.proto().set_producer_name("maker");
  model.proto().set_producer_version("2");
  const tessera::testing::TempDir folder;
  const auto inspection = inspect_file(folder.write("m.onnx", model.serialize()));
  ASSERT_TRUE(inspection.has_value()) << inspection.error().to_string();
  ASSERT_EQ(inspection->inputs.size(), 1U);
  EXPECT_EQ(inspection->inputs[0].second.to_string(), "fp32[n, 3]");
  EXPECT_EQ(inspection->producer, "maker 2");
  EXPECT_EQ(inspection->opsets.at("ai.onnx"), 17);
  EXPECT_EQ(inspection->operators.at("Reluu"), 2U);
  EXPECT_EQ(inspection->operators.at("com.nowhere::Frobnicate"), 1U);
  ASSERT_EQ(inspection->unsupported.size(), 2U);
  EXPECT_EQ(inspection->unsupported[0].node, "typo");
  EXPECT_EQ(inspection->unsupported[1].domain, "com.nowhere");
  EXPECT_EQ(inspection->unsupported[1].version, 3);
}

}  // namespace
}  // namespace tessera::importer
