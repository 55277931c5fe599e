#include "passes/separate_dequantize.h"

#include <algorithm>

#include "ir/infer.h"
#include "ops/op_table.h"
#include "passes/qdq_groups.h"
#include "passes/rewrite.h"

namespace tessera::passes {
namespace {

// Copies of the node for all its readers but the first. What else needs the result (an output of
// the graph, a body) keeps the node itself.
bool separate(ir::Graph& graph, ir::Node& node) {
  const ir::ValueId shared = node.outputs[0];
  std::vector<ir::Graph::Use> readers = graph.uses(shared);
  const std::size_t all = readers.size();
  std::erase_if(readers, [](const ir::Graph::Use& use) {
    return use.index >= use.node->inputs.size();  // a capture
  });
  if (readers.size() == all && !graph.is_output(shared) && !readers.empty())
    readers.erase(readers.begin());
  for (const ir::Graph::Use& use : readers) {
    ir::Node copy;
    copy.op = node.op;
    copy.name = graph.fresh_name(node.name);
    copy.attributes = node.attributes;
    copy.inputs = node.inputs;
    copy.origins = node.origins;
    copy.outputs = {
        graph.add_value(graph.fresh_name(graph.value(shared).name), graph.value(shared).type)};
    const ir::Node& added = graph.add_node(std::move(copy), graph.position_of(node.id) + 1);
    graph.set_input(*use.node, use.index, added.outputs[0]);
  }
  return !readers.empty();
}

// The axis of the scales after a permutation; nothing where there is no such axis.
std::optional<ops::Attributes> moved_attributes(const ir::Node& dequantize,
                                                const std::vector<std::int64_t>& permutation) {
  ops::Attributes attributes = dequantize.attributes;
  const auto rank = static_cast<std::int64_t>(permutation.size());
  std::int64_t axis = attributes.get_int("axis", 1);
  if (axis < 0) axis += rank;
  const auto at = std::find(permutation.begin(), permutation.end(), axis);
  if (attributes.get_int("block_size", 0) != 0) return std::nullopt;
  if (at == permutation.end()) return attributes;  // one scale: the axis says nothing
  attributes.set("axis", std::int64_t{at - permutation.begin()});
  return attributes;
}

// Transpose(DequantizeLinear(constant)) becomes DequantizeLinear(Transpose(constant)).
Result<bool> move_transpose(PassContext& context, ir::Graph& graph, ir::Node& transpose) {
  const ir::Node* made = graph.producer(transpose.inputs[0]);
  if (made == nullptr || !is_group_constant(graph, *made)) return false;
  const auto dims = dims_of(graph, made->inputs[0]);
  std::vector<std::int64_t> permutation = transpose.attributes.get_ints("perm");
  if (dims && !transpose.attributes.has("perm")) {
    for (std::size_t i = dims->size(); i-- > 0;)
      permutation.push_back(static_cast<std::int64_t>(i));
  }
  if (!dims || permutation.size() != dims->size()) return false;
  auto attributes = moved_attributes(*made, permutation);
  if (!attributes) return false;
  ir::Node moved;
  moved.op = transpose.op;
  moved.name = graph.fresh_name(transpose.name);
  moved.attributes = transpose.attributes;
  moved.inputs = {made->inputs[0]};
  moved.origins = transpose.origins;
  moved.outputs = {graph.add_value(graph.fresh_name(transpose.name + "/quantised"),
                                   graph.value(made->inputs[0]).type)};
  ir::Node& added = graph.add_node(std::move(moved), graph.position_of(transpose.id));
  TESSERA_TRY(ir::infer_node(context.module, graph, added));
  std::vector<ir::ValueId> inputs = made->inputs;
  inputs[0] = added.outputs[0];
  TESSERA_TRY(replace_node(context, graph, transpose,
                           {"DequantizeLinear", *std::move(attributes), std::move(inputs)},
                           std::vector{made}));
  return true;
}

}  // namespace

Result<bool> separate_dequantize(PassContext& context, ir::Graph& graph) {
  bool changed = false;
  for (const ir::NodeId id : node_ids(graph)) {
    ir::Node& node = *graph.find_node(id);
    if (is_op(node, "Transpose")) {
      TESSERA_ASSIGN(const bool moved, move_transpose(context, graph, node));
      changed = changed || moved;
    } else if (is_dequantize(&node)) {
      changed = separate(graph, node) || changed;
    }
  }
  return changed;
}

}  // namespace tessera::passes
