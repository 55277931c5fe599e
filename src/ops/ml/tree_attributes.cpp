#include "ops/ml/tree_attributes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>

#include "ops/infer_util.h"
#include "ops/nn/reals.h"

namespace tessera::ops::ml {
namespace {

// What names a node.
struct NodeId {
  std::int64_t tree = 0;
  std::int64_t node = 0;
  friend auto operator<=>(const NodeId&, const NodeId&) = default;
};

// From the names of nodes to their places.
class NodeIndex {
 public:
  explicit NodeIndex(const std::vector<NodeId>& ids) {
    entries_.reserve(ids.size());
    for (std::uint32_t i = 0; i < ids.size(); ++i) entries_.push_back({ids[i], i});
    const auto by_id = [](const Entry& a, const Entry& b) { return a.id < b.id; };
    if (!std::is_sorted(entries_.begin(), entries_.end(), by_id))
      std::sort(entries_.begin(), entries_.end(), by_id);
  }

  // A node that stands twice, or null.
  [[nodiscard]] const NodeId* twice() const {
    const auto found =
        std::adjacent_find(entries_.begin(), entries_.end(),
                           [](const Entry& a, const Entry& b) { return a.id == b.id; });
    return found == entries_.end() ? nullptr : &found->id;
  }

  Result<std::uint32_t> find(const NodeId& id, const char* attribute) {
    if (id.tree != tree_) enter(id.tree);
    // Numbers mostly run from the first one on without a gap.
    if (begin_ < end_) {
      const std::uint64_t guess = static_cast<std::uint64_t>(id.node) -
                                  static_cast<std::uint64_t>(entries_[begin_].id.node);
      if (guess < end_ - begin_ && entries_[begin_ + guess].id.node == id.node)
        return entries_[begin_ + guess].place;
    }
    const auto last = entries_.begin() + static_cast<std::ptrdiff_t>(end_);
    const auto found = std::lower_bound(
        entries_.begin() + static_cast<std::ptrdiff_t>(begin_), last, id,
        [](const Entry& entry, const NodeId& wanted) { return entry.id < wanted; });
    if (found != last && found->id == id) return found->place;
    return attribute_error(
        attribute,
        fmt::format("expected nodes of the tree, found node {} of tree {}", id.node, id.tree));
  }

 private:
  struct Entry {
    NodeId id;
    std::uint32_t place = 0;
  };

  // The entries of one tree, in which the next look-ups are likely to be.
  void enter(std::int64_t tree) {
    const auto [first, last] = std::equal_range(
        entries_.begin(), entries_.end(), Entry{{tree, 0}, 0},
        [](const Entry& one, const Entry& other) { return one.id.tree < other.id.tree; });
    tree_ = tree;
    begin_ = static_cast<std::size_t>(first - entries_.begin());
    end_ = static_cast<std::size_t>(last - entries_.begin());
  }

  std::vector<Entry> entries_;
  std::optional<std::int64_t> tree_;
  std::size_t begin_ = 0, end_ = 0;
};

using Ints = std::span<const std::int64_t>;

// The list where it lies; models have millions of nodes.
Ints ints_of(const Attributes& attributes, const std::string& name) {
  const AttributeValue* value = attributes.find(name);
  const auto* list = value == nullptr ? nullptr : std::get_if<std::vector<std::int64_t>>(value);
  return list == nullptr ? Ints() : Ints(*list);
}

Result<Ints> ints_for_each(const Attributes& attributes, const std::string& name,
                           std::size_t count) {
  const Ints list = ints_of(attributes, name);
  if (list.size() == count) return list;
  return attribute_error(name, fmt::format("expected {} values, found {}", count, list.size()));
}

Result<std::vector<double>> reals_for_each(const Attributes& attributes, const std::string& name,
                                           std::size_t count) {
  TESSERA_ASSIGN(std::vector<double> list, reals_of(attributes, name));
  if (list.size() == count) return list;
  return attribute_error(name, fmt::format("expected {} values, found {}", count, list.size()));
}

constexpr std::string_view kLeafMode = "LEAF";

Result<Test> test_of(const std::string& mode) {
  constexpr std::string_view kModes[] = {"BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE",
                                         "BRANCH_GT",  "BRANCH_EQ", "BRANCH_NEQ"};
  const auto* const found = std::find(std::begin(kModes), std::end(kModes), std::string_view(mode));
  if (found != std::end(kModes)) return static_cast<Test>(found - std::begin(kModes));
  return attribute_error("nodes_modes",
                         fmt::format("expected 'BRANCH_LEQ', 'BRANCH_LT', 'BRANCH_GTE', "
                                     "'BRANCH_GT', 'BRANCH_EQ', 'BRANCH_NEQ' or 'LEAF', found '{}'",
                                     mode));
}

// The nodes as the attributes list them, and which of them are leaves.
struct Listed {
  std::vector<NodeId> ids;
  std::vector<Branch> places;  // in the ensemble
};

using Modes = std::span<const std::string>;

Result<Modes> modes_of(const Attributes& attributes) {
  const AttributeValue* value = attributes.find("nodes_modes");
  const auto* modes = value == nullptr ? nullptr : std::get_if<std::vector<std::string>>(value);
  if (modes == nullptr || modes->empty())
    return attribute_error("nodes_modes", "expected a mode for each node, found none");
  return Modes(*modes);
}

Result<std::vector<NodeId>> ids_of(const Attributes& attributes, const std::string& trees,
                                   const std::string& nodes, std::size_t count) {
  TESSERA_ASSIGN(const auto tree_ids, ints_for_each(attributes, trees, count));
  TESSERA_ASSIGN(const auto node_ids, ints_for_each(attributes, nodes, count));
  std::vector<NodeId> ids(count);
  for (std::size_t i = 0; i < count; ++i) ids[i] = {tree_ids[i], node_ids[i]};
  return ids;
}

Status read_tests(const Attributes& attributes, Modes modes, Listed& listed, Ensemble& ensemble) {
  const std::size_t count = modes.size();
  TESSERA_ASSIGN(const auto features, ints_for_each(attributes, "nodes_featureids", count));
  TESSERA_ASSIGN(const auto splits, reals_for_each(attributes, "nodes_values", count));
  Ints missing = ints_of(attributes, "nodes_missing_value_tracks_true");
  if (!missing.empty()) {
    TESSERA_ASSIGN(missing, ints_for_each(attributes, "nodes_missing_value_tracks_true", count));
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (modes[i] == kLeafMode) {
      listed.places.push_back({true, static_cast<std::uint32_t>(ensemble.leaves.size())});
      ensemble.leaves.emplace_back();
      continue;
    }
    TreeNode node;
    TESSERA_ASSIGN(node.test, test_of(modes[i]));
    if (features[i] < 0 || features[i] > INT32_MAX)
      return attribute_error("nodes_featureids",
                             fmt::format("expected 0 or more, found {}", features[i]));
    node.feature = static_cast<std::uint32_t>(features[i]);
    node.split = splits[i];
    node.missing_is_true = !missing.empty() && missing[i] != 0;
    ensemble.features = std::max(ensemble.features, std::size_t{node.feature} + 1);
    listed.places.push_back({false, static_cast<std::uint32_t>(ensemble.nodes.size())});
    ensemble.nodes.push_back(node);
  }
  return {};
}

Status read_branches(const Attributes& attributes, const Listed& listed, NodeIndex& index,
                     Ensemble& ensemble) {
  const std::size_t count = listed.ids.size();
  TESSERA_ASSIGN(const auto yes, ints_for_each(attributes, "nodes_truenodeids", count));
  TESSERA_ASSIGN(const auto no, ints_for_each(attributes, "nodes_falsenodeids", count));
  for (std::size_t i = 0; i < count; ++i) {
    if (i == 0 || listed.ids[i].tree != listed.ids[i - 1].tree)
      ensemble.roots.push_back(listed.places[i]);
    if (listed.places[i].is_leaf) continue;
    TreeNode& node = ensemble.nodes[listed.places[i].index];
    const std::int64_t tree = listed.ids[i].tree;
    TESSERA_ASSIGN(const std::uint32_t to, index.find({tree, yes[i]}, "nodes_truenodeids"));
    TESSERA_ASSIGN(const std::uint32_t otherwise, index.find({tree, no[i]}, "nodes_falsenodeids"));
    node.yes = listed.places[to];
    node.no = listed.places[otherwise];
  }
  return {};
}

// The weights, those of a leaf side by side; those of nodes that are no leaves mean nothing.
Status read_weights(const Attributes& attributes, const std::string& kind, const Listed& listed,
                    NodeIndex& index, Ensemble& ensemble) {
  const Ints targets = ints_of(attributes, kind + "_ids");
  const std::size_t count = targets.size();
  TESSERA_ASSIGN(const auto weights, reals_for_each(attributes, kind + "_weights", count));
  TESSERA_ASSIGN(const auto ids, ids_of(attributes, kind + "_treeids", kind + "_nodeids", count));
  const std::string node_ids = kind + "_nodeids";
  std::vector<std::pair<std::uint32_t, LeafWeight>> by_leaf;
  by_leaf.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (targets[i] < 0 || targets[i] >= static_cast<std::int64_t>(ensemble.targets))
      return attribute_error(kind + "_ids", fmt::format("expected numbers from 0 to {}, found {}",
                                                        ensemble.targets - 1, targets[i]));
    TESSERA_ASSIGN(const std::uint32_t place, index.find(ids[i], node_ids.c_str()));
    if (!listed.places[place].is_leaf) continue;
    by_leaf.push_back(
        {listed.places[place].index, {static_cast<std::uint32_t>(targets[i]), weights[i]}});
  }
  const auto earlier = [](const auto& a, const auto& b) { return a.first < b.first; };
  if (!std::is_sorted(by_leaf.begin(), by_leaf.end(), earlier))
    std::stable_sort(by_leaf.begin(), by_leaf.end(), earlier);
  for (const auto& [leaf, weight] : by_leaf) {
    Leaf& run = ensemble.leaves[leaf];
    if (run.count == 0) run.first = static_cast<std::uint32_t>(ensemble.weights.size());
    ++run.count;
    ensemble.weights.push_back(weight);
  }
  return {};
}

}  // namespace

Result<std::vector<double>> reals_of(const Attributes& attributes, const std::string& name) {
  const std::vector<float> floats = attributes.get_floats(name);
  const AttributeValue* value = attributes.find(name + "_as_tensor");
  const auto* tensor = value == nullptr ? nullptr : std::get_if<Tensor>(value);
  if (tensor == nullptr || tensor->numel() == 0)
    return std::vector<double>(floats.begin(), floats.end());
  if (!floats.empty())
    return attribute_error(name, fmt::format("expected it or '{}_as_tensor', found both", name));
  if (!is_float(tensor->dtype()))
    return attribute_error(name + "_as_tensor",
                           fmt::format("expected floats, found {}", to_string(tensor->dtype())));
  const nn::Reals<double> reals(tensor->view());
  return std::vector<double>(reals.data(), reals.data() + tensor->numel());
}

Result<Ensemble> read_trees(const Attributes& attributes, const std::string& kind,
                            std::int64_t targets) {
  Ensemble ensemble;
  ensemble.targets = static_cast<std::size_t>(targets);
  Listed listed;
  TESSERA_ASSIGN(const auto modes, modes_of(attributes));
  TESSERA_ASSIGN(listed.ids, ids_of(attributes, "nodes_treeids", "nodes_nodeids", modes.size()));
  TESSERA_TRY(read_tests(attributes, modes, listed, ensemble));
  NodeIndex index(listed.ids);
  if (const NodeId* twice = index.twice())
    return attribute_error("nodes_nodeids",
                           fmt::format("expected each node once, found node {} of tree {} twice",
                                       twice->node, twice->tree));
  TESSERA_TRY(read_branches(attributes, listed, index, ensemble));
  TESSERA_TRY(read_weights(attributes, kind, listed, index, ensemble));
  TESSERA_TRY(check_trees(ensemble));
  return ensemble;
}

}  // namespace tessera::ops::ml
