#include "ir/use_index.h"

namespace tessera::ir {

UseIndex::UseIndex(const Graph& graph)
    : uses_(graph.value_count()), output_counts_(graph.value_count(), 0) {
  for (const auto& node : graph.nodes()) {
    std::size_t index = 0;
    const auto add = [&](ValueId id) {
      if (id != kNoValue) uses_[id].push_back({node.get(), index});
      ++index;
    };
    for (const ValueId id : node->inputs) add(id);
    for (const auto& captured : node->captures) {
      for (const ValueId id : captured) add(id);
    }
  }
  for (const ValueId id : graph.outputs) ++output_counts_[id];
}

std::span<const Graph::Use> UseIndex::uses(ValueId id) const {
  if (id >= uses_.size()) return {};
  return uses_[id];
}

Node* UseIndex::sole_reader(ValueId id) const {
  const auto readers = uses(id);
  return readers.size() == 1 && !is_output(id) ? readers.front().node : nullptr;
}

}  // namespace tessera::ir
