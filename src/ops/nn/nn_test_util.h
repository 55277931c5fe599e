#pragma once

// For the tests of this folder: tensors from literals, operators run by name, inference of one
// output, upgrades carried out on values.

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "ops/op_table.h"

namespace tessera::ops::nn::testing {

inline Tensor floats(Dims dims, const std::vector<float>& values) {
  return Tensor::of<float>(DType::kFp32, std::move(dims), values);
}
inline Tensor ints(Dims dims, const std::vector<std::int64_t>& values) {
  return Tensor::of<std::int64_t>(DType::kInt64, std::move(dims), values);
}

inline Tensor random_floats(Dims dims, std::mt19937& random) {
  std::vector<float> values(static_cast<std::size_t>(numel(dims)));
  for (float& value : values)
    value = static_cast<float>(static_cast<std::int32_t>(random() % 2001) - 1000) / 500.0F;
  return floats(std::move(dims), values);
}

inline std::int64_t pick(std::mt19937& random, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(high - low + 1));
}

inline std::vector<float> to_vector(const Tensor& tensor) {
  return {tensor.span<float>().begin(), tensor.span<float>().end()};
}

inline Attributes attributes(
    std::initializer_list<std::pair<std::string, AttributeValue>> entries) {
  Attributes result;
  for (const auto& [name, value] : entries) result.set(name, value);
  return result;
}

inline Result<std::vector<Tensor>> run_op(std::string_view name, const Attributes& attrs,
                                          const std::vector<Tensor>& inputs,
                                          std::size_t outputs = 1) {
  const OpSchema* op = find_op("", name);
  TESSERA_CHECK(op != nullptr);
  return run_reference(*op, attrs, inputs, outputs);
}

// The text of the error, or "" where there is none.
template <typename T>
std::string error_text(const Result<T>& result) {
  return result ? std::string() : result.error().to_string();
}

// Inference of all outputs, from types as text ("fp32[n, 3, h]") and constants for some inputs.
inline Result<std::vector<ValueType>> infer_types(
    std::string_view name, const Attributes& attrs, const std::vector<std::string>& types,
    const std::map<std::size_t, Tensor>& constants = {}, std::size_t outputs = 1) {
  const OpSchema* op = find_op("", name);
  TESSERA_CHECK(op != nullptr);
  int symbols = 0;
  InferContext context{*op,
                       attrs,
                       {},
                       {},
                       {},
                       [&](std::string_view hint) {
                         return Dim::symbol(std::string(hint) + std::to_string(symbols++));
                       },
                       {}};
  for (std::size_t i = 0; i < types.size(); ++i) {
    InferInput& input = context.inputs.emplace_back();
    if (types[i].empty()) continue;
    input.present = true;
    TESSERA_ASSIGN(input.type, parse_value_type(types[i]));
    if (const auto found = constants.find(i); found != constants.end())
      input.constant = &found->second;
  }
  context.outputs.resize(outputs);
  context.output_values.resize(outputs);
  TESSERA_TRY(op->infer(context));
  return context.outputs;
}

// The first output's type as text, or the error's.
inline std::string infer_text(std::string_view name, const Attributes& attrs,
                              const std::vector<std::string>& types,
                              const std::map<std::size_t, Tensor>& constants = {}) {
  const auto result = infer_types(name, attrs, types, constants);
  return result ? result->front().to_string() : result.error().to_string();
}

// Carries out at once what an upgrade builds: operands are indices of tensors.
class EvaluatingBuilder final : public UpgradeBuilder {
 public:
  explicit EvaluatingBuilder(const std::vector<Tensor>& inputs) {
    for (const Tensor& tensor : inputs) add(tensor);
  }
  Operand constant(Tensor value) override { return add(std::move(value)); }
  std::vector<Operand> node(std::string op_type, Attributes attrs, std::vector<Operand> inputs,
                            std::size_t output_count) override {
    ops.push_back(op_type);
    auto outputs = run_op(op_type, attrs, tensors(inputs), output_count);
    std::vector<Operand> operands(output_count, kNoOperand);
    if (!outputs) {
      error = outputs.error().to_string();
      return operands;
    }
    for (std::size_t i = 0; i < output_count; ++i) operands[i] = add((*outputs)[i]);
    return operands;
  }
  [[nodiscard]] const ValueType* type(Operand operand) const override {
    return operand == kNoOperand ? nullptr : &types_.at(operand);
  }
  [[nodiscard]] const Tensor* known(Operand operand) const override {
    return operand == kNoOperand ? nullptr : &values_.at(operand);
  }

  [[nodiscard]] std::vector<Tensor> tensors(const std::vector<Operand>& operands) const {
    std::vector<Tensor> result;
    for (const Operand operand : operands)
      result.push_back(operand == kNoOperand ? Tensor() : values_.at(operand));
    return result;
  }

  std::vector<std::string> ops;  // of the nodes built
  std::string error;             // of a node that could not run

 private:
  Operand add(Tensor tensor) {
    const auto operand = static_cast<Operand>(values_.size());
    types_.emplace(operand, ValueType::tensor(tensor.dtype(), to_shape(tensor.dims())));
    values_.emplace(operand, std::move(tensor));
    return operand;
  }
  std::map<Operand, Tensor> values_;
  std::map<Operand, ValueType> types_;
};

struct Upgraded {
  std::vector<Tensor> outputs;
  std::vector<std::string> ops;  // nodes that the upgrade built around or instead of the node
  UpgradeNode node;
};

// A node of an old version on values: upgraded, then run. `version` is its since-version, and
// stands for the model's opset.
inline Result<Upgraded> run_old(std::string_view name, int version, const Attributes& attrs,
                                const std::vector<Tensor>& inputs,
                                std::vector<bool> output_used = {true}) {
  const OpSchema* op = find_op("", name);
  TESSERA_CHECK(op != nullptr);
  EvaluatingBuilder builder(inputs);
  Upgraded result;
  result.node = {std::string(name), attrs, {}, output_used.size(), output_used, std::nullopt};
  for (std::size_t i = 0; i < inputs.size(); ++i)
    result.node.inputs.push_back(static_cast<Operand>(i));
  for (const Upgrade& upgrade : op->upgrades) {
    if (upgrade.from_version <= version && version <= upgrade.to_version)
      TESSERA_TRY(upgrade.apply(result.node, version, builder));
  }
  result.ops = builder.ops;
  if (!builder.error.empty()) return fail(ErrorCode::kInternal, builder.error);
  if (result.node.replacement) {
    result.outputs = builder.tensors(*result.node.replacement);
    return result;
  }
  TESSERA_ASSIGN(result.outputs, run_op(result.node.op_type, result.node.attributes,
                                        builder.tensors(result.node.inputs), output_used.size()));
  return result;
}

}  // namespace tessera::ops::nn::testing
