#include "ops/upgrade_util.h"

#include <fmt/format.h>

#include "base/float_convert.h"

namespace tessera::ops {
namespace {

template <typename T>
Result<T> old_attribute(const UpgradeNode& node, std::string_view name, T fallback,
                        std::string_view type) {
  const AttributeValue* value = node.attributes.find(name);
  if (value == nullptr) return fallback;
  if (const T* held = std::get_if<T>(value)) return *held;
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("attribute '{}': expected {}, found {}", name, type, to_string(*value)));
}

}  // namespace

Operand constant_ints(UpgradeBuilder& builder, const std::vector<std::int64_t>& values) {
  return builder.constant(
      Tensor::of<std::int64_t>(DType::kInt64, {static_cast<std::int64_t>(values.size())}, values));
}

Operand constant_int(UpgradeBuilder& builder, std::int64_t value) {
  return builder.constant(Tensor::of<std::int64_t>(DType::kInt64, {}, {&value, 1}));
}

Operand constant_float(UpgradeBuilder& builder, DType dtype, double value) {
  const TensorView view{DType::kFp64, {}, &value};
  Result<Tensor> tensor = Tensor::zeros(dtype, {});
  TESSERA_CHECK(tensor.has_value());
  cast_elements(view, tensor->mutable_view(), false);
  return builder.constant(*std::move(tensor));
}

void set_input(UpgradeNode& node, std::size_t index, Operand operand) {
  if (node.inputs.size() <= index) node.inputs.resize(index + 1, kNoOperand);
  node.inputs[index] = operand;
}

bool has_input(const UpgradeNode& node, std::size_t index) {
  return index < node.inputs.size() && node.inputs[index] != kNoOperand;
}

Status ints_to_input(UpgradeNode& node, UpgradeBuilder& builder, std::string_view name,
                     std::size_t index) {
  const AttributeValue* value = node.attributes.find(name);
  if (value == nullptr) return {};
  std::vector<std::int64_t> ints;
  if (const auto* one = std::get_if<std::int64_t>(value)) {
    ints.push_back(*one);
  } else if (const auto* list = std::get_if<std::vector<std::int64_t>>(value)) {
    ints = *list;
  } else {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("attribute '{}': expected ints, found {}", name, to_string(*value)));
  }
  set_input(node, index, constant_ints(builder, ints));
  node.attributes.erase(name);
  return {};
}

void erase_attributes(UpgradeNode& node, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) node.attributes.erase(name);
}

Result<std::int64_t> old_int(const UpgradeNode& node, std::string_view name,
                             std::int64_t fallback) {
  return old_attribute(node, name, fallback, "an int");
}

Result<float> old_float(const UpgradeNode& node, std::string_view name, float fallback) {
  return old_attribute(node, name, fallback, "a float");
}

Result<std::vector<std::int64_t>> old_ints(const UpgradeNode& node, std::string_view name,
                                           std::vector<std::int64_t> fallback) {
  return old_attribute(node, name, std::move(fallback), "ints");
}

std::optional<std::int64_t> known_rank(const UpgradeBuilder& builder, Operand operand) {
  const ValueType* type = operand == kNoOperand ? nullptr : builder.type(operand);
  if (type == nullptr || !type->is_tensor() || !type->shape) return std::nullopt;
  return static_cast<std::int64_t>(type->shape->size());
}

Result<DType> known_dtype(const UpgradeBuilder& builder, Operand operand, std::string_view what) {
  const ValueType* type = operand == kNoOperand ? nullptr : builder.type(operand);
  if (type == nullptr || !type->is_tensor() || type->dtype == DType::kUndefined) {
    return fail(
        ErrorCode::kUnimplemented,
        fmt::format("input '{}': its dtype is not known, and the upgrade to opset 24 needs it",
                    what));
  }
  return type->dtype;
}

Status upgrade_consumed_inputs(UpgradeNode& node, int /*opset*/, UpgradeBuilder& /*builder*/) {
  erase_attributes(node, {"consumed_inputs"});
  return {};
}

}  // namespace tessera::ops
