#include "passes/propose_covers.h"

#include <algorithm>
#include <map>

#include "ops/scalar_function.h"
#include "passes/cover_builder.h"
#include "passes/qdq_covers.h"
#include "passes/reassemble/reassemble.h"
#include "passes/rewrite.h"

namespace tessera::passes {
namespace {

// Chains that branch must close again within so many nodes (HardSwish in pieces takes 4).
constexpr std::size_t kMaxOpenNodes = 6;
constexpr std::size_t kMaxEpilogueNodes = 16;
constexpr std::size_t kMaxGroupNodes = 64;

bool is_anchor(const ir::Node& node) {
  return is_op(node, "Conv") || is_op(node, "ConvTranspose") || is_op(node, "Gemm") ||
         is_op(node, "MatMul");
}

// ---- Anchors with epilogues ---------------------------------------------------------------------

// Follows the result of one anchor. `open` holds the values that are made inside and still have
// readers outside.
class EpilogueChain {
 public:
  EpilogueChain(const CoverGraph& graph, const ir::Node& anchor)
      : graph_(graph), anchor_(anchor), nodes_{anchor.id} {
    open_ = {anchor.outputs.at(0)};
  }

  // Prefixes of the chain that end in one value, without the anchor alone.
  std::vector<std::vector<ir::NodeId>> prefixes(std::vector<Note>& notes) {
    std::vector<std::vector<ir::NodeId>> found;
    std::size_t since_prefix = 0;
    while (nodes_.size() <= kMaxEpilogueNodes && since_prefix < kMaxOpenNodes &&
           !any_open_is_output()) {
      const ir::Node* next = next_reader();
      if (next == nullptr) break;
      const std::string reason = refusal(*next);
      if (!reason.empty()) {
        if (is_elementwise(*next)) add_note(*next, reason, notes);
        break;
      }
      nodes_.push_back(next->id);
      open_.push_back(next->outputs[0]);
      std::erase_if(open_, [&](ir::ValueId id) {
        return graph_.is_read_only_by(id, nodes_) && id != next->outputs[0];
      });
      ++since_prefix;
      if (open_.size() != 1) continue;
      found.push_back(nodes_);
      since_prefix = 0;
    }
    return found;
  }

 private:
  static bool is_elementwise(const ir::Node& node) {
    return ops::scalar_function(*node.op, node.attributes).has_value();
  }

  [[nodiscard]] bool any_open_is_output() const {
    return std::any_of(open_.begin(), open_.end(),
                       [&](ir::ValueId id) { return graph_.uses().is_output(id); });
  }

  // The first node in execution order that reads an open value and is not inside.
  [[nodiscard]] const ir::Node* next_reader() const {
    const ir::Node* first = nullptr;
    for (const ir::ValueId id : open_) {
      for (const ir::Graph::Use& use : graph_.uses().uses(id)) {
        if (std::find(nodes_.begin(), nodes_.end(), use.node->id) != nodes_.end()) continue;
        if (first == nullptr || graph_.position(use.node->id) < graph_.position(first->id))
          first = use.node;
      }
    }
    return first;
  }

  // Why `node` cannot join; empty where it can.
  [[nodiscard]] std::string refusal(const ir::Node& node) const {
    if (node.block != anchor_.block) return "it is in another body";
    if (!graph_.is_elementwise_float(node))
      return "is no elementwise float operator with one result";
    if (!same_type(graph_.graph(), node.outputs[0], anchor_.outputs[0]))
      return "its result has another shape or dtype than the anchor's";
    for (const ir::ValueId id : node.inputs) {
      if (id == ir::kNoValue || graph_.is_made_by(id, nodes_)) continue;
      const std::string& name = graph_.graph().value(id).name;
      if (constant_of(graph_.graph(), id) != nullptr) {
        if (!graph_.is_scalar(id) && !graph_.is_by_axis(id, anchor_.outputs[0], channel_axis())) {
          return "constant '" + name + "' has neither one element nor one for each channel";
        }
        continue;
      }
      if (!is_op(node, "Add") && !is_op(node, "Sub") && !is_op(node, "Mul"))
        return "only Add, Sub and Mul may read a second tensor, '" + name + "'";
      if (!same_type(graph_.graph(), id, anchor_.outputs[0]))
        return "operand '" + name + "' has another shape or dtype than the anchor's result";
      if (!graph_.is_there_before(id, anchor_.id))
        return "operand '" + name + "' is not there before the anchor";
    }
    return "";
  }

  [[nodiscard]] std::size_t channel_axis() const {
    const std::size_t rank = graph_.graph().value(anchor_.outputs[0]).type.shape->size();
    return is_op(anchor_, "Conv") || is_op(anchor_, "ConvTranspose") ? 1 : rank - 1;
  }

  void add_note(const ir::Node& node, const std::string& reason, std::vector<Note>& notes) const {
    notes.push_back({"anchor_epilogue",
                     {anchor_.name, node.name},
                     "'" + node.name + "' ends the epilogue: " + reason});
  }

  const CoverGraph& graph_;
  const ir::Node& anchor_;
  std::vector<ir::NodeId> nodes_;
  std::vector<ir::ValueId> open_;
};

// ---- Elementwise groups -------------------------------------------------------------------------

// Elementwise, and its operands are of its result's shape, or constants of one element or one for
// each channel (axis 1, or the last one).
bool can_group(const CoverGraph& graph, const ir::Node& node) {
  if (!graph.is_elementwise_float(node)) return false;
  const ir::ValueId result = node.outputs[0];
  const std::size_t rank = graph.graph().value(result).type.shape->size();
  return std::all_of(node.inputs.begin(), node.inputs.end(), [&](ir::ValueId id) {
    if (id == ir::kNoValue || same_type(graph.graph(), id, result)) return true;
    if (constant_of(graph.graph(), id) == nullptr) return false;
    return graph.is_scalar(id) || (rank > 1 && (graph.is_by_axis(id, result, 1) ||
                                                graph.is_by_axis(id, result, rank - 1)));
  });
}

// All nodes that only feed `sink`, by way of nodes of the group; never one of `excluded`. In
// execution order.
std::vector<ir::NodeId> group_before(const CoverGraph& graph, const ir::Node& sink,
                                     const std::set<ir::NodeId>& excluded) {
  std::map<std::size_t, ir::NodeId> group = {{graph.position(sink.id), sink.id}};
  std::vector<ir::NodeId> members = {sink.id};
  // From the sink backwards: when a node's turn comes, all its readers had theirs.
  for (auto at = group.rbegin(); at != group.rend() && members.size() < kMaxGroupNodes; ++at) {
    for (const ir::ValueId id : graph.graph().find_node(at->second)->inputs) {
      const ir::Node* producer = id == ir::kNoValue ? nullptr : graph.graph().producer(id);
      if (producer == nullptr || producer->block != sink.block || excluded.contains(producer->id) ||
          group.contains(graph.position(producer->id)))
        continue;
      if (!can_group(graph, *producer) || !same_type(graph.graph(), id, sink.outputs[0])) continue;
      if (graph.uses().is_output(id) || !graph.is_read_only_by(id, members)) continue;
      group.emplace(graph.position(producer->id), producer->id);
      members.push_back(producer->id);
    }
  }
  std::vector<ir::NodeId> sorted;
  for (const auto& [position, id] : group) sorted.push_back(id);
  return sorted;
}

// The groups that no larger one holds, from the last sink to the first.
std::vector<std::vector<ir::NodeId>> maximal_groups(const CoverGraph& graph) {
  std::vector<std::vector<ir::NodeId>> groups;
  std::set<ir::NodeId> taken;
  const auto& nodes = graph.graph().nodes();
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    if (taken.contains((*node)->id) || !can_group(graph, **node)) continue;
    std::vector<ir::NodeId> group = group_before(graph, **node, {});
    taken.insert(group.begin(), group.end());
    if (group.size() > 1) groups.push_back(std::move(group));
  }
  std::reverse(groups.begin(), groups.end());
  return groups;
}

// Epilogues by the nodes that they hold.
class Epilogues {
 public:
  void add(const std::vector<ir::NodeId>& nodes) {
    for (const ir::NodeId id : nodes) by_node_[id].push_back(all_.size());
    all_.emplace_back(nodes.begin(), nodes.end());
  }

  // Those that take some nodes of the group, but not its last one; in the order in which they came.
  [[nodiscard]] std::vector<const std::set<ir::NodeId>*> beside(
      const std::vector<ir::NodeId>& group) const {
    std::set<std::size_t> found;
    for (const ir::NodeId id : group) {
      const auto holding = by_node_.find(id);
      if (holding != by_node_.end()) found.insert(holding->second.begin(), holding->second.end());
    }
    std::vector<const std::set<ir::NodeId>*> epilogues;
    for (const std::size_t index : found) {
      if (!all_[index].contains(group.back())) epilogues.push_back(&all_[index]);
    }
    return epilogues;
  }

 private:
  std::vector<std::set<ir::NodeId>> all_;
  std::map<ir::NodeId, std::vector<std::size_t>> by_node_;
};

// An epilogue that ends inside of an operator in pieces misses nothing.
void drop_notes_inside(const ir::Graph& graph, const std::vector<ir::Cover>& covers,
                       std::vector<Note>& notes) {
  std::map<std::string, std::set<std::uint32_t>> covers_of;
  for (const ir::Cover& cover : covers) {
    if (cover.assembled.empty()) continue;
    for (const ir::NodeId id : cover.nodes) covers_of[graph.find_node(id)->name].insert(cover.id);
  }
  std::erase_if(notes, [&](const Note& note) {
    if (note.pattern != "anchor_epilogue") return false;
    const auto& anchor = covers_of[note.nodes.front()];
    const auto& end = covers_of[note.nodes.back()];
    return std::any_of(anchor.begin(), anchor.end(),
                       [&](std::uint32_t id) { return end.contains(id); });
  });
}

}  // namespace

std::vector<ir::Cover> propose_covers(ir::Module& module, ir::Graph& graph,
                                      std::vector<Note>& notes) {
  const CoverGraph view(graph);
  CoverList covers(view);
  reassemble_covers(module, graph, covers, notes);
  Epilogues epilogues;
  for (const auto& node : graph.nodes()) {
    if (!is_anchor(*node) || !view.has_float_result(*node)) continue;
    for (const auto& prefix : EpilogueChain(view, *node).prefixes(notes)) {
      covers.add("anchor_epilogue", prefix, true);
      epilogues.add(prefix);
    }
  }
  propose_qdq_covers(view, covers, notes);
  for (const auto& group : maximal_groups(view)) {
    covers.add("elementwise_group", group, false);
    const ir::Node& sink = *graph.find_node(group.back());
    for (const std::set<ir::NodeId>* epilogue : epilogues.beside(group))
      covers.add("elementwise_group", group_before(view, sink, *epilogue), false);
  }
  std::vector<ir::Cover> proposed = covers.take();
  drop_notes_inside(graph, proposed, notes);
  return proposed;
}

}  // namespace tessera::passes
