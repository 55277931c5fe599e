#include "passes/eliminate_dead_code.h"

#include "ir/use_index.h"

namespace tessera::passes {
namespace {

// Body inputs that the body does not read need no capture.
bool drop_unused_captures(ir::Graph& graph, ir::Node& node) {
  bool changed = false;
  for (std::size_t i = 0; i < node.bodies.size(); ++i) {
    ir::Graph& body = *node.bodies[i];
    const auto& captured = node.captures[i];
    const ir::UseIndex uses(body);
    const std::size_t formal_count = body.inputs.size() - captured.size();
    for (std::size_t j = captured.size(); j-- > 0;) {
      const auto at = static_cast<std::ptrdiff_t>(j);
      if (uses.use_count(body.inputs[formal_count + j]) > 0) continue;
      body.inputs.erase(body.inputs.begin() + static_cast<std::ptrdiff_t>(formal_count) + at);
      graph.erase_capture(node, i, j);
      changed = true;
    }
  }
  return changed;
}

bool erase_dead_nodes(ir::Graph& graph) {
  std::vector<bool> live(graph.value_count(), false);
  const auto mark = [&](const std::vector<ir::ValueId>& ids) {
    for (const ir::ValueId id : ids) {
      if (id != ir::kNoValue) live[id] = true;
    }
  };
  mark(graph.outputs);
  std::set<ir::NodeId> dead;
  for (auto node = graph.nodes().rbegin(); node != graph.nodes().rend(); ++node) {
    bool needed = false;
    for (const ir::ValueId id : (*node)->outputs)
      needed = needed || (id != ir::kNoValue && live[id]);
    if (!needed) {
      dead.insert((*node)->id);
      continue;
    }
    mark((*node)->inputs);
    for (const auto& captured : (*node)->captures) mark(captured);
  }
  if (dead.empty()) return false;
  graph.erase_nodes(dead);
  return true;
}

bool drop_unused_outputs(ir::Graph& graph, const ir::UseIndex& uses) {
  bool changed = false;
  for (const auto& node : graph.nodes()) {
    for (std::size_t i = 0; i < node->outputs.size() && i < node->op->outputs.size(); ++i) {
      ir::ValueId& output = node->outputs[i];
      if (node->op->outputs[i].arity != ops::FormalParam::Arity::kOptional) continue;
      if (output == ir::kNoValue || uses.use_count(output) > 0) continue;
      graph.value(output).producer = ir::kNoNode;
      output = ir::kNoValue;
      changed = true;
    }
    while (!node->outputs.empty() && node->outputs.back() == ir::kNoValue) node->outputs.pop_back();
  }
  return changed;
}

}  // namespace

Result<bool> eliminate_dead_code(PassContext& /*context*/, ir::Graph& graph) {
  bool changed = erase_dead_nodes(graph);
  for (const auto& node : graph.nodes()) changed = drop_unused_captures(graph, *node) || changed;
  const ir::UseIndex uses(graph);
  changed = drop_unused_outputs(graph, uses) || changed;
  for (ir::ValueId id = 0; id < graph.value_count(); ++id) {
    if (uses.use_count(id) == 0 && graph.value(id).kind == ir::ValueKind::kConstant)
      graph.value(id).constant = Tensor();
  }
  return changed;
}

}  // namespace tessera::passes
