// TreeEnsemble of ai.onnx.ml: decision trees, whose leaves add up to the scores of targets.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/kernel_util.h"
#include "ops/ml/post_transform.h"
#include "ops/nn/nn_util.h"
#include "ops/nn/reals.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

constexpr std::string_view kOp = "TreeEnsemble";

enum class Test : std::uint8_t { kLeq, kLt, kGte, kGt, kEq, kNeq, kMember };
enum class Fold : std::uint8_t { kAverage, kSum, kMin, kMax };

struct Branch {
  bool is_leaf = false;
  std::size_t index = 0;  // of a leaf or of a node
};

struct Node {
  std::size_t feature = 0;
  Test test = Test::kLeq;
  double split = 0;
  std::vector<double> members;  // of kMember
  bool missing_is_true = false;
  Branch yes, no;
};

struct Leaf {
  double weight = 0;
  std::size_t target = 0;
};

struct Ensemble {
  std::vector<Node> nodes;
  std::vector<Leaf> leaves;
  std::vector<std::size_t> roots;
  std::size_t targets = 1;
  Fold fold = Fold::kSum;
  ml::PostTransform post = ml::PostTransform::kNone;
  std::size_t features = 0;  // that the nodes look at: one more than the last one
};

// An attribute with a number for each of `count`; `name` absent: empty.
Result<std::vector<std::int64_t>> ints_for_each(const Attributes& attributes, const char* name,
                                                std::size_t count) {
  std::vector<std::int64_t> list = attributes.get_ints(name);
  if (list.size() == count) return list;
  return attribute_error(name, fmt::format("expected {} values, found {}", count, list.size()));
}

Result<std::vector<double>> reals_of(const Attributes& attributes, const char* name) {
  const AttributeValue* value = attributes.find(name);
  const auto* tensor = value == nullptr ? nullptr : std::get_if<Tensor>(value);
  if (tensor == nullptr) return attribute_error(name, "expected a tensor, found none");
  const nn::Reals<double> reals(tensor->view());
  return std::vector<double>(reals.data(), reals.data() + tensor->numel());
}

Status read_leaves(const Attributes& attributes, Ensemble& ensemble) {
  TESSERA_ASSIGN(const auto weights, reals_of(attributes, "leaf_weights"));
  TESSERA_ASSIGN(const auto targets, ints_for_each(attributes, "leaf_targetids", weights.size()));
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (targets[i] < 0 || targets[i] >= static_cast<std::int64_t>(ensemble.targets))
      return attribute_error(
          "leaf_targetids",
          fmt::format("expected numbers from 0 to {}, found {}", ensemble.targets - 1, targets[i]));
    ensemble.leaves.push_back({weights[i], static_cast<std::size_t>(targets[i])});
  }
  return {};
}

// Members of each kMember node in the order of the nodes, a NaN behind each set.
Status read_members(const Attributes& attributes, Ensemble& ensemble) {
  std::vector<double> members;
  if (attributes.has("membership_values")) {
    TESSERA_ASSIGN(members, reals_of(attributes, "membership_values"));
  }
  auto at = members.begin();
  for (Node& node : ensemble.nodes) {
    if (node.test != Test::kMember) continue;
    const auto end = std::find_if(at, members.end(), [](double x) { return std::isnan(x); });
    if (end == members.end())
      return attribute_error("membership_values",
                             "expected a set of values, with a NaN behind it, "
                             "for each node of mode 6, found fewer");
    node.members.assign(at, end);
    std::sort(node.members.begin(), node.members.end());
    at = end + 1;
  }
  return {};
}

Result<Branch> branch_of(const char* name, std::int64_t is_leaf, std::int64_t index,
                         const Ensemble& ensemble, std::size_t nodes) {
  const std::size_t count = is_leaf != 0 ? ensemble.leaves.size() : nodes;
  if (index >= 0 && index < static_cast<std::int64_t>(count))
    return Branch{is_leaf != 0, static_cast<std::size_t>(index)};
  return attribute_error(name, fmt::format("expected numbers below {}, found {}", count, index));
}

Status read_nodes(const Attributes& attributes, Ensemble& ensemble) {
  TESSERA_ASSIGN(const auto splits, reals_of(attributes, "nodes_splits"));
  TESSERA_ASSIGN(const auto modes, reals_of(attributes, "nodes_modes"));
  const std::size_t count = splits.size();
  if (modes.size() != count)
    return attribute_error("nodes_modes",
                           fmt::format("expected {} values, found {}", count, modes.size()));
  TESSERA_ASSIGN(const auto features, ints_for_each(attributes, "nodes_featureids", count));
  TESSERA_ASSIGN(const auto yes, ints_for_each(attributes, "nodes_truenodeids", count));
  TESSERA_ASSIGN(const auto no, ints_for_each(attributes, "nodes_falsenodeids", count));
  TESSERA_ASSIGN(const auto yes_leaf, ints_for_each(attributes, "nodes_trueleafs", count));
  TESSERA_ASSIGN(const auto no_leaf, ints_for_each(attributes, "nodes_falseleafs", count));
  std::vector<std::int64_t> missing(count, 0);
  if (attributes.has("nodes_missing_value_tracks_true")) {
    TESSERA_ASSIGN(missing, ints_for_each(attributes, "nodes_missing_value_tracks_true", count));
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (!(modes[i] >= 0 && modes[i] <= 6))
      return attribute_error("nodes_modes",
                             fmt::format("expected numbers from 0 to 6, found {}", modes[i]));
    if (features[i] < 0 || features[i] > INT32_MAX)
      return attribute_error("nodes_featureids",
                             fmt::format("expected 0 or more, found {}", features[i]));
    Node node;
    node.feature = static_cast<std::size_t>(features[i]);
    node.test = static_cast<Test>(static_cast<int>(modes[i]));
    node.split = splits[i];
    node.missing_is_true = missing[i] != 0;
    TESSERA_ASSIGN(node.yes, branch_of("nodes_truenodeids", yes_leaf[i], yes[i], ensemble, count));
    TESSERA_ASSIGN(node.no, branch_of("nodes_falsenodeids", no_leaf[i], no[i], ensemble, count));
    ensemble.features = std::max(ensemble.features, node.feature + 1);
    ensemble.nodes.push_back(std::move(node));
  }
  return read_members(attributes, ensemble);
}

Result<Ensemble> read_ensemble(const Attributes& attributes) {
  Ensemble ensemble;
  const std::int64_t targets = attributes.get_int("n_targets", 1);
  if (targets < 1 || targets > INT32_MAX)
    return attribute_error("n_targets", fmt::format("expected 1 or more, found {}", targets));
  ensemble.targets = static_cast<std::size_t>(targets);
  const std::int64_t fold = attributes.get_int("aggregate_function", 1);
  if (fold < 0 || fold > 3)
    return attribute_error("aggregate_function",
                           fmt::format("expected a number from 0 to 3, found {}", fold));
  ensemble.fold = static_cast<Fold>(fold);
  TESSERA_ASSIGN(ensemble.post, ml::post_transform(attributes.get_int("post_transform", 0)));
  TESSERA_TRY(read_leaves(attributes, ensemble));
  TESSERA_TRY(read_nodes(attributes, ensemble));
  for (const std::int64_t root : attributes.get_ints("tree_roots")) {
    if (root < 0 || root >= static_cast<std::int64_t>(ensemble.nodes.size()))
      return attribute_error("tree_roots", fmt::format("expected numbers below {}, found {}",
                                                       ensemble.nodes.size(), root));
    ensemble.roots.push_back(static_cast<std::size_t>(root));
  }
  return ensemble;
}

bool holds(const Node& node, double x) {
  if (std::isnan(x) && node.missing_is_true) return true;
  switch (node.test) {
    case Test::kLeq: return x <= node.split;
    case Test::kLt: return x < node.split;
    case Test::kGte: return x >= node.split;
    case Test::kGt: return x > node.split;
    case Test::kEq: return x == node.split;
    case Test::kNeq: return x != node.split;
    case Test::kMember:
      return !std::isnan(x) && std::binary_search(node.members.begin(), node.members.end(), x);
  }
  return false;
}

// The leaf that one row comes to; null where the nodes go round in a circle.
const Leaf* leaf_of(const Ensemble& ensemble, std::size_t root, const double* row) {
  std::size_t at = root;
  for (std::size_t steps = 0; steps <= ensemble.nodes.size(); ++steps) {
    const Node& node = ensemble.nodes[at];
    const Branch& branch = holds(node, row[node.feature]) ? node.yes : node.no;
    if (branch.is_leaf) return &ensemble.leaves[branch.index];
    at = branch.index;
  }
  return nullptr;
}

Status score(const Ensemble& ensemble, const double* row, double* scores) {
  const std::size_t targets = ensemble.targets;
  std::vector<bool> reached(targets, false);
  std::fill_n(scores, targets, 0.0);
  for (const std::size_t root : ensemble.roots) {
    const Leaf* leaf = leaf_of(ensemble, root, row);
    if (leaf == nullptr)
      return nn::op_error(kOp, fmt::format("the tree of root {} has nodes in a circle", root));
    double& total = scores[leaf->target];
    const bool first = !reached[leaf->target];
    reached[leaf->target] = true;
    switch (ensemble.fold) {
      case Fold::kAverage:
      case Fold::kSum: total += leaf->weight; break;
      case Fold::kMin: total = first ? leaf->weight : std::min(total, leaf->weight); break;
      case Fold::kMax: total = first ? leaf->weight : std::max(total, leaf->weight); break;
    }
  }
  if (ensemble.fold == Fold::kAverage)
    for (std::size_t i = 0; i < targets; ++i)
      scores[i] /= static_cast<double>(std::max<std::size_t>(1, ensemble.roots.size()));
  ml::apply(ensemble.post, {scores, targets});
  return {};
}

Status infer(InferContext& context) {
  TESSERA_ASSIGN(const Ensemble ensemble, read_ensemble(context.attributes));
  TESSERA_TRY(require_rank(context, 0, 2));
  const ValueType& x = context.inputs[0].type;
  const Dim rows = x.shape ? (*x.shape)[0] : context.fresh_symbol("rows");
  set_output(context, 0, x.dtype, Shape{rows, Dim(static_cast<std::int64_t>(ensemble.targets))});
  return {};
}

Status kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(const Ensemble ensemble, read_ensemble(context.attributes()));
  if (input->dims.size() != 2 || input->dims[1] < static_cast<std::int64_t>(ensemble.features))
    return nn::op_error(kOp, fmt::format("expected rows of {} features or more, found {}",
                                         ensemble.features, to_string(input->dims)));
  const auto targets = static_cast<std::int64_t>(ensemble.targets);
  TESSERA_ASSIGN(const MutableTensorView output,
                 context.output(0, input->dtype, {input->dims[0], targets}));
  const nn::Reals<double> x(*input);
  nn::RealResult<double> y(output);
  for (std::int64_t row = 0; row < input->dims[0]; ++row)
    TESSERA_TRY(score(ensemble, x.data() + row * input->dims[1], y.data() + row * targets));
  y.finish();
  return {};
}

}  // namespace

std::vector<OpSchema> tree_ensemble_ops() {
  OpSchema op;
  op.domain = "ai.onnx.ml";
  op.name = kOp;
  op.versions = {5};
  op.inputs = {required("X", "T")};
  op.outputs = {required("Y", "T")};
  op.attributes = {attr("aggregate_function", AttrType::kInt),
                   required_attr("leaf_targetids", AttrType::kInts),
                   required_attr("leaf_weights", AttrType::kTensor),
                   attr("membership_values", AttrType::kTensor),
                   attr("n_targets", AttrType::kInt),
                   required_attr("nodes_falseleafs", AttrType::kInts),
                   required_attr("nodes_falsenodeids", AttrType::kInts),
                   required_attr("nodes_featureids", AttrType::kInts),
                   attr("nodes_hitrates", AttrType::kTensor),
                   attr("nodes_missing_value_tracks_true", AttrType::kInts),
                   required_attr("nodes_modes", AttrType::kTensor),
                   required_attr("nodes_splits", AttrType::kTensor),
                   required_attr("nodes_trueleafs", AttrType::kInts),
                   required_attr("nodes_truenodeids", AttrType::kInts),
                   attr("post_transform", AttrType::kInt),
                   required_attr("tree_roots", AttrType::kInts)};
  op.type_variables = {{"T", dtype_set({DType::kFp32, DType::kFp64, DType::kFp16})}};
  op.structure = Structure::kOther;
  op.infer = infer;
  op.kernel = kernel;
  return {op};
}

}  // namespace tessera::ops
