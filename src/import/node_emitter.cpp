#include "import/node_emitter.h"

#include <algorithm>
#include <utility>

#include "base/dim_size.h"
#include "base/error.h"
#include "ir/infer.h"

namespace tessera::importer {
namespace {

// Upper estimates, as those of the budget.
constexpr std::uint64_t kNodeBytes = 550;
constexpr std::uint64_t kInputBytes = 16;
constexpr std::uint64_t kTermBytes = 96;                                  // of an expression
constexpr std::uint64_t kInferInputBytes = sizeof(ops::InferInput) + 64;  // while the node is typed

std::uint64_t size_of(const ops::AttributeValue& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return text->size();
  if (const auto* ints = std::get_if<std::vector<std::int64_t>>(&value))
    return ints->size() * sizeof(std::int64_t);
  if (const auto* floats = std::get_if<std::vector<float>>(&value))
    return floats->size() * sizeof(float);
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
    std::uint64_t size_bytes = 0;
    for (const std::string& text : *texts) size_bytes += sizeof(std::string) + text.size();
    return size_bytes;
  }
  return 0;  // tensors share their elements
}

std::uint64_t size_of(const NewNode& node) {
  std::uint64_t size_bytes =
      kNodeBytes + kNameCopies * node.name.size() + kInputBytes * node.inputs.size();
  for (const std::string& name : node.outputs)
    size_bytes += kValueBytes + kNameCopies * name.size();
  for (const auto& [name, value] : node.attributes.entries())
    size_bytes += sizeof(value) + name.size() + size_of(value);
  return size_bytes;
}

// What inference found out about a value.
std::uint64_t size_of_facts(const ir::Value& value) {
  std::uint64_t size_bytes = 0;
  const auto add = [&](const Dim& dim) {
    size_bytes += sizeof(Dim);
    if (!dim.is_constant())
      size_bytes += kTermBytes * static_cast<std::uint64_t>(expression_size(dim));
  };
  if (value.type.shape) std::for_each(value.type.shape->begin(), value.type.shape->end(), add);
  if (value.known) std::for_each(value.known->elements.begin(), value.known->elements.end(), add);
  return size_bytes;
}

// What inference copies of the inputs.
std::uint64_t size_while_typed(const ir::Graph& graph, const NewNode& node) {
  constexpr std::uint64_t kCopies = 3;
  std::uint64_t size_bytes = kInferInputBytes * node.inputs.size();
  for (const ir::ValueId id : node.inputs) {
    if (id != ir::kNoValue) size_bytes += kCopies * size_of_facts(graph.value(id));
  }
  return size_bytes;
}

}  // namespace

Result<std::vector<ir::ValueId>> NodeEmitter::emit(GraphContext& context, NewNode node) {
  TESSERA_TRY(budget_.take(ImportBudget::Use::kNodes, size_of(node)));
  TESSERA_TRY(budget_.require(ImportBudget::Use::kNodes, size_while_typed(*context.graph, node)));
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
  for (const ir::ValueId id : outputs) {
    if (id == ir::kNoValue) continue;
    TESSERA_TRY(
        budget_.take(ImportBudget::Use::kNodes, size_of_facts(context.graph->value(id)), 0));
  }
  return outputs;
}

ir::OriginId NodeEmitter::add_source_node(std::string name, std::string op_type) {
  module_.source_nodes.push_back({std::move(name), std::move(op_type)});
  return static_cast<ir::OriginId>(module_.source_nodes.size() - 1);
}

std::set<std::string, std::less<>> NodeEmitter::fresh_symbols() const {
  const auto& names = module_.made_symbols.names;
  const std::size_t first = std::min(remembered_, names.size());
  return {names.begin() + static_cast<std::ptrdiff_t>(first), names.end()};
}

}  // namespace tessera::importer
