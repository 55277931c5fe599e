// Bad models: the text of every refusal.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "import/import.h"
#include "testing/import_model.h"
#include "testing/temp_dir.h"

namespace tessera::importer {
namespace {

using tessera::testing::bytes_of;
using tessera::testing::import_error;
using tessera::testing::kBool;
using tessera::testing::kFloat;
using tessera::testing::kInt64;
using tessera::testing::OnnxModel;
using tessera::testing::OnnxNode;
using tessera::testing::set_floats;
using tessera::testing::set_ints;
using tessera::testing::set_tensor_type;
using tessera::testing::set_value;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string bytes_error(std::string_view bytes) {
  const auto module = import_bytes(bytes_of(bytes), nullptr);
  return module ? "no error" : module.error().to_string();
}

OnnxModel relu_model() {
  OnnxModel model;
  model.input("x", kFloat, {4});
  model.node("Relu", {"x"}, {"y"}, "r");
  model.output("y", kFloat, {4});
  return model;
}

// y = Mul(x, w) for an initializer that the test spoils.
OnnxModel weight_model(onnx::TensorProto*& weight) {
  OnnxModel model;
  model.input("x", kFloat, {4});
  weight = &model.floats("w", {4}, {1, 2, 3, 4});
  model.node("Mul", {"x", "w"}, {"y"}, "m");
  model.output("y", kFloat, {4});
  return model;
}

// ---- Files --------------------------------------------------------------------------------------

TEST(ImportErrors, MissingFileAndFolder) {
  const tessera::testing::TempDir folder;
  const auto missing = import_file(folder / "absent.onnx");
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(missing.error().to_string(),
            (folder / "absent.onnx").string() + ": expected a model file, found none of that name");
  const auto directory = import_file(folder.path());
  ASSERT_FALSE(directory.has_value());
  EXPECT_EQ(directory.error().to_string(),
            folder.path().string() + ": expected a model file, found a folder");
}

TEST(ImportErrors, EmptyFileNamesTheFile) {
  const tessera::testing::TempDir folder;
  const auto module = import_file(folder.write("empty.onnx", ""));
  ASSERT_FALSE(module.has_value());
  EXPECT_EQ(module.error().to_string(),
            (folder / "empty.onnx").string() + ": expected an ONNX model, found an empty file");
}

TEST(ImportErrors, TextFile) {
  EXPECT_THAT(bytes_error("This is not a model at all.\n"),
              HasSubstr("expected an ONNX model (protobuf), which does not parse: "));
}

TEST(ImportErrors, TruncatedFileNamesTheField) {
  const std::string bytes = relu_model().serialize();
  EXPECT_THAT(bytes_error(std::string_view(bytes).substr(0, bytes.size() - 8)),
              HasSubstr("the file is truncated: field "));
}

TEST(ImportErrors, FieldThatClaimsMoreThanTheFile) {
  EXPECT_EQ(bytes_error(std::string("\x3a\xff\xff\xff\xff\x07", 6)),
            "expected an ONNX model (protobuf), which does not parse: the file is truncated: field "
            "7 at byte 0 claims 2147483647 bytes, 0 are left");
}

TEST(ImportErrors, NestingBomb) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  onnx::GraphProto* graph = model.mutable_graph();
  for (int level = 0; level < 300; ++level) {
    auto& attribute = *graph->add_node()->add_attribute();
    graph = attribute.mutable_g();
  }
  EXPECT_THAT(bytes_error(model.SerializeAsString()), HasSubstr("nested deeper than 100 levels"));
}

TEST(ImportErrors, ModelWithoutGraphVersionsOrOpsets) {
  onnx::ModelProto model;
  model.set_ir_version(8);
  EXPECT_EQ(bytes_error(model.SerializeAsString()),
            "expected an ONNX model with a graph, found none");
  model.mutable_graph();
  EXPECT_EQ(bytes_error(model.SerializeAsString()),
            "expected at least one opset import (opset_import), found none");
  model.clear_ir_version();
  EXPECT_EQ(bytes_error(model.SerializeAsString()),
            "expected an IR version from 1 to 14, found none (ir_version is missing)");
}

TEST(ImportErrors, VersionsFromTheFuture) {
  EXPECT_EQ(
      import_error(OnnxModel(99)),
      "the model imports opset 99 of domain 'ai.onnx'; the newest version that is supported is 28");
  for (const auto& [domain, newest] :
       {std::pair<std::string, int>{"ai.onnx.ml", 5}, {"ai.onnx.preview.training", 1}}) {
    OnnxModel model(17);
    model.opset_import(domain, 77);
    EXPECT_EQ(import_error(model), "the model imports opset 77 of domain '" + domain +
                                       "'; the newest version that is supported is " +
                                       std::to_string(newest));
  }
  EXPECT_EQ(import_error(OnnxModel(17, 99)),
            "the model has IR version 99; the newest that is supported is 14");
}

TEST(ImportErrors, OpsetImportsThatContradict) {
  OnnxModel model = relu_model();
  model.opset_import("ai.onnx", 12);
  EXPECT_EQ(import_error(model), "opset import of domain 'ai.onnx': two versions, 17 and 12");
  EXPECT_EQ(import_error(OnnxModel(0)),
            "opset import of domain 'ai.onnx': expected a version of at least 1, found 0");
}

// ---- Operators ----------------------------------------------------------------------------------

TEST(ImportErrors, UnknownOperator) {
  OnnxModel model = relu_model();
  model.node("Reluu", {"x"}, {"z"}, "typo");
  EXPECT_EQ(import_error(model),
            "not supported: operator 'Reluu' (domain 'ai.onnx', opset 17) of node 'typo': the "
            "operator is not known; no version of it is supported");
}

TEST(ImportErrors, AllUnsupportedOperatorsAtOnce) {
  OnnxModel model = relu_model();
  model.opset_import("com.nowhere", 2);
  model.node("Frobnicate", {"x"}, {"z"}, "odd", "com.nowhere");
  model.node("Relu", {"x"}, {"w"}, "absent", "com.absent");
  EXPECT_EQ(import_error(model),
            "2 operators are not supported: operator 'Frobnicate' (domain 'com.nowhere', opset 2) "
            "of node 'odd': the operator is not known; no "
            "version of it is supported; operator 'Relu' (domain 'com.absent') of node 'absent': "
            "the model does not import domain 'com.absent'");
}

TEST(ImportErrors, OperatorOlderThanItsFirstVersionNamesTheNearest) {
  OnnxModel model(8);
  model.input("x", kFloat, {4});
  model.node("Erf", {"x"}, {"y"}, "e");
  model.output("y");
  EXPECT_EQ(import_error(model),
            "not supported: operator 'Erf' (domain 'ai.onnx', opset 8) of node 'e': version 8 is "
            "not supported; the nearest supported version is 9");
}

TEST(ImportErrors, ManyUnsupportedOperatorsAreCut) {
  OnnxModel model;
  for (int i = 0; i < 12; ++i) model.node("No" + std::to_string(i), {}, {});
  EXPECT_THAT(import_error(model), AllOf(HasSubstr("12 operators are not supported"),
                                         HasSubstr("and 2 more, which inspect lists")));
}

// ---- Names --------------------------------------------------------------------------------------

TEST(ImportErrors, CycleNamesItsNodes) {
  OnnxModel model;
  model.input("x", kFloat, {4});
  model.node("Add", {"x", "b"}, {"a"}, "p");
  model.node("Neg", {"a"}, {"b"}, "q");
  model.output("b");
  EXPECT_EQ(import_error(model), "the nodes form a cycle: 'p' -> 'q' -> 'p'");
}

TEST(ImportErrors, NodeThatReadsItsOwnOutput) {
  OnnxModel model;
  model.input("x", kFloat, {4});
  model.node("Add", {"x", "y"}, {"y"}, "self");
  model.output("y");
  EXPECT_EQ(import_error(model), "the nodes form a cycle: 'self' -> 'self'");
}

TEST(ImportErrors, ValueThatNobodyMakes) {
  OnnxModel model = relu_model();
  model.node("Add", {"x", "ghost"}, {"z"}, "a");
  EXPECT_EQ(import_error(model),
            "node 'a' (Add): input 1 'ghost': no node, input or initializer makes it");
  OnnxModel other = relu_model();
  other.output("phantom");
  EXPECT_EQ(import_error(other), "graph output 'phantom': no node, input or initializer makes it");
}

TEST(ImportErrors, NamesThatStandTwice) {
  OnnxModel twice = relu_model();
  twice.node("Neg", {"x"}, {"y"}, "n");
  EXPECT_EQ(import_error(twice), "node 'n' (Neg): output 'y' is made twice, by node 'r' as well");
  OnnxModel input = relu_model();
  input.node("Neg", {"y"}, {"x"}, "n");
  EXPECT_EQ(import_error(input),
            "node 'n' (Neg): output 'x' is made twice, by an input or initializer as well");
  OnnxModel inputs = relu_model();
  inputs.input("x", kFloat, {4});
  EXPECT_EQ(import_error(inputs), "graph input 'x' stands there twice");
  OnnxModel outputs = relu_model();
  outputs.output("y");
  EXPECT_EQ(import_error(outputs), "graph output 'y' stands there twice");
  OnnxModel weights = relu_model();
  weights.floats("w", {1}, {1});
  weights.floats("w", {1}, {2});
  EXPECT_EQ(import_error(weights), "initializer 'w' stands there twice");
}

TEST(ImportErrors, EmptyNames) {
  OnnxModel input = relu_model();
  input.input("", kFloat, {4});
  EXPECT_EQ(import_error(input), "expected a name for each graph input, found an empty one");
  OnnxModel output = relu_model();
  output.output("");
  EXPECT_EQ(import_error(output), "expected a name for each graph output, found an empty one");
  OnnxModel weight = relu_model();
  weight.floats("", {1}, {1});
  EXPECT_EQ(import_error(weight), "expected a name for each initializer, found an empty one");
}

// ---- Signatures ---------------------------------------------------------------------------------

TEST(ImportErrors, WrongNumberOfInputs) {
  OnnxModel none = relu_model();
  none.node("Relu", {}, {"z"}, "bare");
  EXPECT_EQ(import_error(none), "node 'bare' (Relu): input 'X': is required, but omitted");
  OnnxModel many = relu_model();
  many.node("Relu", {"x", "x", "x"}, {"z"}, "fat");
  EXPECT_EQ(import_error(many), "node 'fat' (Relu): expected at most 1 inputs, found 3");
}

TEST(ImportErrors, MoreOutputsThanAnUpgradedNodeHas) {
  OnnxModel model(11);
  model.input("x", kFloat, {2, 3, 4});
  model.node("Softmax", {"x"}, {"y", "z"}, "s").integer("axis", 1);
  model.output("y");
  EXPECT_EQ(import_error(model), "node 's' (Softmax): expected at most 1 outputs, found 2");
}

TEST(ImportErrors, MixedTypesNameTheNode) {
  OnnxModel model = relu_model();
  model.ints("k", {4}, {1, 2, 3, 4});
  model.node("Add", {"x", "k"}, {"z"}, "mixed");
  EXPECT_THAT(import_error(model), AllOf(HasSubstr("node 'mixed' (Add)"),
                                         HasSubstr("expected fp32"), HasSubstr("found int64")));
}

TEST(ImportErrors, Attributes) {
  const auto with_attribute = [](auto&& add) {
    OnnxModel model;
    model.input("x", kFloat, {2, 3});
    auto node = model.node("Transpose", {"x"}, {"y"}, "t");
    add(node);
    model.output("y");
    return import_error(model);
  };
  EXPECT_EQ(with_attribute([](auto& node) { node.real("perm", 1); }),
            "node 't' (Transpose): attribute 'perm': expected ints, found a float");
  EXPECT_EQ(with_attribute([](auto& node) {
              node.ints("perm", {1, 0}).ints("perm", {0, 1});
            }),
            "node 't' (Transpose): attribute 'perm' stands there twice");
  EXPECT_EQ(with_attribute([](auto& node) {
              node.ints("", {1, 0});
            }),
            "node 't' (Transpose): expected a name for each attribute, found an empty one");
  EXPECT_EQ(
      with_attribute([](auto& node) { node.graph("perm", "g"); }),
      "node 't' (Transpose): attribute 'perm': found a graph, which the operator does not take");
  EXPECT_EQ(
      with_attribute([](auto& node) { node.reference("perm", onnx::AttributeProto::INTS, "p"); }),
      "node 't' (Transpose): attribute 'perm': refers to attribute 'p' of a function, but stands "
      "outside of one");
  EXPECT_EQ(with_attribute([](auto& node) { node.add("perm", onnx::AttributeProto::GRAPHS); }),
            "node 't' (Transpose): attribute 'perm': attribute type 10 is not supported");
}

// An attribute holds one value, of the type that it names; scalars at their default may stand
// beside it.
TEST(ImportErrors, ValuesOfAttributes) {
  using Attribute = onnx::AttributeProto;
  const auto with_axis = [](auto&& fill) {
    OnnxModel model;
    model.input("x", kFloat, {2, 3});
    auto& attribute = model.node("Flatten", {"x"}, {"y"}, "f").add("axis", Attribute::INT);
    fill(attribute);
    model.output("y");
    return import_error(model);
  };
  const std::string place = "node 'f' (Flatten): attribute 'axis': ";
  for (const int type : {15, 77, -1}) {
    EXPECT_EQ(with_axis([&](Attribute& attribute) {
                attribute.set_i(1);
                attribute.set_type(type);
              }),
              place + "expected a known attribute type, found type " + std::to_string(type));
  }
  EXPECT_EQ(with_axis([](Attribute& attribute) {
              attribute.set_i(1);
              attribute.add_floats(0);
            }),
            place + "expected one value, found one in 'i' and one in 'floats'");
  EXPECT_EQ(with_axis([](Attribute& attribute) { attribute.add_ints(1); }),
            place + "expected a value in 'i', as its type 2 says, found one in 'ints'");
  EXPECT_EQ(with_axis([](Attribute& attribute) {
              attribute.clear_type();
              attribute.set_i(1);
              attribute.set_s("one");
            }),
            place + "expected one value, found one in 'i' and one in 's'");
  EXPECT_EQ(with_axis([](Attribute& attribute) {
              attribute.set_ref_attr_name("a");
              attribute.set_i(1);
            }),
            place + "refers to attribute 'a' of a function: expected no value, found one in 'i'");
  EXPECT_EQ(with_axis([](Attribute& attribute) {
              attribute.set_i(1);
              attribute.set_f(0);
              attribute.set_s("");
            }),
            "no error");
  EXPECT_EQ(with_axis([](Attribute& attribute) {
              attribute.clear_type();
              attribute.set_f(0);
              attribute.set_i(1);
            }),
            "no error");
  EXPECT_EQ(with_axis([](Attribute&) {}), "no error") << "0, as proto3 writes it";
}

TEST(ImportErrors, ConstantNodes) {
  const auto constant = [](auto&& add) {
    OnnxModel model;
    auto node = model.node("Constant", {}, {"y"}, "c");
    add(node);
    model.output("y");
    return import_error(model);
  };
  EXPECT_EQ(constant([](auto&) {}),
            "node 'c' (Constant): expected an attribute with its value, found none");
  EXPECT_EQ(
      constant([](auto& node) { node.integer("value_int", 1).real("value_float", 1); }),
      "node 'c' (Constant): expected one value, found attributes 'value_float' and 'value_int'");
  EXPECT_EQ(constant([](auto& node) { node.integer("values", 1); }),
            "node 'c' (Constant): attribute 'values' is unknown");
  EXPECT_EQ(constant([](auto& node) { node.integer("value", 1); }),
            "node 'c' (Constant): attribute 'value': expected attribute type 4, found 2");
  EXPECT_EQ(constant([](auto& node) { node.proto().add_input("x"); }),
            "node 'c' (Constant): expected no inputs and one output, found 1 and 1");
}

// ---- Types --------------------------------------------------------------------------------------

TEST(ImportErrors, TypesOfInputs) {
  OnnxModel none = relu_model();
  none.graph().add_input()->set_name("z");
  EXPECT_EQ(import_error(none),
            "input 'z': expected a tensor, sequence, optional or map type, found no type");
  OnnxModel unknown = relu_model();
  unknown.input("z", 999, {4});
  EXPECT_EQ(import_error(unknown), "input 'z': expected a known element type, found type code 999");
  OnnxModel undefined = relu_model();
  undefined.input("z", 0, {4});
  EXPECT_EQ(import_error(undefined),
            "input 'z': expected a known element type, found type code 0 (undefined)");
  OnnxModel sparse = relu_model();
  auto& input = *sparse.graph().add_input();
  input.set_name("z");
  input.mutable_type()->mutable_sparse_tensor_type();
  EXPECT_EQ(import_error(sparse),
            "input 'z': expected a tensor, sequence, optional or map type, found a sparse tensor "
            "or opaque type");
}

TEST(ImportErrors, TypesOfMaps) {
  const auto error = [](int key, std::initializer_list<std::int64_t> dims) {
    OnnxModel model = relu_model();
    auto& input = *model.graph().add_input();
    input.set_name("z");
    auto& map = *input.mutable_type()->mutable_map_type();
    map.set_key_type(key);
    auto& value = *map.mutable_value_type()->mutable_tensor_type();
    value.set_elem_type(kInt64);
    for (const std::int64_t dim : dims) value.mutable_shape()->add_dim()->set_dim_value(dim);
    return import_error(model);
  };
  EXPECT_EQ(error(1, {}),
            "input 'z': expected a map with keys of an integer type or strings, found fp32");
  EXPECT_EQ(error(0, {}),
            "input 'z': expected a map with keys of an integer type or strings, found undefined");
  EXPECT_EQ(error(8, {1, 2}),
            "input 'z': expected a map to single elements, found one to int64[1, 2]");
  OnnxModel zipped;
  zipped.opset_import("ai.onnx.ml", 1);
  zipped.input("x", kFloat, {2, 2});
  zipped.node("ZipMap", {"x"}, {"z"}, "zip", "ai.onnx.ml").ints("classlabels_int64s", {1, 2});
  auto& output = *zipped.graph().add_output();
  output.set_name("z");
  auto& map =
      *output.mutable_type()->mutable_sequence_type()->mutable_elem_type()->mutable_map_type();
  map.set_key_type(onnx::TensorProto::STRING);
  map.mutable_value_type()->mutable_tensor_type()->set_elem_type(kFloat);
  EXPECT_EQ(import_error(zipped),
            "node 'zip' (ai.onnx.ml::ZipMap): value 'z': declared seq(map(string, fp32)), inferred "
            "seq(map(int64, fp32))");
}

TEST(ImportErrors, DeclaredTypesThatContradict) {
  OnnxModel dtype = relu_model();
  dtype.value_info("y", kInt64, {4});
  dtype.graph().clear_output();
  dtype.output("y");
  EXPECT_EQ(import_error(dtype), "node 'r' (Relu): value 'y': declared int64[4], inferred fp32[4]");
  OnnxModel shape = relu_model();
  shape.graph().clear_output();
  shape.output("y", kFloat, {5});
  EXPECT_EQ(import_error(shape), "graph output 'y': declared fp32[5], inferred fp32[4]");
  OnnxModel inner = relu_model();
  inner.value_info("x", kFloat, {4, 1});
  EXPECT_EQ(import_error(inner), "value 'x': declared fp32[4, 1], inferred fp32[4]");
  OnnxModel constant = relu_model();
  constant.input("w", kFloat, {3});
  constant.floats("w", {2}, {1, 2});
  EXPECT_EQ(import_error(constant), "initializer 'w': declared fp32[3], inferred fp32[2]");
  OnnxModel constant_dtype = relu_model();
  constant_dtype.floats("w", {2}, {1, 2});
  constant_dtype.value_info("w", kInt64, {2});
  EXPECT_EQ(import_error(constant_dtype), "value 'w': declared int64[2], inferred fp32[2]");
  OnnxModel element(17);
  element.input("x", kFloat, {4});
  element.node("SequenceConstruct", {"x"}, {"s"}, "c");
  auto& output = *element.graph().add_output();
  output.set_name("s");
  set_tensor_type(*output.mutable_type()->mutable_sequence_type()->mutable_elem_type(), kInt64,
                  {4});
  EXPECT_EQ(import_error(element),
            "node 'c' (SequenceConstruct): value 's': declared seq(int64[4]), inferred "
            "seq(fp32[4])");
}

TEST(ImportErrors, DeclaredTypesThatContradictInBodies) {
  OnnxModel model;
  model.input("c", kBool, {});
  model.input("x", kFloat, {4});
  OnnxNode node = model.node("If", {"c"}, {"y"}, "if");
  for (const char* branch : {"then_branch", "else_branch"}) {
    auto& graph = node.graph(branch, branch);
    OnnxNode(graph, "Relu", {"x"}, {"t"}, "r");
    OnnxNode(graph, "Neg", {"t"}, {"z"}, "n");
    graph.add_output()->set_name("z");
    set_value(*graph.add_value_info(), "t", kFloat, {5});
  }
  model.output("y");
  EXPECT_EQ(import_error(model),
            "node 'if' (If): attribute 'then_branch': value 't': declared fp32[5], inferred "
            "fp32[4]");
}

// What a model declares holds for its own inputs, not for sizes that the caller gives.
TEST(ImportErrors, DeclaredShapesGoWhereTheCallerGivesOthers) {
  OnnxModel model;
  model.input("x", kFloat, {"n"});
  model.node("Relu", {"x"}, {"t"});
  model.node("Neg", {"t"}, {"y"});
  model.value_info("t", kFloat, {5});
  model.output("y");
  ImportOptions options;
  options.input_shapes = {{"x", {7}}};
  EXPECT_EQ(import_error(model, options), "no error");
}

// ---- Initializers -------------------------------------------------------------------------------

TEST(ImportErrors, InitializersThatDisagreeWithTheirShape) {
  onnx::TensorProto* weight = nullptr;
  OnnxModel few = weight_model(weight);
  weight->clear_float_data();
  weight->set_raw_data(std::string(8, '\0'));
  EXPECT_THAT(import_error(few),
              AllOf(HasSubstr("tensor 'w'"), HasSubstr("expected 16 bytes"), HasSubstr("found 8")));
  OnnxModel many = weight_model(weight);
  weight->clear_float_data();
  weight->set_raw_data(std::string(20, '\0'));
  EXPECT_THAT(import_error(many), AllOf(HasSubstr("tensor 'w'"), HasSubstr("expected 16 bytes"),
                                        HasSubstr("found 20")));
  OnnxModel huge = weight_model(weight);
  weight->set_dims(0, std::int64_t{1} << 62);
  weight->add_dims(4);
  EXPECT_THAT(import_error(huge), HasSubstr("tensor 'w'"));
  OnnxModel negative = weight_model(weight);
  weight->set_dims(0, -4);
  EXPECT_THAT(import_error(negative), HasSubstr("tensor 'w'"));
}

TEST(ImportErrors, InitializersOfUnknownType) {
  onnx::TensorProto* weight = nullptr;
  OnnxModel unknown = weight_model(weight);
  weight->set_data_type(999);
  EXPECT_THAT(import_error(unknown), AllOf(HasSubstr("tensor 'w'"), HasSubstr("999")));
  OnnxModel field = weight_model(weight);
  weight->clear_float_data();
  for (int i = 0; i < 4; ++i) weight->add_int32_data(i);
  EXPECT_THAT(import_error(field), HasSubstr("tensor 'w'"));
}

TEST(ImportErrors, SparseInitializers) {
  const auto sparse = [](std::vector<std::int64_t> indices, std::vector<std::int64_t> index_dims,
                         std::vector<std::int64_t> dims) {
    OnnxModel model;
    auto& proto = *model.graph().add_sparse_initializer();
    set_floats(*proto.mutable_values(), "w", {2}, {5, 6});
    set_ints(*proto.mutable_indices(), "i", index_dims, indices);
    for (const std::int64_t dim : dims) proto.add_dims(dim);
    model.output("w");
    return import_error(model);
  };
  EXPECT_EQ(sparse({0, 9}, {2}, {4}),
            "sparse tensor 'w': sparse: index 9 is out of range for 4 elements");
  EXPECT_EQ(sparse({-5, 0}, {2}, {4}),
            "sparse tensor 'w': sparse: index -5 is out of range for 4 elements");
  EXPECT_EQ(sparse({0, 0, 1, 3}, {2, 2}, {2, 3}),
            "sparse tensor 'w': sparse: index 3 is out of range for axis 1 of size 3");
  EXPECT_EQ(sparse({2, 1}, {2}, {4}),
            "sparse tensor 'w': sparse: expected ascending indices, found 1 after 2");
  EXPECT_EQ(sparse({0, 1, 2}, {3}, {4}),
            "sparse tensor 'w': sparse: expected indices of shape 2 or 2x1, found 3");
  EXPECT_THAT(sparse({0, 1}, {2}, {std::int64_t{1} << 34}),
              HasSubstr("bytes when dense; the limit is 2147483648"));
  EXPECT_THAT(sparse({0, 1}, {2}, {std::int64_t{1} << 62, 4}), HasSubstr("sparse tensor 'w'"));
}

// ---- Damage -------------------------------------------------------------------------------------

// Bytes changed at random: an error or a model, never a crash (this runs under asan too).
TEST(ImportErrors, DamagedBytesNeverCrash) {
  onnx::TensorProto* weight = nullptr;
  OnnxModel model = weight_model(weight);
  auto loop = model.node("If", {"c"}, {"z"}, "i");
  model.input("c", kBool, {});
  auto& branch = loop.graph("then_branch", "t");
  tessera::testing::OnnxNode(branch, "Relu", {"y"}, {"t"});
  branch.add_output()->set_name("t");
  loop.graph("else_branch", "e") = branch;
  model.node("Squeeze", {"z"}, {"s"}).ints("axes", {0});
  const std::string bytes = model.serialize();
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string damaged = bytes;
    for (int change = 0; change < 3; ++change) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    if (round % 4 == 0) damaged.resize(random() % damaged.size());
    (void)import_bytes(bytes_of(damaged), nullptr);
  }
}

}  // namespace
}  // namespace tessera::importer
