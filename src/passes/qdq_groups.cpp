#include "passes/qdq_groups.h"

#include <algorithm>
#include <array>

#include "passes/rewrite.h"

namespace tessera::passes {
namespace {

constexpr int kMaxSteps = 4;  // views and transposes between the constant and its reader

bool moves(const ir::Node& node) {
  constexpr std::array kMovement = {"Transpose", "Reshape", "Squeeze", "Unsqueeze", "Identity"};
  return std::any_of(kMovement.begin(), kMovement.end(),
                     [&](const char* name) { return is_op(node, name); });
}

// The value is what DequantizeLinear makes of a tensor computed at run time, moved perhaps.
bool dequantised_at_run_time(const ir::Graph& graph, ir::ValueId id, int steps) {
  const ir::Node* producer = id == ir::kNoValue ? nullptr : graph.producer(id);
  if (producer == nullptr || steps == 0) return false;
  if (is_dequantize(producer)) return constant_of(graph, producer->inputs[0]) == nullptr;
  return moves(*producer) && dequantised_at_run_time(graph, producer->inputs[0], steps - 1);
}

bool read_in_group(const ir::Graph& graph, ir::ValueId id, int steps) {
  for (const ir::Graph::Use& use : graph.uses(id)) {
    if (moves(*use.node)) {
      if (steps > 0 && read_in_group(graph, use.node->outputs[0], steps - 1)) return true;
      continue;
    }
    const auto& inputs = use.node->inputs;
    if (std::any_of(inputs.begin(), inputs.end(), [&](ir::ValueId other) {
          return other != id && dequantised_at_run_time(graph, other, kMaxSteps);
        }))
      return true;
  }
  return false;
}

}  // namespace

bool is_dequantize(const ir::Node* node) {
  return is_op(node, "DequantizeLinear");
}
bool is_quantize(const ir::Node* node) {
  return is_op(node, "QuantizeLinear");
}

bool is_group_constant(const ir::Graph& graph, const ir::Node& node) {
  return is_dequantize(&node) && constant_of(graph, node.inputs[0]) != nullptr &&
         read_in_group(graph, node.outputs[0], kMaxSteps);
}

}  // namespace tessera::passes
