#include "passes/op_counts.h"

#include <unordered_map>

namespace tessera::passes {
namespace {

// By schema, of which there is one each: names are put together once for each operator.
using SchemaCounts = std::unordered_map<const ops::OpSchema*, std::int64_t>;

void count_graph(const ir::Graph& graph, SchemaCounts& counts) {
  for (const auto& node : graph.nodes()) {
    ++counts[node->op];
    for (const auto& body : node->bodies) count_graph(*body, counts);
  }
}

}  // namespace

OpCounts count_ops(const ir::Module& module) {
  SchemaCounts by_schema;
  for (const ir::Method& method : module.methods) count_graph(method.graph, by_schema);
  OpCounts counts;
  for (const auto& [op, count] : by_schema)
    counts[op->qualified_name()] += static_cast<OpCounts::mapped_type>(count);
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
