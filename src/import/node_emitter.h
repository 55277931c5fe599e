#pragma once

// Adds nodes to a graph under construction, each with its types inferred at once: upgrades of later
// nodes need them.

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "import/budget.h"
#include "import/scope.h"
#include "ir/ir.h"

namespace tessera::importer {

struct NewNode {
  const ops::OpSchema* op = nullptr;
  std::string name;  // made unique in its graph
  ops::Attributes attributes;
  std::vector<ir::ValueId> inputs;
  std::vector<std::string> outputs;  // names; "" where nobody reads it
  std::vector<std::unique_ptr<ir::Graph>> bodies;
  std::vector<std::vector<ir::ValueId>> captures;
  ir::OriginId origin = 0;
};

class NodeEmitter {
 public:
  // Both outlive the emitter; what nodes take comes out of the budget.
  NodeEmitter(ir::Module& module, ImportBudget& budget) : module_(module), budget_(budget) {}

  // Gives the outputs. Errors: of signature and inference, which name the node; the budget.
  Result<std::vector<ir::ValueId>> emit(GraphContext& context, NewNode node);

  ir::OriginId add_source_node(std::string name, std::string op_type);

  // Symbols that inference has made up since the last call of remember_symbols().
  void remember_symbols() { remembered_ = module_.made_symbols.names.size(); }
  [[nodiscard]] std::set<std::string, std::less<>> fresh_symbols() const;

 private:
  ir::Module& module_;
  ImportBudget& budget_;
  std::size_t remembered_ = 0;
};

}  // namespace tessera::importer
