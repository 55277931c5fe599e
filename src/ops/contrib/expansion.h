#pragma once

// Operators of com.microsoft that are made of others: what their upgrades share. Such an operator
// has no kernel: import builds standard operators in its place.

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ops/op.h"

namespace tessera::ops::contrib {

using Apply = Status (*)(UpgradeNode& node, int opset, UpgradeBuilder& builder);

// A schema of com.microsoft, version 1, that every node of it leaves through `apply`.
OpSchema expanded_op(std::string_view name, std::vector<FormalParam> inputs,
                     std::vector<FormalParam> outputs, std::vector<FormalAttr> attributes,
                     std::vector<TypeVariable> variables, Apply apply);

Attributes attributes_of(std::initializer_list<std::pair<std::string, AttributeValue>> entries);

// An error: "attribute 'x': expected ..., found ..." and the like, as attribute_error() and
// input_error() give it; kUnimplemented.
tl::unexpected<Error> refuse_attribute(std::string_view name, std::string message);
tl::unexpected<Error> refuse_input(std::string_view name, std::string message);

// One node on its way into standard operators.
class Expansion {
 public:
  // Checks the node against its schema: attributes and inputs that it knows, required ones there,
  // dtypes (where they are known) allowed and equal where the signature says so.
  static Result<Expansion> of(const OpSchema& op, UpgradeNode& node, UpgradeBuilder& builder);

  // ---- The node
  [[nodiscard]] const Attributes& attributes() const { return node_->attributes; }
  [[nodiscard]] std::int64_t int_of(std::string_view name, std::int64_t fallback) const;
  [[nodiscard]] float float_of(std::string_view name, float fallback) const;
  // Those attributes of the node that stand in `names`.
  [[nodiscard]] Attributes keep(std::initializer_list<std::string_view> names) const;
  [[nodiscard]] bool has(std::size_t input) const;
  [[nodiscard]] Operand in(std::size_t input) const;  // kNoOperand where it is omitted
  [[nodiscard]] std::size_t input_count() const { return node_->inputs.size(); }
  // Whether the model names output `index`.
  [[nodiscard]] bool wants(std::size_t output) const;

  // ---- What is known of operands. Pointers hold until the next node or constant.
  [[nodiscard]] const Shape* shape(Operand operand) const;  // null where the rank is not known
  [[nodiscard]] const Tensor* known(Operand operand) const { return builder_->known(operand); }
  // Errors name input `index` and say that it is not known.
  [[nodiscard]] Result<DType> dtype(std::size_t index) const;
  [[nodiscard]] Result<std::int64_t> rank(std::size_t index) const;
  [[nodiscard]] Result<std::int64_t> size(std::size_t index, std::int64_t axis) const;
  // An error where input `index` is known not to hold one element, in rank 0 or 1.
  [[nodiscard]] Status require_one_element(std::size_t index) const;

  // ---- Building
  Operand add(std::string op_type, std::vector<Operand> inputs, Attributes attributes = {});
  std::vector<Operand> add_many(std::string op_type, std::size_t outputs,
                                std::vector<Operand> inputs, Attributes attributes = {});
  Operand constant(Tensor value) { return builder_->constant(std::move(value)); }
  Operand ints(const std::vector<std::int64_t>& values);  // int64 of rank 1
  Operand scalar(std::int64_t value);                     // int64 of rank 0
  Operand number(DType dtype, double value);              // a float or an integer of rank 0
  // Sizes [begin, end) of an operand: int64 of rank 1.
  Operand sizes(Operand operand, std::int64_t begin, std::int64_t end);
  Operand cast(Operand operand, DType to);
  Operand reshape(Operand operand, const std::vector<std::int64_t>& target);  // 0 keeps a size
  Operand transpose(Operand operand, std::vector<std::int64_t> perm);
  Operand unsqueeze(Operand operand, const std::vector<std::int64_t>& axes);
  Operand slice(Operand operand, std::int64_t axis, Operand begin, Operand end);
  Operand concat(std::vector<Operand> operands, std::int64_t axis);
  // Pieces of those sizes along an axis.
  std::vector<Operand> split(Operand operand, std::int64_t axis,
                             const std::vector<std::int64_t>& sizes);
  // From [n, ..., c] to [n, c, ...] and back.
  Operand to_channels_first(Operand operand, std::int64_t rank);
  Operand to_channels_last(Operand operand, std::int64_t rank);

  // One value for each output; the node itself goes.
  Status replace(std::vector<Operand> values);

 private:
  Expansion(const OpSchema& op, UpgradeNode& node, UpgradeBuilder& builder)
      : op_(&op), node_(&node), builder_(&builder) {}
  [[nodiscard]] Status check_attributes() const;
  [[nodiscard]] Status check_inputs() const;

  const OpSchema* op_;
  UpgradeNode* node_;
  UpgradeBuilder* builder_;
};

// `body` as the upgrade of an operator of com.microsoft: a function over an Expansion.
template <Status (*body)(Expansion&)>
Status expand(UpgradeNode& node, int /*opset*/, UpgradeBuilder& builder);

namespace detail {
Status run_expansion(UpgradeNode& node, UpgradeBuilder& builder, Status (*body)(Expansion&));
}

template <Status (*body)(Expansion&)>
Status expand(UpgradeNode& node, int /*opset*/, UpgradeBuilder& builder) {
  return detail::run_expansion(node, builder, body);
}

}  // namespace tessera::ops::contrib
