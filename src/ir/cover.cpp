#include "ir/cover.h"

#include <algorithm>

#include "base/error.h"

namespace tessera::ir {
namespace {

void add_once(std::vector<ValueId>& values, ValueId id) {
  if (id != kNoValue && std::find(values.begin(), values.end(), id) == values.end())
    values.push_back(id);
}

}  // namespace

WorkItem work_item(const Module& module, const Graph& graph, const Node& node) {
  WorkItem item;
  item.module = &module;
  item.graph = &graph;
  item.nodes = {&node};
  for (const ValueId id : node.inputs) add_once(item.inputs, id);
  for (const auto& captured : node.captures) {
    for (const ValueId id : captured) add_once(item.inputs, id);
  }
  for (const ValueId id : node.outputs) add_once(item.outputs, id);
  return item;
}

WorkItem work_item(const Module& module, const Graph& graph, const Cover& cover) {
  WorkItem item;
  item.module = &module;
  item.graph = &graph;
  for (const NodeId id : cover.nodes) {
    const Node* node = graph.find_node(id);
    TESSERA_CHECK(node != nullptr);
    if (cover.assembled.empty()) item.nodes.push_back(node);
  }
  for (const auto& node : cover.assembled) item.nodes.push_back(node.get());
  item.cover = &cover;
  item.inputs = cover.inputs;
  item.outputs = cover.outputs;
  return item;
}

}  // namespace tessera::ir
