#include "passes/simplify_transpose.h"

#include <algorithm>

#include "passes/rewrite.h"
#include "passes/view_target.h"

namespace tessera::passes {
namespace {

using Permutation = std::vector<std::int64_t>;

// With the default, all dims reversed, written out; nothing where the rank is not known.
std::optional<Permutation> permutation_of(const ir::Graph& graph, const ir::Node& node) {
  const ValueType& type = graph.value(node.inputs[0]).type;
  if (!type.is_tensor() || !type.shape) return std::nullopt;
  const std::size_t rank = type.shape->size();
  Permutation permutation = node.attributes.get_ints("perm");
  if (!node.attributes.has("perm")) {
    for (std::size_t i = rank; i-- > 0;) permutation.push_back(static_cast<std::int64_t>(i));
  }
  return permutation.size() == rank ? std::optional(permutation) : std::nullopt;
}

bool is_identity(const Permutation& permutation) {
  return std::is_sorted(permutation.begin(), permutation.end());
}

// The dims of more than 1 element keep their order.
bool moves_only_ones(const Permutation& permutation, const Shape& shape) {
  Permutation moved;
  std::copy_if(
      permutation.begin(), permutation.end(), std::back_inserter(moved),
      [&](std::int64_t axis) { return shape[static_cast<std::size_t>(axis)].constant() != 1; });
  return is_identity(moved);
}

// Reads through a Transpose before this one.
Result<bool> join(PassContext& context, ir::Graph& graph, ir::Node& node,
                  const Permutation& outer) {
  const ir::Node* before = graph.producer(node.inputs[0]);
  if (!is_op(before, "Transpose")) return false;
  const auto inner = permutation_of(graph, *before);
  if (!inner) return false;
  Permutation joined;
  for (const std::int64_t axis : outer) joined.push_back((*inner)[static_cast<std::size_t>(axis)]);
  ops::Attributes attributes;
  attributes.set("perm", joined);
  TESSERA_TRY(replace_node(context, graph, node,
                           {"Transpose", std::move(attributes), {before->inputs[0]}},
                           std::vector{before}));
  return true;
}

Result<bool> simplify(PassContext& context, ir::Graph& graph, ir::Node& node) {
  const auto permutation = permutation_of(graph, node);
  if (!permutation) return false;
  if (is_identity(*permutation)) return eliminate(graph, node, node.inputs[0]);
  TESSERA_ASSIGN(const bool joined, join(context, graph, node, *permutation));
  if (joined) return true;
  if (!moves_only_ones(*permutation, *graph.value(node.inputs[0]).type.shape)) return false;
  const auto& shape = graph.value(node.outputs[0]).type.shape;
  const auto target = shape ? reshape_target(*shape) : std::nullopt;
  if (!target) return false;
  const ir::ValueId constant = add_int64s(graph, node.name + "/shape", *target);
  TESSERA_TRY(replace_node(context, graph, node, {"Reshape", {}, {node.inputs[0], constant}}));
  return true;
}

}  // namespace

Result<bool> simplify_transpose(PassContext& context, ir::Graph& graph) {
  bool changed = false;
  for (const ir::NodeId id : node_ids(graph)) {
    ir::Node& node = *graph.find_node(id);
    if (!is_op(node, "Transpose")) continue;
    TESSERA_ASSIGN(const bool simplified, simplify(context, graph, node));
    changed = changed || simplified;
  }
  return changed;
}

}  // namespace tessera::passes
