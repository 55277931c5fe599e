#pragma once

// A model as the generator makes it and the shrinker cuts it: small, by name, with the elements of
// its inputs. Every model is valid at two choices of its symbols, the points.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/tensor.h"
#include "ops/op.h"

namespace onnx {
class ModelProto;
}

namespace tessera::random_models {

inline constexpr std::size_t kPoints = 2;
template <typename T>
using AtPoints = std::array<T, kPoints>;

using ValueId = std::int32_t;
inline constexpr ValueId kOmitted = -1;

// kOuter: in a body, a value of the graph around its node.
enum class Source : std::uint8_t { kInput, kConstant, kNode, kOuter };

struct Value {
  std::string name;
  Source source = Source::kNode;
  std::vector<std::string> symbols;  // inputs: the symbol of each dim, "" where it is a number
  AtPoints<Tensor> elements;         // inputs and constants; equal for constants
};

struct Body;

struct Node {
  const ops::OpSchema* op = nullptr;
  ops::Attributes attributes;
  std::vector<ValueId> inputs;   // kOmitted where an optional one is left out
  std::vector<ValueId> outputs;  // likewise
  std::string name;
  std::vector<Body> bodies;
};

struct Model {
  std::vector<Value> values;
  std::vector<Node> nodes;  // in execution order
  std::vector<ValueId> outputs;
};

// A graph that its node runs. Its inputs are its formals, with elements that stand for any call.
struct Body {
  std::string attribute;  // "then_branch"
  Model graph;
  std::vector<ValueId> formals;
  std::vector<std::pair<ValueId, ValueId>> captures;  // in the body, in the graph around it
  std::vector<DType> output_dtypes;
};

// Without nodes whose outputs nobody uses, and without values that nobody uses, in bodies too.
Model pruned(const Model& model);

// The ONNX file of the newest opset. `dtypes` of all values, for the types of the outputs.
onnx::ModelProto to_onnx(const Model& model, const std::vector<DType>& dtypes);

// A line for each input, constant, node, and the outputs: for messages.
std::string to_string(const Model& model);

}  // namespace tessera::random_models
