#include "import/node_emitter.h"

#include <utility>

#include "base/error.h"
#include "ir/infer.h"

namespace tessera::importer {

Result<std::vector<ir::ValueId>> NodeEmitter::emit(GraphContext& context, NewNode node) {
  ir::Node added;
  added.op = node.op;
  added.name = context.unique_node_name(node.name);
  added.attributes = std::move(node.attributes);
  added.inputs = std::move(node.inputs);
  added.bodies = std::move(node.bodies);
  added.captures = std::move(node.captures);
  added.origins = {node.origin};
  for (const std::string& name : node.outputs) {
    added.outputs.push_back(name.empty() ? ir::kNoValue
                                         : context.graph->add_value(name, ValueType()));
  }
  std::vector<ir::ValueId> outputs = added.outputs;
  TESSERA_TRY(ir::infer_node(module_, *context.graph, context.graph->add_node(std::move(added))));
  return outputs;
}

ir::OriginId NodeEmitter::add_source_node(std::string name, std::string op_type) {
  module_.source_nodes.push_back({std::move(name), std::move(op_type)});
  return static_cast<ir::OriginId>(module_.source_nodes.size() - 1);
}

void NodeEmitter::remember_symbols() {
  if (remembered_.size() == module_.symbols.size()) return;
  for (const auto& [name, range] : module_.symbols) remembered_.insert(name);
}

std::set<std::string, std::less<>> NodeEmitter::fresh_symbols() const {
  std::set<std::string, std::less<>> fresh;
  if (remembered_.size() == module_.symbols.size()) return fresh;
  for (const auto& [name, range] : module_.symbols) {
    if (!remembered_.contains(name)) fresh.insert(name);
  }
  return fresh;
}

}  // namespace tessera::importer
