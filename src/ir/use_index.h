#pragma once

// Who reads each value: the answer of Graph::uses for all values, from one scan.

#include <span>
#include <vector>

#include "ir/ir.h"

namespace tessera::ir {

// A snapshot: it does not follow later changes of the graph. Values added after it have no uses
// here.
class UseIndex {
 public:
  explicit UseIndex(const Graph& graph);

  // Readers in execution order, as Graph::uses gives them.
  [[nodiscard]] std::span<const Graph::Use> uses(ValueId id) const;
  // Readers plus one for each graph output that the value is.
  [[nodiscard]] std::size_t use_count(ValueId id) const {
    return uses(id).size() + output_count(id);
  }
  [[nodiscard]] bool is_output(ValueId id) const { return output_count(id) > 0; }
  // The node that alone reads the value, as one input, where the value is no graph output; else
  // null.
  [[nodiscard]] Node* sole_reader(ValueId id) const;

 private:
  [[nodiscard]] std::size_t output_count(ValueId id) const {
    return id < output_counts_.size() ? output_counts_[id] : 0;
  }
  std::vector<std::vector<Graph::Use>> uses_;
  std::vector<std::size_t> output_counts_;
};

}  // namespace tessera::ir
