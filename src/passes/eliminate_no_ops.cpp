#include "passes/eliminate_no_ops.h"

#include <algorithm>
#include <array>

#include "passes/rewrite.h"

namespace tessera::passes {
namespace {

constexpr std::array kFoldsOfOne = {"Sum", "Min", "Max", "Mean", "Concat"};

bool pads_nothing(const ir::Graph& graph, const ir::Node& node) {
  const Tensor* pads = constant_of(graph, input_of(node, 1));
  if (pads == nullptr || pads->dtype() != DType::kInt64) return false;
  const auto elements = pads->span<std::int64_t>();
  return std::all_of(elements.begin(), elements.end(), [](std::int64_t pad) { return pad == 0; });
}

bool is_no_op(const ir::Graph& graph, const ir::Node& node) {
  if (is_op(node, "Identity") || is_op(node, "Dropout"))
    return true;  // Dropout with a used mask: eliminate() refuses
  if (node.inputs.size() == 1 && std::any_of(kFoldsOfOne.begin(), kFoldsOfOne.end(),
                                             [&](auto name) { return is_op(node, name); })) {
    return true;
  }
  if (is_op(node, "Cast")) {
    const ValueType& from = graph.value(node.inputs[0]).type;
    const ValueType& to = graph.value(node.outputs[0]).type;
    return from.is_tensor() && from.dtype != DType::kUndefined && from.dtype == to.dtype;
  }
  if (is_op(node, "Expand")) return same_type(graph, node.inputs[0], node.outputs[0]);
  if (is_op(node, "Pad")) return pads_nothing(graph, node);
  return false;
}

}  // namespace

Result<bool> eliminate_no_ops(PassContext& /*context*/, ir::Graph& graph) {
  bool changed = false;
  for (const ir::NodeId id : node_ids(graph)) {
    ir::Node& node = *graph.find_node(id);
    if (is_no_op(graph, node)) changed = eliminate(graph, node, node.inputs[0]) || changed;
  }
  return changed;
}

}  // namespace tessera::passes
