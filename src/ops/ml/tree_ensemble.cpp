// TreeEnsemble of ai.onnx.ml: decision trees, whose leaves add up to the scores of targets.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/kernel_util.h"
#include "ops/ml/ensemble.h"
#include "ops/ml/post_transform.h"
#include "ops/nn/nn_util.h"
#include "ops/nn/reals.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

constexpr std::string_view kOp = "TreeEnsemble";

using ml::Branch;
using ml::Ensemble;
using ml::Fold;
using ml::Test;
using ml::TreeNode;

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
    ensemble.leaves.push_back({static_cast<std::uint32_t>(i), 1});
    ensemble.weights.push_back({static_cast<std::uint32_t>(targets[i]), weights[i]});
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
  for (TreeNode& node : ensemble.nodes) {
    if (node.test != Test::kMember) continue;
    const auto end = std::find_if(at, members.end(), [](double x) { return std::isnan(x); });
    if (end == members.end())
      return attribute_error("membership_values",
                             "expected a set of values, with a NaN behind it, "
                             "for each node of mode 6, found fewer");
    node.members = static_cast<std::uint32_t>(ensemble.member_sets.size());
    ensemble.member_sets.emplace_back(at, end);
    std::sort(ensemble.member_sets.back().begin(), ensemble.member_sets.back().end());
    at = end + 1;
  }
  return {};
}

Result<Branch> branch_of(const char* name, std::int64_t is_leaf, std::int64_t index,
                         const Ensemble& ensemble, std::size_t nodes) {
  const std::size_t count = is_leaf != 0 ? ensemble.leaves.size() : nodes;
  if (index >= 0 && index < static_cast<std::int64_t>(count))
    return Branch{is_leaf != 0, static_cast<std::uint32_t>(index)};
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
    TreeNode node;
    node.feature = static_cast<std::uint32_t>(features[i]);
    node.test = static_cast<Test>(static_cast<int>(modes[i]));
    node.split = splits[i];
    node.missing_is_true = missing[i] != 0;
    TESSERA_ASSIGN(node.yes, branch_of("nodes_truenodeids", yes_leaf[i], yes[i], ensemble, count));
    TESSERA_ASSIGN(node.no, branch_of("nodes_falsenodeids", no_leaf[i], no[i], ensemble, count));
    ensemble.features = std::max(ensemble.features, std::size_t{node.feature} + 1);
    ensemble.nodes.push_back(node);
  }
  return read_members(attributes, ensemble);
}

Result<Ensemble> read_ensemble(const Attributes& attributes) {
  Ensemble ensemble;
  const std::int64_t targets = attributes.get_int("n_targets", 1);
  if (targets < 1 || targets > ml::kMaxTargets)
    return attribute_error("n_targets",
                           fmt::format("expected 1 to {}, found {}", ml::kMaxTargets, targets));
  ensemble.targets = static_cast<std::size_t>(targets);
  const std::int64_t fold = attributes.get_int("aggregate_function", 1);
  if (fold < 0 || fold > 3)
    return attribute_error("aggregate_function",
                           fmt::format("expected a number from 0 to 3, found {}", fold));
  ensemble.fold = static_cast<Fold>(fold);
  TESSERA_TRY(read_leaves(attributes, ensemble));
  TESSERA_TRY(read_nodes(attributes, ensemble));
  for (const std::int64_t root : attributes.get_ints("tree_roots")) {
    if (root < 0 || root >= static_cast<std::int64_t>(ensemble.nodes.size()))
      return attribute_error("tree_roots", fmt::format("expected numbers below {}, found {}",
                                                       ensemble.nodes.size(), root));
    ensemble.roots.push_back({false, static_cast<std::uint32_t>(root)});
  }
  TESSERA_TRY_IN(ml::check_trees(ensemble), std::string(kOp));
  return ensemble;
}

Result<ml::PostTransform> post_transform_of(const Attributes& attributes) {
  return ml::post_transform(attributes.get_int("post_transform", 0));
}

Status infer(InferContext& context) {
  TESSERA_ASSIGN(const Ensemble ensemble, read_ensemble(context.attributes));
  TESSERA_TRY(post_transform_of(context.attributes).map([](ml::PostTransform) {}));
  TESSERA_TRY(require_rank(context, 0, 2));
  const ValueType& x = context.inputs[0].type;
  const Dim rows = x.shape ? (*x.shape)[0] : context.fresh_symbol("rows");
  set_output(context, 0, x.dtype, Shape{rows, Dim(static_cast<std::int64_t>(ensemble.targets))});
  return {};
}

Status kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(const Ensemble ensemble, read_ensemble(context.attributes()));
  TESSERA_ASSIGN(const ml::PostTransform transform, post_transform_of(context.attributes()));
  TESSERA_TRY_IN(ml::check_rows(ensemble, input->dims), std::string(kOp));
  const auto targets = static_cast<std::int64_t>(ensemble.targets);
  TESSERA_ASSIGN(const MutableTensorView output,
                 context.output(0, input->dtype, {input->dims[0], targets}));
  nn::RealResult<double> y(output);
  ml::score_rows(context, ensemble, *input,
                 [&](std::int64_t row, std::span<double> scores, std::span<const std::uint8_t>) {
                   ml::apply(transform, scores);
                   std::copy(scores.begin(), scores.end(), y.data() + row * targets);
                 });
  y.finish();
  return {};
}

}  // namespace

std::vector<OpSchema> tree_ensemble_ops() {
  OpSchema op;
  op.domain = "ai.onnx.ml";
  op.name = kOp;
  op.versions = {5};
  op.unspecified =
      "AVERAGE divides by the number of trees; a target that no leaf is for is 0, in MIN and MAX "
      "too; a NaN is not equal to a split: BRANCH_NEQ holds";
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
