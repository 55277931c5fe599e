#include "passes/qdq_covers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ops/scalar_function.h"
#include "passes/qdq_groups.h"
#include "passes/rewrite.h"

namespace tessera::passes {
namespace {

constexpr std::size_t kMaxNodes = 24;
constexpr std::size_t kMaxEpilogue = 8;

constexpr std::array kMovers = {
    "MaxPool", "AveragePool",  "GlobalAveragePool", "GlobalMaxPool", "Reshape", "Flatten",
    "Squeeze", "Unsqueeze",    "Transpose",         "Slice",         "Concat",  "Expand",
    "Tile",    "DepthToSpace", "SpaceToDepth"};

bool is_anchor(const ir::Node& node) {
  return is_op(node, "Conv") || is_op(node, "Gemm") || is_op(node, "MatMul");
}
bool is_mover(const ir::Node& node) {
  return std::any_of(kMovers.begin(), kMovers.end(),
                     [&](const char* name) { return is_op(node, name); });
}

// The nodes of one group, collected from the result backwards.
class Group {
 public:
  explicit Group(const CoverGraph& view) : view_(view), graph_(view.graph()) {}

  // False, and reason() says why, where `sink` ends no group.
  bool collect(const ir::Node& sink) {
    if (is_quantize(&sink)) {
      if (!has_constant_parameters(sink)) return false;
      nodes_.push_back(sink.id);
      pending_.push_back(sink.inputs[0]);
    } else if (!collect_node(sink)) {
      return false;
    }
    if (!collect_pending()) return false;
    if (quantised_ == 0) return refuse("no operand is dequantised at run time");
    std::sort(nodes_.begin(), nodes_.end(),
              [&](ir::NodeId a, ir::NodeId b) { return view_.position(a) < view_.position(b); });
    return nodes_.size() > 1;
  }

  [[nodiscard]] const std::vector<ir::NodeId>& nodes() const { return nodes_; }
  [[nodiscard]] const std::string& reason() const { return reason_; }
  [[nodiscard]] bool has_anchor() const { return anchors_ > 0; }

 private:
  bool refuse(std::string reason) {
    if (reason_.empty()) reason_ = std::move(reason);
    return false;
  }

  bool has_constant_parameters(const ir::Node& node) {
    for (std::size_t i = 1; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == ir::kNoValue || constant_of(graph_, node.inputs[i]) != nullptr)
        continue;
      return refuse(
          fmt::format("{} of '{}' is not constant", i == 1 ? "scale" : "zero point", node.name));
    }
    return true;
  }

  // Values whose readers are all inside, until none is left.
  bool collect_pending() {
    while (!pending_.empty()) {
      const auto ready = std::find_if(pending_.begin(), pending_.end(), [&](ir::ValueId id) {
        return view_.is_read_only_by(id, nodes_);
      });
      if (ready == pending_.end())
        return refuse(
            fmt::format("'{}' is read outside of the group", graph_.value(pending_.front()).name));
      const ir::ValueId id = *ready;
      pending_.erase(ready);
      if (!collect_value(id)) return false;
    }
    return true;
  }

  bool collect_value(ir::ValueId id) {
    const ir::Node* producer = graph_.producer(id);
    if (producer == nullptr)
      return refuse(fmt::format("operand '{}' is not dequantised", graph_.value(id).name));
    if (std::find(nodes_.begin(), nodes_.end(), producer->id) != nodes_.end()) return true;
    if (nodes_.size() == kMaxNodes) return refuse("the group has too many nodes");
    if (!is_dequantize(producer)) return collect_node(*producer);
    if (!has_constant_parameters(*producer)) return false;
    nodes_.push_back(producer->id);
    if (constant_of(graph_, producer->inputs[0]) == nullptr) ++quantised_;
    return true;
  }

  bool collect_node(const ir::Node& node) {
    const bool elementwise = view_.is_elementwise_float(node);
    const bool anchor = is_anchor(node);
    if (!view_.has_float_result(node) || (!elementwise && !anchor && !is_mover(node)))
      return refuse(fmt::format("{} '{}' is no operator of a quantised group",
                                node.op->qualified_name(), node.name));
    // Whatever is not elementwise stands alone on its operands.
    if (!elementwise && ++whole_ > 1)
      return refuse(
          fmt::format("'{}' follows an operator that needs quantised operands itself", node.name));
    if (anchor) ++anchors_;
    nodes_.push_back(node.id);
    if (is_mover(node) && !is_op(node, "Concat")) return collect_operand(node, 0);
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      if (!collect_operand(node, i)) return false;
    return true;
  }

  bool collect_operand(const ir::Node& node, std::size_t index) {
    const ir::ValueId id = node.inputs[index];
    if (id == ir::kNoValue) return true;
    const bool constant = constant_of(graph_, id) != nullptr;
    const bool bias = is_anchor(node) && index == 2;
    if (constant && (bias || view_.is_elementwise_float(node))) return true;
    const ir::Node* producer = graph_.producer(id);
    if (!view_.is_elementwise_float(node) && !is_dequantize(producer))
      return refuse(
          fmt::format("operand '{}' of '{}' is not dequantised", graph_.value(id).name, node.name));
    pending_.push_back(id);
    return true;
  }

  const CoverGraph& view_;
  const ir::Graph& graph_;
  std::vector<ir::NodeId> nodes_;
  std::vector<ir::ValueId> pending_;  // read inside, their producers not looked at yet
  std::string reason_;
  std::size_t quantised_ = 0;  // operands that come quantised at run time
  std::size_t whole_ = 0;      // nodes that are not elementwise
  std::size_t anchors_ = 0;
};

bool reads_dequantised(const ir::Graph& graph, const ir::Node& node) {
  return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ir::ValueId id) {
    return id != ir::kNoValue && is_dequantize(graph.producer(id));
  });
}

// The last node that reads the result, which could end a longer group; null where there is none.
const ir::Node* follower(const CoverGraph& view, const ir::Node& node) {
  const auto readers = view.uses().uses(node.outputs[0]);
  if (is_quantize(&node) || readers.empty() || view.uses().is_output(node.outputs[0]))
    return nullptr;
  const ir::Node* reader = readers.back().node;
  return is_quantize(reader) || view.is_elementwise_float(*reader) ? reader : nullptr;
}

// From the anchor on: up to QuantizeLinear, or else every prefix.
void propose_from_anchor(const CoverGraph& view, const ir::Node& anchor, CoverList& covers,
                         std::vector<Note>& notes) {
  std::vector<std::vector<ir::NodeId>> prefixes;
  std::string reason;
  const ir::Node* sink = &anchor;
  for (std::size_t i = 0; sink != nullptr && i < kMaxEpilogue; ++i, sink = follower(view, *sink)) {
    Group group(view);
    if (!group.collect(*sink)) {
      if (reason.empty()) reason = group.reason();
      if (sink == &anchor) break;
      continue;
    }
    if (is_quantize(sink)) prefixes.clear();
    prefixes.push_back(group.nodes());
  }
  for (const auto& nodes : prefixes)
    covers.add("qdq", nodes, false);  // the anchor is not the first
  if (!reason.empty() && reads_dequantised(view.graph(), anchor))
    notes.push_back({"qdq", {anchor.name}, std::move(reason)});
}

}  // namespace

void propose_qdq_covers(const CoverGraph& view, CoverList& covers, std::vector<Note>& notes) {
  for (const auto& node : view.graph().nodes()) {
    if (is_anchor(*node) && view.has_float_result(*node)) {
      if (reads_dequantised(view.graph(), *node)) propose_from_anchor(view, *node, covers, notes);
      continue;
    }
    if (!is_quantize(node.get())) continue;
    Group group(view);
    const ir::Node* producer = view.graph().producer(node->inputs[0]);
    if (producer == nullptr || is_dequantize(producer)) continue;
    if (group.collect(*node)) {
      if (!group.has_anchor()) covers.add("qdq", group.nodes(), false);
    } else if (!is_anchor(*producer) && reads_dequantised(view.graph(), *producer)) {
      notes.push_back({"qdq", {producer->name, node->name}, group.reason()});
    }
  }
}

}  // namespace tessera::passes
