#include "import/upgrade.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "ops/op_table.h"

namespace tessera::importer {

static_assert(static_cast<ops::Operand>(ir::kNoValue) == ops::kNoOperand);

std::vector<ops::Operand> to_operands(const std::vector<ir::ValueId>& ids) {
  return {ids.begin(), ids.end()};
}

std::vector<ir::ValueId> to_values(const std::vector<ops::Operand>& operands) {
  return {operands.begin(), operands.end()};
}

NodeUpgrade::NodeUpgrade(NodeEmitter& emitter, GraphContext& context, std::string node_name,
                         ir::OriginId origin)
    : emitter_(emitter),
      context_(context),
      node_name_(std::move(node_name)),
      origin_(origin),
      first_new_value_(context.graph->value_count()) {}

Status NodeUpgrade::apply(const ops::OpSchema& op, int since_version, int opset,
                          ops::UpgradeNode& node) {
  const auto upgrade =
      std::find_if(op.upgrades.begin(), op.upgrades.end(), [&](const ops::Upgrade& candidate) {
        return candidate.from_version <= since_version && since_version <= candidate.to_version;
      });
  if (upgrade == op.upgrades.end()) return {};
  Status applied = upgrade->apply(node, opset, *this);
  return status_ ? std::move(applied) : std::move(status_);
}

bool NodeUpgrade::made(ir::ValueId id) const {
  return id != ir::kNoValue && id >= first_new_value_ &&
         context_.graph->value(id).kind == ir::ValueKind::kNodeOutput;
}

ops::Operand NodeUpgrade::constant(Tensor value) {
  if (!status_) return ops::kNoOperand;
  const auto added =
      context_.add_constant(context_.unique_value_name(node_name_ + "/constant"), std::move(value));
  if (added) return static_cast<ops::Operand>(*added);
  status_ = tl::unexpected(added.error());
  return ops::kNoOperand;
}

std::vector<ops::Operand> NodeUpgrade::node(std::string op_type, ops::Attributes attributes,
                                            std::vector<ops::Operand> inputs,
                                            std::size_t output_count) {
  std::vector<ops::Operand> nothing(output_count, ops::kNoOperand);
  if (!status_) return nothing;
  NewNode added;
  added.op = ops::find_op("", op_type);
  TESSERA_CHECK(added.op != nullptr);
  added.name = node_name_ + "/" + op_type;
  added.attributes = std::move(attributes);
  added.inputs = to_values(inputs);
  added.origin = origin_;
  for (std::size_t i = 0; i < output_count; ++i)
    added.outputs.push_back(context_.unique_value_name(added.name + "_out"));
  auto outputs = emitter_.emit(context_, std::move(added));
  if (outputs) return to_operands(*outputs);
  status_ = tl::unexpected(std::move(outputs).error());
  return nothing;
}

const ValueType* NodeUpgrade::type(ops::Operand operand) const {
  if (operand == ops::kNoOperand) return nullptr;
  const ValueType& type = context_.graph->value(static_cast<ir::ValueId>(operand)).type;
  const bool is_untyped = type.is_tensor() && type.dtype == DType::kUndefined;
  return is_untyped ? nullptr : &type;
}

const Tensor* NodeUpgrade::known(ops::Operand operand) const {
  if (operand == ops::kNoOperand) return nullptr;
  const ir::Value& value = context_.graph->value(static_cast<ir::ValueId>(operand));
  return value.kind == ir::ValueKind::kConstant ? &value.constant : nullptr;
}

}  // namespace tessera::importer
