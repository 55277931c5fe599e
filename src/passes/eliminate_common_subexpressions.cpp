#include "passes/eliminate_common_subexpressions.h"

#include <algorithm>
#include <map>

#include "ir/use_index.h"
#include "passes/qdq_groups.h"
#include "passes/rewrite.h"

namespace tessera::passes {
namespace {

// Larger constants are the same only if they share storage: comparing the contents of all weights
// each time is not worth it.
constexpr std::int64_t kMaxComparedBytes = 1 << 20;

std::string constant_key(const Tensor& tensor) {
  std::string key =
      std::to_string(static_cast<int>(tensor.dtype())) + ":" + to_string(tensor.dims()) + ":";
  if (tensor.nbytes() <= kMaxComparedBytes) return key + tensor.content_hash().to_string();
  return key + "@" + std::to_string(reinterpret_cast<std::uintptr_t>(tensor.data()));
}

// Keys only find candidates; the storage address in a key never decides an order.
bool merge_constants(ir::Graph& graph) {
  const ir::UseIndex uses(graph);
  std::map<std::string, ir::ValueId> first;
  bool changed = false;
  for (ir::ValueId id = 0; id < graph.value_count(); ++id) {
    const ir::Value& value = graph.value(id);
    if (value.kind != ir::ValueKind::kConstant || uses.use_count(id) == 0 || uses.is_output(id))
      continue;
    const ir::ValueId kept = first.emplace(constant_key(value.constant), id).first->second;
    if (kept == id) continue;
    if (value.constant.nbytes() <= kMaxComparedBytes &&
        !graph.value(kept).constant.equals(value.constant))
      continue;
    changed = graph.replace_uses(id, kept) || changed;
  }
  return changed;
}

std::string node_key(const ir::Node& node) {
  std::vector<ir::ValueId> inputs = node.inputs;
  if (node.op->commutative && inputs.size() >= 2 && inputs[0] > inputs[1])
    std::swap(inputs[0], inputs[1]);
  std::string key = node.op->qualified_name() + "(";
  for (const ir::ValueId id : inputs) key += std::to_string(id) + ",";
  return key + ")" + node.attributes.to_string();
}

// Every output of `node` that somebody needs can be read from `kept` instead.
bool can_merge(const ir::Graph& graph, const ir::Node& kept, const ir::Node& node) {
  if (!kept.attributes.equals(node.attributes)) return false;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const ir::ValueId from = node.outputs[i];
    if (from == ir::kNoValue) continue;
    if (i >= kept.outputs.size() || kept.outputs[i] == ir::kNoValue) return false;
    if (graph.is_output(from) && graph.is_output(kept.outputs[i])) return false;
    if (!(graph.value(from).type == graph.value(kept.outputs[i]).type)) return false;
  }
  return true;
}

void merge(ir::Graph& graph, ir::Node& kept, ir::Node& node) {
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] != ir::kNoValue)
      TESSERA_CHECK(graph.replace_uses(node.outputs[i], kept.outputs[i]));
  }
  kept.origins = ir::merge_origins(kept.origins, node.origins);
  graph.erase_node(node.id);
}

}  // namespace

Result<bool> eliminate_common_subexpressions(PassContext& /*context*/, ir::Graph& graph) {
  bool changed = merge_constants(graph);
  std::map<std::string, ir::NodeId> first;
  for (const ir::NodeId id : node_ids(graph)) {
    ir::Node& node = *graph.find_node(id);
    if (!node.op->deterministic || !node.bodies.empty() || is_dequantize(&node)) continue;
    ir::Node& kept = *graph.find_node(first.emplace(node_key(node), id).first->second);
    if (kept.id == id || !can_merge(graph, kept, node)) continue;
    merge(graph, kept, node);
    changed = true;
  }
  return changed;
}

}  // namespace tessera::passes
