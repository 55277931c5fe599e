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
