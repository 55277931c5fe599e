#pragma once

// Tiny models and inputs for the tests of the command.

#include <string>
#include <vector>

#include "base/tensor.h"
#include "io/npz.h"
#include "testing/onnx_builder.h"

namespace tessera::testing {

// y = Relu(x + z), fp32[n, 4] each; nodes "add" and "relu".
inline std::string add_relu_model() {
  OnnxModel model;
  model.input("x", kFloat, {"n", 4});
  model.input("z", kFloat, {"n", 4});
  model.node("Add", {"x", "z"}, {"s"}, "add");
  model.node("Relu", {"s"}, {"y"}, "relu");
  model.output("y", kFloat, {"n", 4});
  return model.serialize();
}

// z = ZipMap(Scaler(x)): for each row of fp32[n, 2] a map from "no" and "yes" to its doubles.
inline std::string zip_map_model() {
  OnnxModel model;
  model.opset_import("ai.onnx.ml", 3);
  model.input("x", kFloat, {"n", 2});
  model.node("Scaler", {"x"}, {"s"}, "scale", "ai.onnx.ml").floats("scale", {2});
  model.node("ZipMap", {"s"}, {"z"}, "zip", "ai.onnx.ml")
      .strings("classlabels_strings", {"no", "yes"});
  auto& output = *model.graph().add_output();
  output.set_name("z");
  auto& map =
      *output.mutable_type()->mutable_sequence_type()->mutable_elem_type()->mutable_map_type();
  map.set_key_type(onnx::TensorProto::STRING);
  map.mutable_value_type()->mutable_tensor_type()->set_elem_type(kFloat);
  return model.serialize();
}

// y = DictVectorizer(m) of a map from strings to floats.
inline std::string vectorizer_model() {
  OnnxModel model;
  model.opset_import("ai.onnx.ml", 3);
  auto& input = *model.graph().add_input();
  input.set_name("m");
  auto& map = *input.mutable_type()->mutable_map_type();
  map.set_key_type(onnx::TensorProto::STRING);
  map.mutable_value_type()->mutable_tensor_type()->set_elem_type(kFloat);
  model.node("DictVectorizer", {"m"}, {"y"}, "spread", "ai.onnx.ml")
      .strings("string_vocabulary", {"yes", "maybe", "no"});
  model.output("y", kFloat, {1, 3});
  return model.serialize();
}

inline Tensor floats_of(Dims dims, const std::vector<float>& values) {
  return Tensor::of<float>(DType::kFp32, std::move(dims), std::span<const float>(values));
}

// Inputs of add_relu_model() for n = 2, and what comes out.
inline io::NamedTensors add_relu_inputs() {
  return {{"x", floats_of({2, 4}, {-4, -3, -2, -1, 0, 1, 2, 3})},
          {"z", floats_of({2, 4}, {1, 1, 1, 1, 1, 1, 1, 1})}};
}
inline Tensor add_relu_result() {
  return floats_of({2, 4}, {0, 0, 0, 0, 1, 2, 3, 4});
}

}  // namespace tessera::testing
