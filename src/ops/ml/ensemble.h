#pragma once

// Decision trees whose leaves add up to scores: what all operators over trees share, however they
// spell their nodes.

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/error.h"
#include "ops/op.h"

namespace tessera::ops::ml {

enum class Test : std::uint8_t { kLeq, kLt, kGte, kGt, kEq, kNeq, kMember };
enum class Fold : std::uint8_t { kAverage, kSum, kMin, kMax };

struct Branch {
  bool is_leaf = false;
  std::uint32_t index = 0;  // of a leaf or of a node
};

struct TreeNode {
  double split = 0;
  std::uint32_t feature = 0;
  std::uint32_t members = 0;  // of kMember: which set
  Test test = Test::kLeq;
  bool missing_is_true = false;
  Branch yes, no;
};

struct LeafWeight {
  std::uint32_t target = 0;
  double weight = 0;
};

// A run of the weights.
struct Leaf {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

inline constexpr std::int64_t kMaxTargets = std::int64_t{1} << 20;

struct Ensemble {
  std::vector<TreeNode> nodes;
  std::vector<Leaf> leaves;
  std::vector<LeafWeight> weights;
  std::vector<std::vector<double>> member_sets;  // each sorted
  std::vector<Branch> roots;
  std::size_t targets = 1;
  std::size_t features = 0;  // that the nodes look at: one more than the last one
  Fold fold = Fold::kSum;
};

// Nodes must not go round in a circle: "the tree of root 0 has nodes in a circle".
Status check_trees(const Ensemble& ensemble);

// The rows must have the features: "expected rows of 3 features or more, found [4, 2]".
Status check_rows(const Ensemble& ensemble, const Dims& rows);

// The scores of one row, and whether a leaf had a weight for each target; a target without one has
// the score 0.
using UseScores = std::function<void(std::int64_t row, std::span<double> scores,
                                     std::span<const std::uint8_t> reached)>;

// Hands the scores of each row to `use`, rows in parallel. `rows` has passed check_rows(), the
// ensemble check_trees().
void score_rows(KernelContext& context, const Ensemble& ensemble, const TensorView& rows,
                const UseScores& use);

}  // namespace tessera::ops::ml
