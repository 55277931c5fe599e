#include "ops/contrib/expansion.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/float_convert.h"
#include "ops/infer_util.h"
#include "ops/op_table.h"
#include "ops/upgrade_util.h"

namespace tessera::ops::contrib {
namespace {

constexpr std::string_view kDomain = "com.microsoft";

// No node of the IR has such an operator, other than in a text that somebody wrote.
Status infer_expanded(InferContext& context) {
  return fail(ErrorCode::kUnimplemented,
              fmt::format("'{}' stands in models only: import makes other operators of it",
                          context.op.qualified_name()));
}

const FormalParam* formal_input(const OpSchema& op, std::size_t index) {
  if (index < op.inputs.size()) return &op.inputs[index];
  const bool variadic =
      !op.inputs.empty() && op.inputs.back().arity == FormalParam::Arity::kVariadic;
  return variadic ? &op.inputs.back() : nullptr;
}

}  // namespace

OpSchema expanded_op(std::string_view name, std::vector<FormalParam> inputs,
                     std::vector<FormalParam> outputs, std::vector<FormalAttr> attributes,
                     std::vector<TypeVariable> variables, Apply apply) {
  OpSchema op;
  op.domain = kDomain;
  op.name = name;
  op.versions = {1};
  op.inputs = std::move(inputs);
  op.outputs = std::move(outputs);
  op.attributes = std::move(attributes);
  op.type_variables = std::move(variables);
  op.infer = infer_expanded;
  op.upgrades = {{1, 1, apply}};
  return op;
}

Attributes attributes_of(std::initializer_list<std::pair<std::string, AttributeValue>> entries) {
  Attributes attributes;
  for (const auto& [name, value] : entries) attributes.set(name, value);
  return attributes;
}

tl::unexpected<Error> refuse_attribute(std::string_view name, std::string message) {
  return fail(ErrorCode::kUnimplemented, fmt::format("attribute '{}': {}", name, message));
}

tl::unexpected<Error> refuse_input(std::string_view name, std::string message) {
  return fail(ErrorCode::kUnimplemented, fmt::format("input '{}': {}", name, message));
}

// ---- The node -----------------------------------------------------------------------------------

Result<Expansion> Expansion::of(const OpSchema& op, UpgradeNode& node, UpgradeBuilder& builder) {
  Expansion expansion(op, node, builder);
  TESSERA_TRY(expansion.check_attributes());
  TESSERA_TRY(expansion.check_inputs());
  return expansion;
}

Status Expansion::check_attributes() const {
  for (const auto& [name, value] : node_->attributes.entries()) {
    const bool is_known = std::ranges::any_of(
        op_->attributes, [&name = name](const FormalAttr& formal) { return formal.name == name; });
    if (!is_known)
      return fail(ErrorCode::kInvalidArgument, fmt::format("attribute '{}' is unknown", name));
  }
  for (const FormalAttr& formal : op_->attributes) {
    if (formal.required && !node_->attributes.has(formal.name))
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("attribute '{}': is required, but absent", formal.name));
  }
  return {};
}

Status Expansion::check_inputs() const {
  for (std::size_t i = 0; i < op_->inputs.size(); ++i) {
    if (op_->inputs[i].arity == FormalParam::Arity::kRequired && !has(i))
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("input '{}': is required, but omitted", op_->inputs[i].name));
  }
  std::vector<DType> bound(op_->type_variables.size(), DType::kUndefined);
  for (std::size_t i = 0; i < node_->inputs.size(); ++i) {
    const FormalParam* formal = formal_input(*op_, i);
    if (formal == nullptr)
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("expected at most {} inputs, found {}", op_->inputs.size(),
                              node_->inputs.size()));
    const ValueType* type = has(i) ? builder_->type(in(i)) : nullptr;
    if (type == nullptr) continue;
    if (!type->is_tensor())
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("input '{}': expected a tensor, found {}", input_name(*op_, i),
                              type->to_string()));
    for (std::size_t v = 0; v < bound.size(); ++v) {
      const TypeVariable& variable = op_->type_variables[v];
      if (variable.name != formal->type) continue;
      if ((variable.allowed & dtype_bit(type->dtype)) == 0)
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("input '{}': dtype {} is not allowed", input_name(*op_, i),
                                to_string(type->dtype)));
      // The inputs of a variadic one are of different kinds (QLinearConcat).
      if (formal->arity == FormalParam::Arity::kVariadic) continue;
      if (bound[v] != DType::kUndefined && bound[v] != type->dtype)
        return fail(ErrorCode::kInvalidArgument,
                    fmt::format("input '{}': expected {}, found {}", input_name(*op_, i),
                                to_string(bound[v]), to_string(type->dtype)));
      bound[v] = type->dtype;
    }
  }
  return {};
}

std::int64_t Expansion::int_of(std::string_view name, std::int64_t fallback) const {
  return node_->attributes.get_int(name, fallback);
}

float Expansion::float_of(std::string_view name, float fallback) const {
  return node_->attributes.get_float(name, fallback);
}

Attributes Expansion::keep(std::initializer_list<std::string_view> names) const {
  Attributes kept;
  for (const std::string_view name : names) {
    if (const AttributeValue* value = node_->attributes.find(name))
      kept.set(std::string(name), *value);
  }
  return kept;
}

bool Expansion::has(std::size_t input) const {
  return has_input(*node_, input);
}

Operand Expansion::in(std::size_t input) const {
  return has(input) ? node_->inputs[input] : kNoOperand;
}

bool Expansion::wants(std::size_t output) const {
  return output < node_->output_used.size() && node_->output_used[output];
}

// ---- What is known ------------------------------------------------------------------------------

const Shape* Expansion::shape(Operand operand) const {
  const ValueType* type = operand == kNoOperand ? nullptr : builder_->type(operand);
  return type != nullptr && type->is_tensor() && type->shape ? &*type->shape : nullptr;
}

Result<DType> Expansion::dtype(std::size_t index) const {
  const ValueType* type = has(index) ? builder_->type(in(index)) : nullptr;
  if (type != nullptr) return type->dtype;
  return refuse_input(input_name(*op_, index), "expected a known dtype, found none");
}

Result<std::int64_t> Expansion::rank(std::size_t index) const {
  if (const Shape* found = shape(in(index))) return static_cast<std::int64_t>(found->size());
  return refuse_input(input_name(*op_, index), "expected a known rank, found none");
}

Result<std::int64_t> Expansion::size(std::size_t index, std::int64_t axis) const {
  TESSERA_ASSIGN(const std::int64_t found, rank(index));
  TESSERA_ASSIGN(const std::int64_t at,
                 normalize_axis(axis, found, fmt::format("input '{}'", input_name(*op_, index))));
  const Dim& dim = (*shape(in(index)))[static_cast<std::size_t>(at)];
  if (const auto number = dim.constant()) return *number;
  return refuse_input(
      input_name(*op_, index),
      fmt::format("expected a known size of axis {}, found {}", at, dim.to_string()));
}

Status Expansion::require_one_element(std::size_t index) const {
  if (!has(index)) return {};
  const Shape* found = shape(in(index));
  if (found == nullptr || found->empty() ||
      (found->size() == 1 && (*found)[0].constant().value_or(1) == 1))
    return {};
  return fail(ErrorCode::kInvalidArgument, fmt::format("input '{}': expected one element, found {}",
                                                       input_name(*op_, index), to_string(*found)));
}

// ---- Building -----------------------------------------------------------------------------------

Operand Expansion::add(std::string op_type, std::vector<Operand> inputs, Attributes attributes) {
  return add_many(std::move(op_type), 1, std::move(inputs), std::move(attributes))[0];
}

std::vector<Operand> Expansion::add_many(std::string op_type, std::size_t outputs,
                                         std::vector<Operand> inputs, Attributes attributes) {
  while (!inputs.empty() && inputs.back() == kNoOperand) inputs.pop_back();
  return builder_->node(std::move(op_type), std::move(attributes), std::move(inputs), outputs);
}

Operand Expansion::ints(const std::vector<std::int64_t>& values) {
  return constant_ints(*builder_, values);
}

Operand Expansion::scalar(std::int64_t value) {
  return constant_int(*builder_, value);
}

Operand Expansion::number(DType dtype, double value) {
  return constant_float(*builder_, dtype, value);
}

Operand Expansion::sizes(Operand operand, std::int64_t begin, std::int64_t end) {
  return add("Shape", {operand}, attributes_of({{"start", begin}, {"end", end}}));
}

Operand Expansion::cast(Operand operand, DType to) {
  return add("Cast", {operand}, attributes_of({{"to", static_cast<std::int64_t>(to)}}));
}

Operand Expansion::reshape(Operand operand, const std::vector<std::int64_t>& target) {
  return add("Reshape", {operand, ints(target)});
}

Operand Expansion::transpose(Operand operand, std::vector<std::int64_t> perm) {
  return add("Transpose", {operand}, attributes_of({{"perm", std::move(perm)}}));
}

Operand Expansion::unsqueeze(Operand operand, const std::vector<std::int64_t>& axes) {
  return add("Unsqueeze", {operand, ints(axes)});
}

Operand Expansion::slice(Operand operand, std::int64_t axis, Operand begin, Operand end) {
  return add("Slice", {operand, begin, end, ints({axis})});
}

Operand Expansion::concat(std::vector<Operand> operands, std::int64_t axis) {
  return add("Concat", std::move(operands), attributes_of({{"axis", axis}}));
}

std::vector<Operand> Expansion::split(Operand operand, std::int64_t axis,
                                      const std::vector<std::int64_t>& sizes) {
  return add_many("Split", sizes.size(), {operand, ints(sizes)}, attributes_of({{"axis", axis}}));
}

Operand Expansion::to_channels_first(Operand operand, std::int64_t rank) {
  std::vector<std::int64_t> perm = {0, rank - 1};
  for (std::int64_t axis = 1; axis + 1 < rank; ++axis) perm.push_back(axis);
  return transpose(operand, std::move(perm));
}

Operand Expansion::to_channels_last(Operand operand, std::int64_t rank) {
  std::vector<std::int64_t> perm = {0};
  for (std::int64_t axis = 2; axis < rank; ++axis) perm.push_back(axis);
  perm.push_back(1);
  return transpose(operand, std::move(perm));
}

Status Expansion::replace(std::vector<Operand> values) {
  node_->replacement = std::move(values);
  return {};
}

Status detail::run_expansion(UpgradeNode& node, UpgradeBuilder& builder,
                             Status (*body)(Expansion&)) {
  const OpSchema* op = find_op(kDomain, node.op_type);
  if (op == nullptr) op = find_op("", node.op_type);
  TESSERA_CHECK(op != nullptr);
  TESSERA_ASSIGN(Expansion expansion, Expansion::of(*op, node, builder));
  return body(expansion);
}

}  // namespace tessera::ops::contrib
