#include "import/parse_cost.h"

#include <gtest/gtest.h>

#include <string>

#include "testing/onnx_builder.h"

namespace tessera::importer {
namespace {

using testing::bytes_of;
using testing::OnnxModel;

ParseCost cost_of(const OnnxModel& model) {
  return cost_of_parsing(bytes_of(model.serialize()));
}

OnnxModel relu_model() {
  OnnxModel model;
  model.input("x", testing::kFloat, {"n", 4});
  model.node("Relu", {"x"}, {"y"}, "relu");
  model.output("y", testing::kFloat, {"n", 4});
  return model;
}

TEST(ParseCost, CountsEachKindOfMessage) {
  OnnxModel nodes = relu_model();
  for (int i = 0; i < 1000; ++i) nodes.graph().add_node();
  EXPECT_EQ(cost_of(nodes).largest, "NodeProto messages");
  EXPECT_EQ(cost_of(nodes).largest_count, 1001U);
  EXPECT_GT(cost_of(nodes).size_bytes, 1000 * sizeof(onnx::NodeProto));
  OnnxModel types = relu_model();
  for (int i = 0; i < 1000; ++i)
    types.graph()
        .mutable_input(0)
        ->mutable_type()
        ->mutable_tensor_type()
        ->mutable_shape()
        ->add_dim();
  EXPECT_EQ(cost_of(types).largest, "TensorShapeProto.Dimension messages");
  OnnxModel texts = relu_model();
  for (int i = 0; i < 1000; ++i) texts.graph().mutable_node(0)->add_input("");
  EXPECT_EQ(cost_of(texts).largest, "texts");
  OnnxModel functions = relu_model();
  for (int i = 0; i < 1000; ++i) functions.proto().add_functions();
  EXPECT_EQ(cost_of(functions).largest, "FunctionProto messages");
}

TEST(ParseCost, CountsNumbersByTheirWidth) {
  OnnxModel packed = relu_model();
  packed.ints("w", {10000}, std::vector<std::int64_t>(10000, 1));
  EXPECT_EQ(cost_of(packed).largest, "int64 numbers");
  EXPECT_EQ(cost_of(packed).largest_count, 10001U) << "one of them is its size";
  EXPECT_GE(cost_of(packed).size_bytes, 80000U);
  OnnxModel loose = relu_model();
  testing::OnnxNode(loose.graph(), "Squeeze", {"y"}, {"z"})
      .ints("axes", std::vector<std::int64_t>(10000, 0));
  EXPECT_EQ(cost_of(loose).largest_count, 10000U);
  OnnxModel floats = relu_model();
  floats.floats("w", {10000}, std::vector<float>(10000, 1));
  EXPECT_EQ(cost_of(floats).largest, "float numbers");
}

// A list of one number takes a block of memory, and so does the first of many.
TEST(ParseCost, ShortListsCostTheirBlock) {
  const auto cost_with = [](int count) {
    OnnxModel model = relu_model();
    auto& weight = *model.graph().add_initializer();
    for (int i = 0; i < count; ++i) weight.add_dims(1);
    return cost_of(model).size_bytes;
  };
  EXPECT_GE(cost_with(1) - cost_with(0), 48U);
  EXPECT_EQ(cost_with(2) - cost_with(1), 16U);
}

TEST(ParseCost, RawBytesCostWhatTheyTake) {
  OnnxModel model = relu_model();
  model.floats("w", {25000}, {}).set_raw_data(std::string(100'000, 'x'));
  const ParseCost cost = cost_of(model);
  EXPECT_GE(cost.size_bytes, 100'000U);
  EXPECT_LT(cost.size_bytes, 110'000U);
}

TEST(ParseCost, UnknownFieldsAreKeptAsBytes) {
  const std::string model = relu_model().serialize();
  std::string flood;
  for (int i = 0; i < 1000; ++i) flood += "\x9a\x06\x02zz";  // field 99, two bytes
  const ParseCost cost = cost_of_parsing(bytes_of(model + flood));
  EXPECT_EQ(cost.largest, "unknown fields");
  EXPECT_GE(cost.size_bytes, flood.size());
}

// The walk ends where the parser will: behind a group that is closed, it goes on.
TEST(ParseCost, GoesAsFarAsTheParser) {
  const std::string model = relu_model().serialize();
  const std::uint64_t whole = cost_of_parsing(bytes_of(model)).size_bytes;
  EXPECT_LT(cost_of_parsing(bytes_of(std::string("\x07") + model)).size_bytes, whole);
  EXPECT_GE(cost_of_parsing(bytes_of("\x9b\x06\x9c\x06" + model)).size_bytes, whole);
  for (std::size_t size = 0; size < model.size(); ++size)
    EXPECT_LE(cost_of_parsing(bytes_of(model.substr(0, size))).size_bytes, whole);
}

TEST(ParseCost, DeepNestingEndsTheWalk) {
  OnnxModel model = relu_model();
  onnx::TypeProto* type = model.graph().mutable_input(0)->mutable_type();
  for (int level = 0; level < 1000; ++level)
    type = type->mutable_sequence_type()->mutable_elem_type();
  EXPECT_LT(cost_of(model).largest_count, static_cast<std::uint64_t>(kMaxNesting));
}

}  // namespace
}  // namespace tessera::importer
