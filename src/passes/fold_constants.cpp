#include "passes/fold_constants.h"

#include <algorithm>

#include "ops/op_table.h"
#include "passes/qdq_groups.h"
#include "passes/rewrite.h"

namespace tessera::passes {
namespace {

// A result up to this size is always worth it; a larger one only if it is at most kMaxGrowth times
// its inputs.
constexpr std::int64_t kSmallBytes = 64 << 10;
constexpr std::int64_t kMaxGrowth = 8;

bool is_foldable(const ir::Graph& graph, const ir::Node& node) {
  if (!node.op->deterministic || node.op->kernel == nullptr || !node.bodies.empty() ||
      node.outputs.empty() || is_group_constant(graph, node))
    return false;
  const bool constant = std::all_of(node.inputs.begin(), node.inputs.end(), [&](ir::ValueId id) {
    return id == ir::kNoValue || constant_of(graph, id) != nullptr;
  });
  return constant && std::none_of(node.outputs.begin(), node.outputs.end(), [&](ir::ValueId id) {
           return id != ir::kNoValue && (graph.is_output(id) || !graph.value(id).type.is_tensor());
         });
}

// Bytes of all outputs as inference knows them; nothing where a size depends on the data.
std::optional<std::int64_t> expected_bytes(const ir::Graph& graph, const ir::Node& node) {
  std::int64_t bytes = 0;
  for (const ir::ValueId id : node.outputs) {
    if (id == ir::kNoValue) continue;
    const auto dims = dims_of(graph, id);
    if (!dims) return std::nullopt;
    const auto size = checked_nbytes(graph.value(id).type.dtype, *dims);
    if (!size || __builtin_add_overflow(bytes, *size, &bytes)) return INT64_MAX;
  }
  return bytes;
}

// The weights of a product or a convolution: backends pack them, and choose faster kernels, where
// they are constants.
bool makes_weights(const ir::Graph& graph, const ir::Node& node) {
  return std::ranges::any_of(node.outputs, [&](ir::ValueId id) {
    if (id == ir::kNoValue) return false;
    return std::ranges::any_of(graph.uses(id), [&](const ir::Graph::Use& use) {
      return use.index > 0 && use.node->op->structure == ops::Structure::kContraction;
    });
  });
}

// Why the node stays; empty where it is folded.
std::string refusal(const PassContext& context, const ir::Graph& graph, const ir::Node& node) {
  std::int64_t input_bytes = 0;
  for (const ir::ValueId id : node.inputs) {
    if (const Tensor* input = constant_of(graph, id)) input_bytes += input->nbytes();
  }
  const auto bytes = expected_bytes(graph, node);
  if (!bytes) return input_bytes <= kSmallBytes ? "" : "the size of the result depends on the data";
  const bool weights = *bytes > kSmallBytes && makes_weights(graph, node);
  const std::int64_t limit =
      weights ? context.options.fold_weights_limit_bytes : context.options.fold_limit_bytes;
  if (*bytes > limit) {
    return "the result takes " + std::to_string(*bytes) + " bytes; the limit is " +
           std::to_string(limit);
  }
  if (!weights && *bytes > kSmallBytes && *bytes / kMaxGrowth > input_bytes) {
    return "the result takes " + std::to_string(*bytes) + " bytes, its inputs only " +
           std::to_string(input_bytes);
  }
  return "";
}

Result<std::vector<Tensor>> run(const ir::Graph& graph, const ir::Node& node) {
  std::vector<Tensor> inputs;
  for (const ir::ValueId id : node.inputs) {
    const Tensor* input = constant_of(graph, id);
    inputs.push_back(input != nullptr ? *input : Tensor());
  }
  return ops::run_reference(*node.op, node.attributes, inputs, node.outputs.size());
}

bool fold(PassContext& context, ir::Graph& graph, ir::Node& node) {
  if (!is_foldable(graph, node)) return false;
  const std::string reason = refusal(context, graph, node);
  if (!reason.empty()) {
    context.note("fold_constants", {node.name}, reason);
    return false;
  }
  auto results = run(graph, node);
  if (!results) {
    context.note("fold_constants", {node.name}, results.error().to_string());
    return false;
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const ir::ValueId from = node.outputs[i];
    if (from == ir::kNoValue) continue;
    const ir::ValueId to = graph.add_constant(graph.value(from).name, std::move((*results)[i]));
    TESSERA_CHECK(graph.replace_uses(from, to));
  }
  graph.erase_node(node.id);
  return true;
}

}  // namespace

Result<bool> fold_constants(PassContext& context, ir::Graph& graph) {
  bool changed = false;
  for (const ir::NodeId id : node_ids(graph))
    changed = fold(context, graph, *graph.find_node(id)) || changed;
  return changed;
}

}  // namespace tessera::passes
