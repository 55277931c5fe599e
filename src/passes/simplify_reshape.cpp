#include "passes/simplify_reshape.h"

#include <algorithm>
#include <array>

#include "passes/rewrite.h"
#include "passes/view_target.h"

namespace tessera::passes {
namespace {

constexpr std::array kViews = {"Reshape", "Flatten", "Squeeze", "Unsqueeze"};

bool is_view(const ir::Node* node) {
  return std::any_of(kViews.begin(), kViews.end(),
                     [&](const char* name) { return is_op(node, name); });
}

// A Reshape whose constant target says everything without looking at its input's sizes: it can read
// any view of the input.
bool has_free_target(const ir::Graph& graph, const ir::Node& node) {
  const Tensor* target = is_op(node, "Reshape") ? constant_of(graph, input_of(node, 1)) : nullptr;
  if (target == nullptr || target->dtype() != DType::kInt64) return false;
  const auto elements = target->span<std::int64_t>();
  return node.attributes.get_int("allowzero", 0) != 0 ||
         std::find(elements.begin(), elements.end(), 0) == elements.end();
}

Result<bool> join(PassContext& context, ir::Graph& graph, ir::Node& node) {
  const ir::Node* before = graph.producer(node.inputs[0]);
  if (!is_view(before)) return false;
  const ir::ValueId source = before->inputs[0];
  if (has_free_target(graph, node)) {
    TESSERA_TRY(replace_node(context, graph, node,
                             {"Reshape", node.attributes, {source, node.inputs[1]}},
                             std::vector{before}));
    return true;
  }
  const ValueType& type = graph.value(node.outputs[0]).type;
  const auto target = type.is_tensor() && type.shape ? reshape_target(*type.shape) : std::nullopt;
  if (!target) return false;
  const ir::ValueId constant = add_int64s(graph, node.name + "/shape", *target);
  TESSERA_TRY(
      replace_node(context, graph, node, {"Reshape", {}, {source, constant}}, std::vector{before}));
  return true;
}

}  // namespace

Result<bool> simplify_reshape(PassContext& context, ir::Graph& graph) {
  bool changed = false;
  for (const ir::NodeId id : node_ids(graph)) {
    ir::Node& node = *graph.find_node(id);
    if (!is_view(&node)) continue;
    if (same_type(graph, node.inputs[0], node.outputs[0]) &&
        eliminate(graph, node, node.inputs[0])) {
      changed = true;
      continue;
    }
    TESSERA_ASSIGN(const bool joined, join(context, graph, node));
    changed = changed || joined;
  }
  return changed;
}

}  // namespace tessera::passes
