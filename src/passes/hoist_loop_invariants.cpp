#include "passes/hoist_loop_invariants.h"

#include <algorithm>
#include <map>

#include "passes/rewrite.h"

namespace tessera::passes {
namespace {

bool cannot_fail(const ir::Graph& body, const ir::Node& node) {
  if (!node.op->deterministic || node.op->kernel == nullptr || !node.bodies.empty() ||
      node.op->data_dependent_shape || node.outputs.size() != 1)
    return false;
  for (const auto* list : {&node.inputs, &node.outputs})
    for (const ir::ValueId id : *list)
      if (id != ir::kNoValue && (!body.value(id).type.is_tensor() || !body.value(id).type.shape))
        return false;
  const bool divides = is_op(node, "Div") || is_op(node, "Mod");
  if (divides && !is_float(body.value(node.outputs[0]).type.dtype)) return false;
  switch (node.op->structure) {
    case ops::Structure::kElementwise:
    case ops::Structure::kReduction:
    case ops::Structure::kContraction: return node.op->shape_inputs.empty();
    default: return is_op(node, "Transpose");
  }
}

class Hoister {
 public:
  Hoister(ir::Graph& graph, ir::Node& loop) : graph_(graph), loop_(loop), body_(*loop.bodies[0]) {
    const std::vector<ir::ValueId>& captured = loop.captures[0];
    const std::size_t formal = body_.inputs.size() - captured.size();
    for (std::size_t i = 0; i < captured.size(); ++i)
      outer_[body_.inputs[formal + i]] = captured[i];
  }

  bool run() {
    bool changed = false;
    for (const ir::NodeId id : node_ids(body_)) {
      const ir::Node& node = *body_.find_node(id);
      const bool is_invariant = std::ranges::all_of(node.inputs, [&](ir::ValueId input) {
        return input == ir::kNoValue || outer_.contains(input) ||
               constant_of(body_, input) != nullptr;
      });
      // A result of the body keeps its node: it may not be a mere input.
      if (!is_invariant || !cannot_fail(body_, node) || body_.is_output(node.outputs[0])) continue;
      hoist(node);
      changed = true;
    }
    return changed;
  }

 private:
  void hoist(const ir::Node& node) {
    const ir::ValueId inner = node.outputs[0];
    ir::Node made;
    made.op = node.op;
    made.name = graph_.fresh_name(node.name);
    made.attributes = node.attributes;
    made.origins = node.origins;
    for (const ir::ValueId id : node.inputs) {
      if (id == ir::kNoValue || outer_.contains(id)) {
        made.inputs.push_back(id == ir::kNoValue ? id : outer_[id]);
        continue;
      }
      const ir::Value& constant = body_.value(id);
      made.inputs.push_back(
          graph_.add_constant(graph_.fresh_name(constant.name), constant.constant));
    }
    const ir::ValueId result =
        graph_.add_value(graph_.fresh_name(body_.value(inner).name), body_.value(inner).type);
    made.outputs = {result};
    graph_.add_node(std::move(made), graph_.position_of(loop_.id));
    const ir::ValueId capture =
        body_.add_input(body_.fresh_name(body_.value(inner).name), body_.value(inner).type);
    TESSERA_CHECK(body_.replace_uses(inner, capture));
    body_.erase_node(node.id);
    graph_.add_capture(loop_, 0, result);
    outer_[capture] = result;
  }

  ir::Graph& graph_;
  ir::Node& loop_;
  ir::Graph& body_;
  std::map<ir::ValueId, ir::ValueId> outer_;  // captured values of the body, to the graph's
};

}  // namespace

Result<bool> hoist_loop_invariants(PassContext& /*context*/, ir::Graph& graph) {
  bool changed = false;
  for (const ir::NodeId id : node_ids(graph)) {
    ir::Node& node = *graph.find_node(id);
    if (is_op(node, "Loop") || is_op(node, "Scan")) changed = Hoister(graph, node).run() || changed;
  }
  return changed;
}

}  // namespace tessera::passes
