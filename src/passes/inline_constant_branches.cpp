#include "passes/inline_constant_branches.h"

#include <map>

#include "ops/op_table.h"
#include "passes/rewrite.h"

namespace tessera::passes {
namespace {

// Moves the nodes of one branch in front of their If.
class Inliner {
 public:
  Inliner(ir::Graph& graph, ir::Node& node, std::size_t branch)
      : graph_(graph), node_(node), body_(std::move(node.bodies[branch])) {
    const auto& captured = node.captures[branch];
    for (std::size_t i = 0; i < captured.size(); ++i) values_[body_->inputs[i]] = captured[i];
  }

  void run() {
    for (const auto& inner : body_->nodes()) add_node(*inner);
    for (std::size_t i = 0; i < node_.outputs.size(); ++i)
      if (node_.outputs[i] != ir::kNoValue) replace(node_.outputs[i], mapped(body_->outputs[i]));
    graph_.erase_node(node_.id);
  }

 private:
  ir::ValueId mapped(ir::ValueId id) {
    if (id == ir::kNoValue) return id;
    if (const auto known = values_.find(id); known != values_.end()) return known->second;
    const ir::Value& value = body_->value(id);
    TESSERA_CHECK(value.kind == ir::ValueKind::kConstant);
    return values_[id] = graph_.add_constant(graph_.fresh_name(value.name), value.constant);
  }
  void insert(ir::Node made) { graph_.add_node(std::move(made), graph_.position_of(node_.id)); }
  void add_node(ir::Node& inner) {
    ir::Node made;
    made.op = inner.op;
    made.name = graph_.fresh_name(inner.name);
    made.attributes = std::move(inner.attributes);
    made.bodies = std::move(inner.bodies);
    made.origins = ir::merge_origins(inner.origins, node_.origins);
    for (const ir::ValueId id : inner.inputs) made.inputs.push_back(mapped(id));
    for (const auto& captured : inner.captures) {
      made.captures.emplace_back();
      for (const ir::ValueId id : captured) made.captures.back().push_back(mapped(id));
    }
    for (const ir::ValueId id : inner.outputs) {
      made.outputs.push_back(id);
      if (id == ir::kNoValue) continue;
      const ir::Value& value = body_->value(id);
      made.outputs.back() = values_[id] =
          graph_.add_value(graph_.fresh_name(value.name), value.type);
      graph_.value(values_[id]).known = value.known;
    }
    insert(std::move(made));
  }
  // An output of the graph that is a constant or another output needs a node that makes it.
  void replace(ir::ValueId from, ir::ValueId to) {
    if (graph_.replace_uses(from, to)) return;
    ir::Node identity;
    identity.op = ops::find_op("", "Identity");
    identity.name = graph_.fresh_name(node_.name);
    identity.origins = node_.origins;
    identity.inputs = {to};
    identity.outputs = {
        graph_.add_value(graph_.fresh_name(graph_.value(from).name), graph_.value(to).type)};
    const ir::ValueId made = identity.outputs.front();
    insert(std::move(identity));
    TESSERA_CHECK(graph_.replace_uses(from, made));
  }

  ir::Graph& graph_;
  ir::Node& node_;
  std::unique_ptr<ir::Graph> body_;
  std::map<ir::ValueId, ir::ValueId> values_;  // of the body, to the graph
};

}  // namespace

Result<bool> inline_constant_branches(PassContext& /*context*/, ir::Graph& graph) {
  bool changed = false;
  for (const ir::NodeId id : node_ids(graph)) {
    ir::Node& node = *graph.find_node(id);
    if (!is_op(node, "If")) continue;
    const Tensor* constant = constant_of(graph, node.inputs[0]);
    if (constant == nullptr || constant->dtype() != DType::kBool || constant->numel() != 1)
      continue;
    Inliner(graph, node, constant->span<bool>()[0] ? 0 : 1).run();
    changed = true;
  }
  return changed;
}

}  // namespace tessera::passes
