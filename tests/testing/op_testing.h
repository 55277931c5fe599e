#pragma once

// Running, inferring and upgrading single operators of the op table in a line.
//
//   EXPECT_EQ(testing::values<float>(testing::run_op("Add", {a, b})), ...);
//   EXPECT_EQ(testing::infer_text("Concat", {testing::typed("fp32[n, 3]"), ...}, {{"axis", 0}}),
//   "fp32[...]");

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ops/kernel_util.h"
#include "ops/op_table.h"

namespace tessera::testing {

using AttributeList = std::vector<std::pair<std::string, ops::AttributeValue>>;
using Ints = std::vector<std::int64_t>;

inline ops::Attributes attributes(const AttributeList& list) {
  ops::Attributes out;
  for (const auto& [name, value] : list) out.set(name, value);
  return out;
}

template <typename T>
Tensor tensor(Dims dims, std::initializer_list<T> elements) {
  return Tensor::of<T>(ops::dtype_of<T>(), std::move(dims),
                       std::span<const T>(elements.begin(), elements.size()));
}

inline Tensor int64s(std::initializer_list<std::int64_t> elements) {
  return tensor<std::int64_t>({static_cast<std::int64_t>(elements.size())}, elements);
}

inline Tensor floats(std::initializer_list<float> elements) {
  return tensor<float>({static_cast<std::int64_t>(elements.size())}, elements);
}

template <typename T>
std::vector<T> values(const Tensor& from) {
  EXPECT_EQ(from.dtype(), ops::dtype_of<T>());
  if (from.dtype() != ops::dtype_of<T>()) return {};
  const auto span = from.span<T>();
  return {span.begin(), span.end()};
}

// Matches floats that are each within 1e-5 of the expected ones.
inline auto near(std::initializer_list<float> expected) {
  return ::testing::Pointwise(::testing::FloatNear(1e-5F), std::vector<float>(expected));
}

// "Add", or "ai.onnx.ml::Scaler".
inline const ops::OpSchema& schema(std::string_view name) {
  const auto colons = name.find("::");
  const ops::OpSchema* op = colons == std::string_view::npos
                                ? ops::find_op("", name)
                                : ops::find_op(name.substr(0, colons), name.substr(colons + 2));
  TESSERA_CHECK(op != nullptr);
  return *op;
}

inline Result<std::vector<Tensor>> try_op(std::string_view name, const std::vector<Tensor>& inputs,
                                          const AttributeList& list = {}, std::size_t outputs = 1) {
  return ops::run_reference(schema(name), attributes(list), inputs, outputs);
}

inline std::vector<Tensor> run_all(std::string_view name, const std::vector<Tensor>& inputs,
                                   const AttributeList& list, std::size_t outputs) {
  auto result = try_op(name, inputs, list, outputs);
  if (!result) {
    ADD_FAILURE() << name << ": " << result.error().to_string();
    return std::vector<Tensor>(outputs);
  }
  return *std::move(result);
}

inline Tensor run_op(std::string_view name, const std::vector<Tensor>& inputs,
                     const AttributeList& list = {}) {
  return run_all(name, inputs, list, 1)[0];
}

inline std::string op_error(std::string_view name, const std::vector<Tensor>& inputs,
                            const AttributeList& list = {}, std::size_t outputs = 1) {
  const auto result = try_op(name, inputs, list, outputs);
  return result ? "no error" : result.error().to_string();
}

// ---- Inference
// -------------------------------------------------------------------------------------------------

inline ops::InferInput typed(std::string_view type) {
  auto parsed = parse_value_type(type);
  TESSERA_CHECK(parsed.has_value());
  ops::InferInput input;
  input.present = true;
  input.type = *std::move(parsed);
  return input;
}

inline ops::InferInput omitted() {
  return {};
}

// A vector of sizes given as expressions.
inline ops::InferInput sized(const std::vector<std::string>& elements) {
  ops::InferInput input;
  input.present = true;
  input.type =
      ValueType::tensor(DType::kInt64, Shape{Dim(static_cast<std::int64_t>(elements.size()))});
  input.value.emplace();
  for (const std::string& element : elements) {
    auto dim = parse_dim(element);
    TESSERA_CHECK(dim.has_value());
    input.value->elements.push_back(*dim);
  }
  return input;
}

// A constant; the tensor is kept for the life of the program.
inline ops::InferInput known(const Tensor& constant) {
  static std::deque<Tensor> kept;
  kept.push_back(constant);
  ops::InferInput input;
  input.present = true;
  input.type = ValueType::tensor(constant.dtype(), to_shape(constant.dims()));
  input.constant = &kept.back();
  return input;
}

struct Inferred {
  std::vector<ValueType> types;
  std::vector<std::optional<DimTensor>> values;
};

// Fresh symbols are called "?0", "?1" and so on. `body` answers for bodies.
inline Result<Inferred> try_infer(
    std::string_view name, const std::vector<ops::InferInput>& inputs,
    const AttributeList& list = {}, std::size_t outputs = 1,
    std::function<Result<std::vector<ValueType>>(std::size_t, std::span<const ValueType>)> body =
        {}) {
  const ops::Attributes attrs = attributes(list);
  ops::InferContext context{.op = schema(name),
                            .attributes = attrs,
                            .inputs = inputs,
                            .outputs = {},
                            .output_values = {},
                            .fresh_symbol = {},
                            .infer_body = std::move(body)};
  context.outputs.resize(outputs);
  context.output_values.resize(outputs);
  int symbols = 0;
  context.fresh_symbol = [&symbols](std::string_view) {
    return Dim::symbol("_" + std::to_string(symbols++));
  };
  TESSERA_TRY(context.op.infer(context));
  return Inferred{context.outputs, context.output_values};
}

// "fp32[n, 3]"; several outputs separated by "; "; known elements behind "=": "int64[2] = [n, 3]".
// Or the error.
inline std::string infer_text(
    std::string_view name, const std::vector<ops::InferInput>& inputs,
    const AttributeList& list = {}, std::size_t outputs = 1,
    std::function<Result<std::vector<ValueType>>(std::size_t, std::span<const ValueType>)> body =
        {}) {
  const auto inferred = try_infer(name, inputs, list, outputs, std::move(body));
  if (!inferred) return inferred.error().to_string();
  std::string text;
  for (std::size_t i = 0; i < outputs; ++i) {
    if (i > 0) text += "; ";
    text += inferred->types[i].to_string();
    if (inferred->values[i]) text += " = " + to_string(Shape(inferred->values[i]->elements));
  }
  return text;
}

// ---- Upgrades
// -------------------------------------------------------------------------------------------------

// Keeps what an upgrade builds: operands are numbered from 100 on.
class RecordingBuilder final : public ops::UpgradeBuilder {
 public:
  struct Built {
    std::string op_type;
    ops::Attributes attributes;
    std::vector<ops::Operand> inputs;
    ops::Operand first_output = 0;
  };

  ops::Operand constant(Tensor value) override {
    types[next_] = ValueType::tensor(value.dtype(), to_shape(value.dims()));
    constants[next_] = std::move(value);
    return next_++;
  }
  std::vector<ops::Operand> node(std::string op_type, ops::Attributes attrs,
                                 std::vector<ops::Operand> inputs,
                                 std::size_t output_count) override {
    nodes.push_back({std::move(op_type), std::move(attrs), std::move(inputs), next_});
    std::vector<ops::Operand> outputs;
    for (std::size_t i = 0; i < output_count; ++i) outputs.push_back(next_++);
    return outputs;
  }
  [[nodiscard]] const ValueType* type(ops::Operand operand) const override {
    const auto found = types.find(operand);
    return found != types.end() ? &found->second : nullptr;
  }

  std::map<ops::Operand, ValueType> types;
  std::map<ops::Operand, Tensor> constants;
  std::vector<Built> nodes;

 private:
  ops::Operand next_ = 100;
};

// Applies the upgrade that covers `version`, if there is one.
inline Status upgrade(ops::UpgradeNode& node, int version, ops::UpgradeBuilder& builder) {
  for (const ops::Upgrade& step : schema(node.op_type).upgrades) {
    if (version >= step.from_version && version <= step.to_version)
      return step.apply(node, version, builder);
  }
  return {};
}

}  // namespace tessera::testing
