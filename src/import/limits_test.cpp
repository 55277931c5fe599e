// Models that are small as files and large in memory: each ends in the error of the budget, named
// after what there is too much of, or is imported within it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "import/import.h"
#include "testing/import_model.h"
#include "testing/temp_dir.h"

namespace tessera::importer {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::kFloat;
using testing::OnnxModel;
using testing::OnnxNode;

OnnxModel relu_model() {
  OnnxModel model;
  model.input("x", kFloat, {4});
  model.node("Relu", {"x"}, {"y"}, "r");
  model.output("y", kFloat, {4});
  return model;
}

std::string inspect_error(const OnnxModel& model) {
  const testing::TempDir folder;
  const auto path = folder.write("m.onnx", model.serialize());
  const auto inspection = inspect_file(path);
  return inspection ? "no error" : inspection.error().message;
}

auto too_many(const std::string& what) {
  return AllOf(HasSubstr("importing takes more than "), HasSubstr(what + " take most of it"));
}

TEST(ImportLimits, Inputs) {
  OnnxModel model = relu_model();
  for (int i = 0; i < 200'000; ++i) model.input("i" + std::to_string(i), kFloat, {});
  EXPECT_THAT(import_error(model), too_many(" ValueInfoProto messages"));
  EXPECT_THAT(inspect_error(model), too_many(" ValueInfoProto messages"));
}

TEST(ImportLimits, Outputs) {
  OnnxModel model = relu_model();
  for (int i = 0; i < 200'000; ++i) model.output("o" + std::to_string(i), kFloat, {});
  EXPECT_THAT(inspect_error(model), too_many(" ValueInfoProto messages"));
}

TEST(ImportLimits, SymbolsOfInputs) {
  OnnxModel model = relu_model();
  for (int i = 0; i < 50'000; ++i) {
    testing::set_value(*model.graph().add_input(), "i" + std::to_string(i), kFloat, {});
    auto& shape = *model.graph().mutable_input(i + 1)->mutable_type()->mutable_tensor_type();
    for (int axis = 0; axis < 8; ++axis)
      shape.mutable_shape()->add_dim()->set_dim_param(std::to_string(8 * i + axis));
  }
  EXPECT_THAT(import_error(model), too_many(" TensorShapeProto.Dimension messages"));
  EXPECT_THAT(inspect_error(model), too_many(" TensorShapeProto.Dimension messages"));
}

// Symbols that are made for sizes without a name bear the name of their value.
TEST(ImportLimits, NamelessSizesOfALongName) {
  OnnxModel model = relu_model();
  auto& input = *model.graph().add_input();
  input.set_name(std::string(200'000, 'n'));
  auto& type = *input.mutable_type()->mutable_tensor_type();
  type.set_elem_type(kFloat);
  for (int axis = 0; axis < 1000; ++axis) type.mutable_shape()->add_dim();
  EXPECT_THAT(import_error(model), too_many(" sizes"));
}

TEST(ImportLimits, Initializers) {
  OnnxModel model = relu_model();
  for (int i = 0; i < 200'000; ++i) {
    auto& tensor = *model.graph().add_initializer();
    tensor.set_name(std::to_string(i));
    tensor.set_data_type(onnx::TensorProto::BOOL);
    tensor.add_int32_data(1);
  }
  EXPECT_THAT(import_error(model), too_many(" TensorProto messages"));
}

TEST(ImportLimits, Functions) {
  OnnxModel model = relu_model();
  for (int i = 0; i < 200'000; ++i) {
    auto& function = *model.proto().add_functions();
    function.set_name(std::to_string(i));
    function.add_opset_import()->set_version(17);
  }
  EXPECT_THAT(import_error(model), too_many(" FunctionProto messages"));
}

TEST(ImportLimits, OpsetImports) {
  OnnxModel model = relu_model();
  for (int i = 0; i < 200'000; ++i) model.opset_import(std::to_string(i), 1);
  EXPECT_THAT(import_error(model), too_many(" opset imports"));
  EXPECT_THAT(inspect_error(model), too_many(" opset imports"));
}

// What a function does not import it takes from the model, and no copy of it.
TEST(ImportLimits, FunctionsShareTheModelsOpsetImports) {
  OnnxModel model = relu_model();
  for (int i = 0; i < 5'000; ++i) {
    model.opset_import(std::to_string(i), 1);
    auto& function = *model.proto().add_functions();
    function.set_name(std::to_string(i));
    function.add_opset_import()->set_version(17);
  }
  EXPECT_EQ(import_error(model), "no error");
}

TEST(ImportLimits, UnknownOperators) {
  OnnxModel model = relu_model();
  for (int i = 0; i < 100'000; ++i) model.node("Q" + std::to_string(i), {}, {});
  EXPECT_THAT(inspect_error(model), too_many(" operators"));
}

TEST(ImportLimits, Metadata) {
  OnnxModel model = relu_model();
  for (int i = 0; i < 200'000; ++i) model.proto().add_metadata_props()->set_key(std::to_string(i));
  EXPECT_THAT(import_error(model), too_many(" entries of metadata"));
}

// A body that reads a value gets one of its own, and so does each body around it.
TEST(ImportLimits, Captures) {
  constexpr int kCount = 5000;
  OnnxModel model;
  model.input("x", kFloat, {kCount});
  model.input("c", testing::kBool, {});
  std::vector<std::string> parts(kCount);
  for (int i = 0; i < kCount; ++i) parts[static_cast<std::size_t>(i)] = "p" + std::to_string(i);
  model.node("Split", {"x"}, parts, "split");
  onnx::GraphProto* graph = &model.graph();
  for (int depth = 0; depth < 30; ++depth) {
    OnnxNode outer(*graph, "If", {"c"}, {"y" + std::to_string(depth)}, "if");
    auto& other = outer.graph("else_branch", "else");
    OnnxNode(other, "Identity", {"x"}, {"e"});
    other.add_output()->set_name("e");
    auto& inner = outer.graph("then_branch", "then");
    inner.add_output()->set_name("y" + std::to_string(depth + 1));
    graph = &inner;
  }
  OnnxNode(*graph, "Concat", parts, {"y30"}, "all").integer("axis", 0);
  model.output("y0");
  EXPECT_THAT(import_error(model), too_many(" values"));
}

TEST(ImportLimits, ManyInputsTakeLinearTime) {
  const auto time_of = [](int count) {
    OnnxModel model = relu_model();
    // Long names give the model the memory that its inputs take.
    const std::string stem(60, 'n');
    for (int i = 0; i < count; ++i) model.input(stem + std::to_string(i), kFloat, {});
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(import_error(model), "no error");
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  time_of(1000);
  EXPECT_LT(time_of(40'000), 40 * time_of(4000));
}

}  // namespace
}  // namespace tessera::importer
