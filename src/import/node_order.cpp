#include "import/node_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "io/onnx.pb.h"

namespace tessera::importer {
namespace {

using Names = std::set<std::string_view>;

Names free_names(const onnx::GraphProto& graph);

// Names that one node reads: its inputs and what its bodies take from outside.
Names reads_of(const onnx::NodeProto& node) {
  Names names;
  for (const std::string& input : node.input()) {
    if (!input.empty()) names.insert(input);
  }
  for (const auto& attribute : node.attribute()) {
    if (attribute.has_g()) names.merge(free_names(attribute.g()));
  }
  return names;
}

// The names that a graph's nodes, its bodies' included, read from outside of it.
Names free_names(const onnx::GraphProto& graph) {
  Names defined;
  Names read;
  const NodeList list = list_of(graph);
  defined.insert(list.inputs.begin(), list.inputs.end());
  for (const onnx::NodeProto* node : list.nodes) {
    defined.insert(node->output().begin(), node->output().end());
    read.merge(reads_of(*node));
  }
  for (const auto& output : graph.output()) read.insert(output.name());
  std::erase_if(read, [&](std::string_view name) { return defined.contains(name); });
  return read;
}

// How often a name stands in the list and the bodies of its nodes.
std::uint64_t count_names(const NodeList& list) {
  std::uint64_t count = list.inputs.size();
  for (const onnx::NodeProto* node : list.nodes) {
    count += static_cast<std::uint64_t>(node->input_size() + node->output_size());
    for (const auto& attribute : node->attribute()) {
      if (!attribute.has_g()) continue;
      count += count_names(list_of(attribute.g()));
      count += static_cast<std::uint64_t>(attribute.g().output_size());
    }
  }
  return count;
}

// Who makes each name: the index of the node, or nothing for inputs and initializers.
using Producers = std::map<std::string_view, std::optional<std::size_t>>;

Result<Producers> find_producers(const NodeList& list) {
  Producers producers;
  for (const std::string_view input : list.inputs) producers.emplace(input, std::nullopt);
  for (std::size_t i = 0; i < list.nodes.size(); ++i) {
    const onnx::NodeProto& node = *list.nodes[i];
    for (const std::string& output : node.output()) {
      if (output.empty()) continue;
      const auto [entry, is_new] = producers.emplace(output, i);
      if (is_new) continue;
      const std::string other =
          entry->second
              ? fmt::format("node '{}'", node_name(*list.nodes[*entry->second], *entry->second))
              : std::string("an input or initializer");
      return fail(ErrorCode::kAlreadyExists,
                  fmt::format("node '{}' ({}): output '{}' is made twice, by {} as well",
                              node_name(node, i), node.op_type(), output, other));
    }
  }
  return producers;
}

// Walks back from a node that waits, through producers that wait, until one comes again: that is a
// cycle.
std::string describe_cycle(const NodeList& list,
                           const std::vector<std::vector<std::size_t>>& sources,
                           const std::vector<std::size_t>& waiting) {
  std::size_t at = 0;
  while (waiting[at] == 0) ++at;
  std::vector<std::size_t> path;
  while (std::find(path.begin(), path.end(), at) == path.end()) {
    path.push_back(at);
    at = *std::find_if(sources[at].begin(), sources[at].end(),
                       [&](std::size_t source) { return waiting[source] > 0; });
  }
  const auto begin = std::find(path.begin(), path.end(), at);
  std::string text = fmt::format("'{}'", node_name(*list.nodes[at], at));
  for (auto node = path.end(); node != begin;) {
    --node;
    text += fmt::format(" -> '{}'", node_name(*list.nodes[*node], *node));
  }
  return text;
}

}  // namespace

NodeList list_of(const onnx::GraphProto& graph) {
  NodeList list;
  for (const auto& node : graph.node()) list.nodes.push_back(&node);
  for (const auto& input : graph.input()) list.inputs.push_back(input.name());
  for (const auto& tensor : graph.initializer()) list.inputs.push_back(tensor.name());
  for (const auto& tensor : graph.sparse_initializer())
    list.inputs.push_back(tensor.values().name());
  return list;
}

NodeList list_of(const onnx::FunctionProto& function) {
  NodeList list;
  for (const auto& node : function.node()) list.nodes.push_back(&node);
  list.inputs.assign(function.input().begin(), function.input().end());
  return list;
}

std::string node_name(const onnx::NodeProto& node, std::size_t index) {
  return node.name().empty() ? fmt::format("{}_{}", node.op_type(), index) : node.name();
}

std::string shown_name(std::string name) {
  constexpr std::size_t kLongest = 400;
  constexpr std::size_t kEnd = 150;
  if (name.size() > kLongest) name.replace(kEnd, name.size() - 2 * kEnd, "...");
  return name;
}

Result<std::vector<std::size_t>> order_nodes(const NodeList& list) {
  TESSERA_ASSIGN(const Producers producers, find_producers(list));
  std::vector<std::vector<std::size_t>> sources(list.nodes.size());
  std::vector<std::vector<std::size_t>> readers(list.nodes.size());
  std::vector<std::size_t> waiting(list.nodes.size(), 0);
  std::set<std::size_t> ready;  // the first as listed goes first
  for (std::size_t i = 0; i < list.nodes.size(); ++i) {
    for (const std::string_view name : reads_of(*list.nodes[i])) {
      const auto producer = producers.find(name);
      if (producer == producers.end() || !producer->second) continue;
      sources[i].push_back(*producer->second);
      readers[*producer->second].push_back(i);
      ++waiting[i];
    }
    if (waiting[i] == 0) ready.insert(i);
  }
  std::vector<std::size_t> order;
  while (!ready.empty()) {
    const std::size_t next = *ready.begin();
    ready.erase(ready.begin());
    order.push_back(next);
    for (const std::size_t reader : readers[next]) {
      if (--waiting[reader] == 0) ready.insert(reader);
    }
  }
  if (order.size() != list.nodes.size()) {
    return fail(ErrorCode::kInvalidArgument,
                "the nodes form a cycle: " + describe_cycle(list, sources, waiting));
  }
  return order;
}

std::uint64_t ordering_bytes(const NodeList& list) {
  constexpr std::uint64_t kNodeBytes = 170;
  constexpr std::uint64_t kNameBytes = 100;
  return kNodeBytes * list.nodes.size() + kNameBytes * count_names(list);
}

}  // namespace tessera::importer
