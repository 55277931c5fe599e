#include "passes/cover_builder.h"

#include <algorithm>

#include "ops/scalar_function.h"
#include "passes/rewrite.h"

namespace tessera::passes {

CoverGraph::CoverGraph(const ir::Graph& graph) : graph_(graph), uses_(graph) {
  for (const auto& node : graph.nodes()) positions_.emplace(node->id, positions_.size());
}

bool CoverGraph::has_float_result(const ir::Node& node) const {
  if (node.outputs.size() != 1 || node.outputs[0] == ir::kNoValue || !node.bodies.empty())
    return false;
  const ValueType& type = graph_.value(node.outputs[0]).type;
  return type.is_tensor() && type.shape && is_float(type.dtype);
}

bool CoverGraph::is_elementwise_float(const ir::Node& node) const {
  return has_float_result(node) && ops::scalar_function(*node.op, node.attributes).has_value();
}

bool CoverGraph::is_made_by(ir::ValueId id, const std::vector<ir::NodeId>& nodes) const {
  const ir::Value& value = graph_.value(id);
  return value.producer != ir::kNoNode &&
         std::find(nodes.begin(), nodes.end(), value.producer) != nodes.end();
}

bool CoverGraph::is_read_only_by(ir::ValueId id, const std::vector<ir::NodeId>& nodes) const {
  const auto readers = uses_.uses(id);
  return !uses_.is_output(id) &&
         std::all_of(readers.begin(), readers.end(), [&](const ir::Graph::Use& use) {
           return std::find(nodes.begin(), nodes.end(), use.node->id) != nodes.end();
         });
}

bool CoverGraph::is_there_before(ir::ValueId id, ir::NodeId node) const {
  const ir::Node* producer = graph_.producer(id);
  return producer == nullptr || position(producer->id) < position(node);
}

bool CoverGraph::is_scalar(ir::ValueId constant) const {
  const Tensor* tensor = constant_of(graph_, constant);
  return tensor != nullptr && tensor->numel() == 1;
}

bool CoverGraph::is_by_axis(ir::ValueId constant, ir::ValueId result, std::size_t axis) const {
  const Tensor* tensor = constant_of(graph_, constant);
  const auto& shape = graph_.value(result).type.shape;
  if (tensor == nullptr || !shape || axis >= shape->size() || tensor->dims().size() > shape->size())
    return false;
  const Dims& dims = tensor->dims();
  const std::size_t lead = shape->size() - dims.size();
  if (axis < lead) return false;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const bool fits = lead + i == axis ? (*shape)[axis].constant() == dims[i] : dims[i] == 1;
    if (!fits) return false;
  }
  return true;
}

void CoverList::add(std::string_view pattern, const std::vector<ir::NodeId>& nodes,
                    bool has_anchor) {
  if (nodes.size() < 2 || !seen_.insert(nodes).second) return;
  const ir::Graph& graph = graph_.graph();
  for (const ir::NodeId node : nodes)
    if (graph.find_node(node)->block != graph.find_node(nodes[0])->block) return;
  ir::Cover cover;
  cover.id = static_cast<std::uint32_t>(covers_.size());
  cover.pattern = pattern;
  cover.nodes = nodes;
  cover.has_anchor = has_anchor;
  for (const ir::NodeId node : nodes) {
    for (const ir::ValueId id : graph.find_node(node)->inputs) {
      if (id == ir::kNoValue || graph_.is_made_by(id, nodes)) continue;
      if (std::find(cover.inputs.begin(), cover.inputs.end(), id) == cover.inputs.end())
        cover.inputs.push_back(id);
    }
  }
  cover.outputs = {graph.find_node(nodes.back())->outputs[0]};
  covers_.push_back(std::move(cover));
}

void CoverList::add_assembled(std::string_view pattern, const std::vector<ir::NodeId>& nodes,
                              const std::vector<ir::ValueId>& outputs,
                              std::vector<std::shared_ptr<const ir::Node>> assembled) {
  ir::Cover cover;
  cover.id = static_cast<std::uint32_t>(covers_.size());
  cover.pattern = pattern;
  cover.nodes = nodes;
  cover.outputs = outputs;
  std::set<ir::ValueId> made;
  for (const auto& node : assembled) {
    for (const ir::ValueId id : node->inputs) {
      const bool is_new =
          std::find(cover.inputs.begin(), cover.inputs.end(), id) == cover.inputs.end();
      if (id != ir::kNoValue && !made.contains(id) && is_new) cover.inputs.push_back(id);
    }
    made.insert(node->outputs.begin(), node->outputs.end());
  }
  cover.assembled = std::move(assembled);
  covers_.push_back(std::move(cover));
}

}  // namespace tessera::passes
