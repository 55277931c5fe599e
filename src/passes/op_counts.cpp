#include "passes/op_counts.h"

namespace tessera::passes {
namespace {

void count_graph(const ir::Graph& graph, OpCounts& counts) {
  for (const auto& node : graph.nodes()) {
    ++counts[node->op->qualified_name()];
    for (const auto& body : node->bodies) count_graph(*body, counts);
  }
}

}  // namespace

OpCounts count_ops(const ir::Module& module) {
  OpCounts counts;
  for (const ir::Method& method : module.methods) count_graph(method.graph, counts);
  return counts;
}

OpCounts count_source_ops(const ir::Module& module) {
  OpCounts counts;
  for (const ir::SourceNode& source : module.source_nodes) ++counts[source.op_type];
  return counts;
}

void add_difference(const OpCounts& before, const OpCounts& after, OpCounts& added,
                    OpCounts& removed) {
  OpCounts difference = after;
  for (const auto& [op, count] : before) difference[op] -= count;
  for (const auto& [op, count] : difference) {
    if (count > 0) added[op] += count;
    if (count < 0) removed[op] -= count;
  }
}

}  // namespace tessera::passes
