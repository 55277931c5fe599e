#include "ir/ir.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/error.h"

namespace tessera::ir {
namespace {

// Calls visit(id, index) for every value that `node` reads, captures included, with the index of
// Graph::Use.
template <typename Visit>
void for_each_read(const Node& node, Visit visit) {
  std::size_t index = 0;
  for (const ValueId id : node.inputs) visit(id, index++);
  for (const auto& captured : node.captures) {
    for (const ValueId id : captured) visit(id, index++);
  }
}

// The position of a node on a cycle. `waiting` counts, for each position, the inputs that the sort
// could not satisfy; a node that waits has a producer that waits, so going back through those as
// often as there are nodes ends on a cycle.
std::size_t find_on_cycle(const Graph& graph, const std::map<NodeId, std::size_t>& positions,
                          const std::vector<std::size_t>& waiting) {
  const auto first =
      std::find_if(waiting.begin(), waiting.end(), [](std::size_t count) { return count > 0; });
  auto at = static_cast<std::size_t>(first - waiting.begin());
  for (std::size_t step = 0; step < waiting.size(); ++step) {
    std::size_t before = at;
    for_each_read(*graph.nodes()[at], [&](ValueId id, std::size_t) {
      if (before != at || id == kNoValue || graph.value(id).producer == kNoNode) return;
      const std::size_t candidate = positions.at(graph.value(id).producer);
      if (waiting[candidate] > 0) before = candidate;
    });
    at = before;
  }
  return at;
}

}  // namespace

ValueId Graph::add_value(std::string value_name, ValueType type) {
  const auto id = static_cast<ValueId>(values_.size());
  TESSERA_CHECK(id != kNoValue);
  Value& added = values_.emplace_back();
  added.id = id;
  added.name = std::move(value_name);
  added.type = std::move(type);
  return id;
}

ValueId Graph::add_input(std::string value_name, ValueType type) {
  const ValueId id = add_value(std::move(value_name), std::move(type));
  values_[id].kind = ValueKind::kInput;
  inputs.push_back(id);
  return id;
}

ValueId Graph::add_constant(std::string value_name, Tensor tensor) {
  const ValueId id =
      add_value(std::move(value_name), ValueType::tensor(tensor.dtype(), to_shape(tensor.dims())));
  values_[id].kind = ValueKind::kConstant;
  values_[id].constant = std::move(tensor);
  return id;
}

ValueId Graph::add_argument(std::string value_name, ValueType type, std::uint32_t block) {
  const ValueId id = add_value(std::move(value_name), std::move(type));
  values_[id].kind = ValueKind::kInput;
  values_[id].block = block;
  return id;
}

std::uint32_t Graph::block_of(ValueId id) const {
  const Node* node = producer(id);
  return node != nullptr ? node->block : values_[id].block;
}

std::string Graph::fresh_name(std::string_view stem) {
  const auto is_taken = [this](std::string_view candidate) {
    return std::any_of(values_.begin(), values_.end(),
                       [&](const Value& value) { return value.name == candidate; }) ||
           std::any_of(nodes_.begin(), nodes_.end(),
                       [&](const auto& node) { return node->name == candidate; });
  };
  auto counter = name_counters_.find(stem);
  if (counter == name_counters_.end()) {
    counter = name_counters_.emplace(stem, 0).first;
    if (!is_taken(stem)) return std::string(stem);
  }
  std::string candidate;
  do {
    candidate = std::string(stem) + "_" + std::to_string(++counter->second);
  } while (is_taken(candidate));
  return candidate;
}

Node& Graph::add_node(Node node, std::size_t position) {
  node.id = static_cast<NodeId>(nodes_by_id_.size());
  while (!node.inputs.empty() && node.inputs.back() == kNoValue) node.inputs.pop_back();
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kNoValue) continue;
    Value& output = value(node.outputs[i]);
    TESSERA_CHECK(output.kind == ValueKind::kNodeOutput && output.producer == kNoNode);
    output.producer = node.id;
    output.producer_output = static_cast<std::uint32_t>(i);
  }
  const auto where =
      nodes_.begin() + static_cast<std::ptrdiff_t>(std::min(position, nodes_.size()));
  Node& added = **nodes_.insert(where, std::make_unique<Node>(std::move(node)));
  nodes_by_id_.push_back(&added);
  return added;
}

void Graph::erase_node(NodeId id) {
  erase_nodes({id});
}

void Graph::erase_nodes(const std::set<NodeId>& ids) {
  std::vector<bool> doomed(values_.size(), false);
  for (const NodeId id : ids) {
    const Node* node = find_node(id);
    TESSERA_CHECK(node != nullptr);
    for (const ValueId output : node->outputs) {
      if (output != kNoValue) doomed[output] = true;
    }
  }
  for (const ValueId output : outputs) TESSERA_CHECK(!doomed[output]);
  for (const auto& node : nodes_) {
    if (ids.contains(node->id)) continue;
    for_each_read(*node,
                  [&](ValueId id, std::size_t) { TESSERA_CHECK(id == kNoValue || !doomed[id]); });
  }
  for (std::size_t id = 0; id < values_.size(); ++id) {
    if (doomed[id]) values_[id].producer = kNoNode;
  }
  for (const NodeId id : ids) nodes_by_id_[id] = nullptr;
  std::erase_if(nodes_, [&](const auto& node) { return ids.contains(node->id); });
}

Node* Graph::find_node(NodeId id) {
  return id < nodes_by_id_.size() ? nodes_by_id_[id] : nullptr;
}

const Node* Graph::find_node(NodeId id) const {
  return id < nodes_by_id_.size() ? nodes_by_id_[id] : nullptr;
}

std::size_t Graph::position_of(NodeId id) const {
  const auto found =
      std::find_if(nodes_.begin(), nodes_.end(), [id](const auto& node) { return node->id == id; });
  TESSERA_CHECK(found != nodes_.end());
  return static_cast<std::size_t>(found - nodes_.begin());
}

Node* Graph::producer(ValueId id) {
  return find_node(value(id).producer);
}

const Node* Graph::producer(ValueId id) const {
  return find_node(value(id).producer);
}

std::vector<Graph::Use> Graph::uses(ValueId id) const {
  std::vector<Use> found;
  for (const auto& node : nodes_) {
    for_each_read(*node, [&](ValueId read, std::size_t index) {
      if (read == id) found.push_back({node.get(), index});
    });
  }
  return found;
}

std::size_t Graph::use_count(ValueId id) const {
  std::size_t count = static_cast<std::size_t>(std::count(outputs.begin(), outputs.end(), id));
  for (const auto& node : nodes_) {
    for_each_read(*node, [&](ValueId read, std::size_t) { count += read == id ? 1 : 0; });
  }
  return count;
}

bool Graph::is_output(ValueId id) const {
  return std::find(outputs.begin(), outputs.end(), id) != outputs.end();
}

bool Graph::replace_uses(ValueId from, ValueId to) {
  TESSERA_CHECK(from != kNoValue && to != kNoValue);
  if (from == to) return true;
  if (is_output(from)) {
    if (value(to).kind != ValueKind::kNodeOutput || is_output(to)) return false;
    std::replace(outputs.begin(), outputs.end(), from, to);
    std::swap(value(from).name, value(to).name);
  }
  for (const auto& node : nodes_) {
    std::replace(node->inputs.begin(), node->inputs.end(), from, to);
    for (auto& captured : node->captures) std::replace(captured.begin(), captured.end(), from, to);
  }
  return true;
}

Status Graph::sort_topologically() {
  std::map<NodeId, std::size_t> positions;
  for (std::size_t i = 0; i < nodes_.size(); ++i) positions[nodes_[i]->id] = i;
  std::vector<std::vector<std::size_t>> readers(nodes_.size());
  std::vector<std::size_t> waiting(nodes_.size(), 0);
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    for_each_read(*nodes_[i], [&](ValueId id, std::size_t) {
      if (id == kNoValue || value(id).producer == kNoNode) return;
      readers[positions.at(value(id).producer)].push_back(i);
      ++waiting[i];
    });
  }
  std::set<std::size_t> ready;  // the smallest old position first: a stable order
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
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
  if (order.size() != nodes_.size()) {
    const Node& node = *nodes_[find_on_cycle(*this, positions, waiting)];
    return fail(ErrorCode::kInvalidArgument,
                "node '" + node.name + "' (" + node.op->qualified_name() +
                    ") stands on a cycle: it reads, through others, its own output");
  }
  std::vector<std::unique_ptr<Node>> sorted;
  sorted.reserve(nodes_.size());
  for (const std::size_t position : order) sorted.push_back(std::move(nodes_[position]));
  nodes_ = std::move(sorted);
  return {};
}

std::vector<OriginId> merge_origins(const std::vector<OriginId>& a,
                                    const std::vector<OriginId>& b) {
  std::vector<OriginId> merged;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(merged));
  return merged;
}

}  // namespace tessera::ir
