#pragma once

// Takes nodes of older operator versions to the newest meaning, through the upgrades of the op
// table.

#include <string>
#include <vector>

#include "base/error.h"
#include "import/node_emitter.h"
#include "ops/op.h"

namespace tessera::importer {

// What an upgrade adds around one node: constants and nodes that bear the node's name and origin.
// An operand is the id of a value in the graph.
class NodeUpgrade final : public ops::UpgradeBuilder {
 public:
  NodeUpgrade(NodeEmitter& emitter, GraphContext& context, std::string node_name,
              ir::OriginId origin);

  // Applies the upgrade that covers `since_version`, if there is one. Errors: of the upgrade, of a
  // node that it built.
  Status apply(const ops::OpSchema& op, int since_version, int opset, ops::UpgradeNode& node);

  // The failure of the first node() or constant() that failed.
  [[nodiscard]] const Status& status() const { return status_; }

  // Whether the value came from a node of this upgrade, so that it may take the name that the model
  // gave the result.
  [[nodiscard]] bool made(ir::ValueId id) const;

  ops::Operand constant(Tensor value) override;
  std::vector<ops::Operand> node(std::string op_type, ops::Attributes attributes,
                                 std::vector<ops::Operand> inputs,
                                 std::size_t output_count) override;
  [[nodiscard]] const ValueType* type(ops::Operand operand) const override;
  [[nodiscard]] const Tensor* known(ops::Operand operand) const override;

 private:
  NodeEmitter& emitter_;
  GraphContext& context_;
  std::string node_name_;
  ir::OriginId origin_;
  std::size_t first_new_value_;
  Status status_;  // of the first node or constant that failed; later ones do nothing
};

std::vector<ops::Operand> to_operands(const std::vector<ir::ValueId>& ids);
std::vector<ir::ValueId> to_values(const std::vector<ops::Operand>& operands);

}  // namespace tessera::importer
