#include "ir/late_sizes.h"

#include <algorithm>

namespace tessera::ir {
namespace {

using Symbols = std::set<std::string, std::less<>>;

bool is_plain(const ValueType& type) {
  return type.is_tensor() && type.shape && type.dtype != DType::kString;
}

Symbols symbols_of(const ValueType& type) {
  Symbols symbols;
  if (type.is_tensor() && type.shape)
    for (const Dim& size : *type.shape) size.collect_symbols(symbols);
  return symbols;
}

// Sizes that binding a value tells: those that are a symbol and nothing else.
void bind(const ValueType& type, Symbols& known) {
  if (!type.is_tensor() || !type.shape) return;
  for (const Dim& size : *type.shape)
    if (const auto symbol = size.as_symbol()) known.insert(*symbol);
}

class Finder {
 public:
  explicit Finder(const Graph& graph)
      : graph_(graph),
        known_(std::max<std::size_t>(graph.blocks.size(), 1)),
        entry_(known_.size()) {
    for (const ValueId id : graph.inputs) add_argument(id, 0);
  }

  LateSizes run() {
    open(0);
    for (const auto& node : graph_.nodes()) {
      open(node->block);
      add_node(*node);
    }
    late_.allocated = late_.values;
    for (const Block& block : graph_.blocks)
      late_.allocated.insert(block.results.begin(), block.results.end());
    return std::move(late_);
  }

 private:
  void add_argument(ValueId id, std::uint32_t block) {
    const ValueType& type = graph_.value(id).type;
    bind(type, entry_[block]);
    if (!is_plain(type)) late_.values.insert(id);
  }
  // A block starts when its first node comes: what is known around it then is known inside.
  void open(std::uint32_t block) {
    if (opened_.contains(block)) return;
    opened_.insert(block);
    if (block != 0) {
      open(graph_.blocks[block].parent);
      const Symbols& around = known_[graph_.blocks[block].parent];
      entry_[block].insert(around.begin(), around.end());
      for (const ValueId id : graph_.blocks[block].arguments) add_argument(id, block);
    }
    known_[block] = entry_[block];
  }
  void add_node(const Node& node) {
    Symbols& known = known_[node.block];
    const bool is_control = node.op->kernel == nullptr;
    bool decides = false;
    for (const ValueId id : node.inputs)
      decides = decides || (id != kNoValue && !is_plain(graph_.value(id).type));
    for (const ValueId id : node.outputs) {
      if (id == kNoValue) continue;
      const ValueType& type = graph_.value(id).type;
      const Symbols symbols = symbols_of(type);
      decides = decides || !is_plain(type) || !std::ranges::includes(known, symbols);
      if (is_control || !is_plain(type) || !std::ranges::includes(entry_[node.block], symbols))
        late_.values.insert(id);
    }
    decides = decides || node.op->data_dependent_shape;
    if (decides && !is_control) late_.nodes.insert(node.id);
    for (const ValueId id : node.outputs) {
      if (id == kNoValue) continue;
      if (decides) late_.values.insert(id);
      bind(graph_.value(id).type, known);
    }
  }

  const Graph& graph_;
  std::vector<Symbols> known_;  // per block: so far
  std::vector<Symbols> entry_;  // per block: when it starts
  std::set<std::uint32_t> opened_;
  LateSizes late_;
};

}  // namespace

LateSizes find_late_sizes(const Graph& graph) {
  return Finder(graph).run();
}

}  // namespace tessera::ir
