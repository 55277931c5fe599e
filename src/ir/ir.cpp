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
  take_name(value_name);
  Value& added = values_.emplace_back();
  added.id = id;
  added.name = std::move(value_name);
  added.type = std::move(type);
  readers_.emplace_back();
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

// ---- Names --------------------------------------------------------------------------------------

void Graph::count_names() {
  names_.emplace();
  for (const Value& value : values_) ++(*names_)[value.name];
  for (const auto& node : nodes_) ++(*names_)[node->name];
}

void Graph::take_name(const std::string& taken) {
  if (names_) ++(*names_)[taken];
}

void Graph::free_name(const std::string& freed) {
  if (!names_) return;
  const auto entry = names_->find(freed);
  if (entry != names_->end() && --entry->second == 0) names_->erase(entry);
}

void Graph::rename_value(ValueId id, std::string value_name) {
  free_name(value(id).name);
  take_name(value_name);
  value(id).name = std::move(value_name);
}

std::string Graph::fresh_name(std::string_view stem) {
  if (!names_) count_names();
  auto counter = name_counters_.find(stem);
  std::string candidate(stem);
  if (counter == name_counters_.end()) {
    counter = name_counters_.emplace(stem, 0).first;
    if (!names_->contains(candidate)) return candidate;
  }
  do {
    candidate = std::string(stem) + "_" + std::to_string(++counter->second);
  } while (names_->contains(candidate));
  return candidate;
}

// ---- Nodes and their order ----------------------------------------------------------------------

namespace {
constexpr std::uint64_t kRankGap = std::uint64_t{1} << 32;  // room for nodes that come between
}

void Graph::rank_all() {
  for (std::size_t i = 0; i < nodes_.size(); ++i) ranks_[nodes_[i]->id] = (i + 1) * kRankGap;
}

void Graph::give_rank(NodeId id, std::size_t position) {
  const std::uint64_t before = position == 0 ? 0 : ranks_[nodes_[position - 1]->id];
  if (position + 1 == nodes_.size()) {
    ranks_[id] = before + kRankGap;
    return;
  }
  const std::uint64_t after = ranks_[nodes_[position + 1]->id];
  ranks_[id] = before + (after - before) / 2;
  if (ranks_[id] == before) rank_all();
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
  position = std::min(position, nodes_.size());
  const auto where = nodes_.begin() + static_cast<std::ptrdiff_t>(position);
  Node& added = **nodes_.insert(where, std::make_unique<Node>(std::move(node)));
  nodes_by_id_.push_back(&added);
  ranks_.push_back(0);
  give_rank(added.id, position);
  take_name(added.name);
  add_reads(added);
  return added;
}

void Graph::erase_node(NodeId id) {
  erase_nodes({id});
}

void Graph::erase_nodes(const std::set<NodeId>& ids) {
  for (const NodeId id : ids) {
    const Node* node = find_node(id);
    TESSERA_CHECK(node != nullptr);
    drop_reads(*node);
    free_name(node->name);
  }
  for (const NodeId id : ids) {
    for (const ValueId output : find_node(id)->outputs) {
      if (output == kNoValue) continue;
      TESSERA_CHECK(readers_[output].read_count == 0 && !is_output(output));
      value(output).producer = kNoNode;
    }
  }
  remove_from_order(ids);
  for (const NodeId id : ids) nodes_by_id_[id] = nullptr;
}

void Graph::remove_from_order(const std::set<NodeId>& ids) {
  constexpr std::size_t kFew = 8;  // finding and closing one gap costs less than a scan of all
  if (ids.size() > kFew) {
    std::erase_if(nodes_, [&](const auto& node) { return ids.contains(node->id); });
    return;
  }
  for (const NodeId id : ids)
    nodes_.erase(nodes_.begin() + static_cast<std::ptrdiff_t>(position_of(id)));
}

Node* Graph::find_node(NodeId id) {
  return id < nodes_by_id_.size() ? nodes_by_id_[id] : nullptr;
}

const Node* Graph::find_node(NodeId id) const {
  return id < nodes_by_id_.size() ? nodes_by_id_[id] : nullptr;
}

std::size_t Graph::position_of(NodeId id) const {
  TESSERA_CHECK(find_node(id) != nullptr);
  const auto found = std::lower_bound(
      nodes_.begin(), nodes_.end(), ranks_[id],
      [&](const auto& node, std::uint64_t rank) { return ranks_[node->id] < rank; });
  return static_cast<std::size_t>(found - nodes_.begin());
}

Node* Graph::producer(ValueId id) {
  return find_node(value(id).producer);
}

const Node* Graph::producer(ValueId id) const {
  return find_node(value(id).producer);
}

// ---- Readers ------------------------------------------------------------------------------------

void Graph::add_read(ValueId id, NodeId reader) {
  if (id == kNoValue) return;
  readers_[id].nodes.push_back(reader);
  ++readers_[id].read_count;
}

void Graph::drop_read(ValueId id) {
  if (id == kNoValue) return;
  constexpr std::size_t kSpare = 8;
  Readers& readers = readers_[id];
  --readers.read_count;
  if (readers.nodes.size() > 2 * readers.read_count + kSpare) forget_old_readers(id);
}

void Graph::add_reads(const Node& node) {
  for_each_read(node, [&](ValueId id, std::size_t) { add_read(id, node.id); });
}

void Graph::drop_reads(const Node& node) {
  for_each_read(node, [&](ValueId id, std::size_t) { drop_read(id); });
}

// Each reader once, in the order of execution.
std::vector<NodeId> Graph::readers_of(ValueId id) const {
  std::vector<NodeId> readers = readers_[id].nodes;
  std::erase_if(readers, [&](NodeId reader) {
    bool reads = false;
    if (const Node* node = find_node(reader))
      for_each_read(*node, [&](ValueId read, std::size_t) { reads = reads || read == id; });
    return !reads;
  });
  std::sort(readers.begin(), readers.end(),
            [&](NodeId a, NodeId b) { return ranks_[a] < ranks_[b]; });
  readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
  return readers;
}

void Graph::forget_old_readers(ValueId id) {
  readers_[id].nodes = readers_of(id);
}

std::vector<Graph::Use> Graph::uses(ValueId id) const {
  std::vector<Use> found;
  for (const NodeId reader : readers_of(id)) {
    Node* node = nodes_by_id_[reader];
    for_each_read(*node, [&](ValueId read, std::size_t index) {
      if (read == id) found.push_back({node, index});
    });
  }
  return found;
}

std::size_t Graph::use_count(ValueId id) const {
  return readers_[id].read_count +
         static_cast<std::size_t>(std::count(outputs.begin(), outputs.end(), id));
}

void Graph::set_input(Node& node, std::size_t index, ValueId to) {
  const ValueId from = std::exchange(node.inputs.at(index), to);
  drop_read(from);
  add_read(to, node.id);
}

void Graph::set_inputs(Node& node, std::vector<ValueId> to) {
  while (!to.empty() && to.back() == kNoValue) to.pop_back();
  const std::vector<ValueId> from = std::exchange(node.inputs, std::move(to));
  for (const ValueId id : from) drop_read(id);
  for (const ValueId id : node.inputs) add_read(id, node.id);
}

void Graph::add_capture(Node& node, std::size_t body, ValueId id) {
  node.captures.at(body).push_back(id);
  add_read(id, node.id);
}

void Graph::erase_capture(Node& node, std::size_t body, std::size_t index) {
  auto& captured = node.captures.at(body);
  const ValueId from = captured.at(index);
  captured.erase(captured.begin() + static_cast<std::ptrdiff_t>(index));
  drop_read(from);
}

bool Graph::knows_its_reads() const {
  std::vector<std::size_t> counts(values_.size(), 0);
  bool known = true;
  for (const auto& node : nodes_) {
    for_each_read(*node, [&](ValueId id, std::size_t) {
      if (id == kNoValue) return;
      ++counts[id];
    });
  }
  for (std::size_t id = 0; id < counts.size(); ++id)
    known = known && counts[id] == readers_[id].read_count;
  return known;
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
  for (const NodeId reader : readers_of(from)) {
    Node& node = *nodes_by_id_[reader];
    drop_reads(node);
    std::replace(node.inputs.begin(), node.inputs.end(), from, to);
    for (auto& captured : node.captures) std::replace(captured.begin(), captured.end(), from, to);
    add_reads(node);
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
  rank_all();
  return {};
}

std::vector<OriginId> merge_origins(const std::vector<OriginId>& a,
                                    const std::vector<OriginId>& b) {
  std::vector<OriginId> merged;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(merged));
  return merged;
}

}  // namespace tessera::ir
