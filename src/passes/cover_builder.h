#pragma once

// What proposing covers asks about a graph, and the list that it fills. Internal to passes/.

#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "ir/cover.h"
#include "ir/use_index.h"

namespace tessera::passes {

// A graph that does not change, with its readers and positions at hand.
class CoverGraph {
 public:
  explicit CoverGraph(const ir::Graph& graph);

  [[nodiscard]] const ir::Graph& graph() const { return graph_; }
  [[nodiscard]] const ir::UseIndex& uses() const { return uses_; }
  [[nodiscard]] std::size_t position(ir::NodeId id) const { return positions_.at(id); }

  // Output 0 is the only one, a float tensor of known shape.
  [[nodiscard]] bool has_float_result(const ir::Node& node) const;
  // The same, and the operator is a scalar function of its operands.
  [[nodiscard]] bool is_elementwise_float(const ir::Node& node) const;
  [[nodiscard]] bool is_made_by(ir::ValueId id, const std::vector<ir::NodeId>& nodes) const;
  // All readers are among the nodes, and it is no output of the graph.
  [[nodiscard]] bool is_read_only_by(ir::ValueId id, const std::vector<ir::NodeId>& nodes) const;
  // An input, a constant, or made by a node that stands before `node`.
  [[nodiscard]] bool is_there_before(ir::ValueId id, ir::NodeId node) const;
  [[nodiscard]] bool is_scalar(ir::ValueId constant) const;
  // A constant that broadcasts along all axes of `result` but `axis`, where it has its full size.
  [[nodiscard]] bool is_by_axis(ir::ValueId constant, ir::ValueId result, std::size_t axis) const;

 private:
  const ir::Graph& graph_;
  ir::UseIndex uses_;
  std::map<ir::NodeId, std::size_t> positions_;
};

class CoverList {
 public:
  explicit CoverList(const CoverGraph& graph) : graph_(graph) {}

  // Adds a cover of at least two nodes of one block, unless one of the same nodes is there. `nodes`
  // ends with the node that makes the result.
  void add(std::string_view pattern, const std::vector<ir::NodeId>& nodes, bool has_anchor);
  // The same for nodes that are one operator together, beside a cover of them as they are. `nodes`
  // in execution order.
  void add_assembled(std::string_view pattern, const std::vector<ir::NodeId>& nodes,
                     const std::vector<ir::ValueId>& outputs,
                     std::vector<std::shared_ptr<const ir::Node>> assembled);
  [[nodiscard]] const CoverGraph& graph() const { return graph_; }
  std::vector<ir::Cover> take() { return std::move(covers_); }

 private:
  const CoverGraph& graph_;
  std::set<std::vector<ir::NodeId>> seen_;  // of covers without an operator of their own
  std::vector<ir::Cover> covers_;
};

}  // namespace tessera::passes
