#include "passes/rewrite.h"

#include <algorithm>

#include "ir/infer.h"
#include "ops/op_table.h"
#include "passes/float_elements.h"

namespace tessera::passes {

std::vector<ir::NodeId> node_ids(const ir::Graph& graph) {
  std::vector<ir::NodeId> ids;
  ids.reserve(graph.nodes().size());
  for (const auto& node : graph.nodes()) ids.push_back(node->id);
  return ids;
}

bool is_op(const ir::Node& node, std::string_view name) {
  return node.op->name == name && node.op->domain.empty();
}

bool is_op(const ir::Node* node, std::string_view name) {
  return node != nullptr && is_op(*node, name);
}

ir::ValueId input_of(const ir::Node& node, std::size_t index) {
  return index < node.inputs.size() ? node.inputs[index] : ir::kNoValue;
}

const Tensor* constant_of(const ir::Graph& graph, ir::ValueId id) {
  if (id == ir::kNoValue || graph.value(id).kind != ir::ValueKind::kConstant) return nullptr;
  return &graph.value(id).constant;
}

bool same_type(const ir::Graph& graph, ir::ValueId a, ir::ValueId b) {
  const ValueType& type = graph.value(a).type;
  return type.is_tensor() && type.shape && type == graph.value(b).type;
}

std::optional<Dims> dims_of(const ir::Graph& graph, ir::ValueId id) {
  const ValueType& type = graph.value(id).type;
  return type.is_tensor() && type.shape ? constant_dims(*type.shape) : std::nullopt;
}

std::optional<double> uniform_constant(const ir::Graph& graph, ir::ValueId id) {
  const Tensor* tensor = constant_of(graph, id);
  if (tensor == nullptr || tensor->numel() == 0) return std::nullopt;
  if (has_float_elements(tensor->dtype())) {
    const std::vector<double> elements = float_elements(tensor->view());
    const bool uniform = std::all_of(elements.begin(), elements.end(),
                                     [&](double x) { return x == elements.front(); });
    return uniform ? std::optional(elements.front()) : std::nullopt;
  }
  if (!is_integer(tensor->dtype())) return std::nullopt;
  const std::vector<std::int64_t> elements = to_int64_vector(tensor->view());
  const bool uniform = std::all_of(elements.begin(), elements.end(),
                                   [&](std::int64_t x) { return x == elements.front(); });
  return uniform ? std::optional(static_cast<double>(elements.front())) : std::nullopt;
}

bool eliminate(ir::Graph& graph, ir::Node& node, ir::ValueId to) {
  const ir::ValueId from = node.outputs.at(0);
  for (std::size_t i = 1; i < node.outputs.size(); ++i) {
    if (node.outputs[i] != ir::kNoValue && graph.use_count(node.outputs[i]) > 0) return false;
  }
  const std::vector<ir::Graph::Use> readers = graph.uses(from);
  if (!graph.replace_uses(from, to)) return false;
  if (ir::Node* producer = graph.producer(to)) {
    producer->origins = ir::merge_origins(producer->origins, node.origins);
  } else {
    for (const ir::Graph::Use& use : readers)
      use.node->origins = ir::merge_origins(use.node->origins, node.origins);
  }
  graph.erase_node(node.id);
  return true;
}

Status replace_node(PassContext& context, ir::Graph& graph, ir::Node& old, NewNode made,
                    std::span<const ir::Node* const> also) {
  ir::Node node;
  node.op = ops::find_op("", made.op);
  TESSERA_CHECK(node.op != nullptr);
  node.attributes = std::move(made.attributes);
  node.inputs = std::move(made.inputs);
  node.name = old.name;
  node.origins = old.origins;
  for (const ir::Node* other : also) node.origins = ir::merge_origins(node.origins, other->origins);
  const ir::ValueId from = old.outputs.at(0);
  const ir::ValueId to =
      graph.add_value(graph.fresh_name(graph.value(from).name), graph.value(from).type);
  node.outputs = {to};
  ir::Node& added = graph.add_node(std::move(node), graph.position_of(old.id));
  if (!graph.is_output(from))
    std::swap(graph.value(from).name, graph.value(to).name);  // else replace_uses does
  TESSERA_CHECK(graph.replace_uses(from, to));
  graph.erase_node(old.id);
  return ir::infer_node(context.module, graph, added);
}

ir::ValueId add_int64s(ir::Graph& graph, std::string_view stem,
                       const std::vector<std::int64_t>& elements) {
  const auto count = static_cast<std::int64_t>(elements.size());
  return graph.add_constant(graph.fresh_name(stem),
                            Tensor::of<std::int64_t>(DType::kInt64, {count}, elements));
}

}  // namespace tessera::passes
