#include "ops/ml/ensemble.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ops/kernel_util.h"
#include "ops/nn/reals.h"

namespace tessera::ops::ml {
namespace {

bool holds(const Ensemble& ensemble, const TreeNode& node, double x) {
  if (std::isnan(x) && node.missing_is_true) return true;
  switch (node.test) {
    case Test::kLeq: return x <= node.split;
    case Test::kLt: return x < node.split;
    case Test::kGte: return x >= node.split;
    case Test::kGt: return x > node.split;
    case Test::kEq: return x == node.split;
    case Test::kNeq: return x != node.split;
    case Test::kMember: {
      const std::vector<double>& members = ensemble.member_sets[node.members];
      return !std::isnan(x) && std::binary_search(members.begin(), members.end(), x);
    }
  }
  return false;
}

const Leaf& leaf_of(const Ensemble& ensemble, Branch at, const double* row) {
  while (!at.is_leaf) {
    const TreeNode& node = ensemble.nodes[at.index];
    at = holds(ensemble, node, row[node.feature]) ? node.yes : node.no;
  }
  return ensemble.leaves[at.index];
}

void add(Fold fold, double weight, bool is_first, double& total) {
  switch (fold) {
    case Fold::kAverage:
    case Fold::kSum: total += weight; break;
    case Fold::kMin: total = is_first ? weight : std::min(total, weight); break;
    case Fold::kMax: total = is_first ? weight : std::max(total, weight); break;
  }
}

void add_up(const Ensemble& ensemble, const double* row, std::span<double> scores,
            std::span<std::uint8_t> reached) {
  std::fill(scores.begin(), scores.end(), 0.0);
  std::fill(reached.begin(), reached.end(), std::uint8_t{0});
  for (const Branch& root : ensemble.roots) {
    const Leaf& leaf = leaf_of(ensemble, root, row);
    for (std::uint32_t i = leaf.first; i < leaf.first + leaf.count; ++i) {
      const LeafWeight& weight = ensemble.weights[i];
      add(ensemble.fold, weight.weight, reached[weight.target] == 0, scores[weight.target]);
      reached[weight.target] = 1;
    }
  }
  if (ensemble.fold == Fold::kAverage)
    for (double& score : scores)
      score /= static_cast<double>(std::max<std::size_t>(1, ensemble.roots.size()));
}

// Depth first from one root; a node on the way to itself is a circle.
bool has_circle(const Ensemble& ensemble, const Branch& root, std::vector<std::uint8_t>& state) {
  constexpr std::uint8_t kOpen = 1;
  constexpr std::uint8_t kDone = 2;
  std::vector<Branch> pending = {root};
  while (!pending.empty()) {
    const Branch at = pending.back();
    if (at.is_leaf || state[at.index] != 0) {
      if (!at.is_leaf) state[at.index] = kDone;  // open: all below it is done
      pending.pop_back();
      continue;
    }
    state[at.index] = kOpen;
    for (const Branch& next : {ensemble.nodes[at.index].yes, ensemble.nodes[at.index].no}) {
      if (next.is_leaf || state[next.index] == kDone) continue;
      if (state[next.index] == kOpen) return true;
      pending.push_back(next);
    }
  }
  return false;
}

}  // namespace

Status check_trees(const Ensemble& ensemble) {
  std::vector<std::uint8_t> state(ensemble.nodes.size(), 0);
  for (const Branch& root : ensemble.roots)
    if (has_circle(ensemble, root, state))
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("the tree of root {} has nodes in a circle", root.index));
  return {};
}

Status check_rows(const Ensemble& ensemble, const Dims& rows) {
  if (rows.size() == 2 && rows[1] >= static_cast<std::int64_t>(ensemble.features)) return {};
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("expected rows of {} features or more, found "
                          "{}",
                          ensemble.features, to_string(rows)));
}

void score_rows(KernelContext& context, const Ensemble& ensemble, const TensorView& rows,
                const UseScores& use) {
  const nn::Reals<double> x(rows);
  const std::int64_t features = rows.dims[1];
  const std::int64_t grain =
      std::max<std::int64_t>(1, kGrain / 8 / static_cast<std::int64_t>(1 + ensemble.roots.size()));
  context.parallel_for(rows.dims[0], grain, [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> scores(ensemble.targets);
    std::vector<std::uint8_t> reached(ensemble.targets);
    for (std::int64_t row = begin; row < end; ++row) {
      add_up(ensemble, x.data() + row * features, scores, reached);
      use(row, scores, reached);
    }
  });
}

}  // namespace tessera::ops::ml
