// TreeEnsembleClassifier and TreeEnsembleRegressor of ai.onnx.ml.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/kernel_util.h"
#include "ops/ml/classes.h"
#include "ops/ml/ensemble.h"
#include "ops/ml/post_transform.h"
#include "ops/ml/rows.h"
#include "ops/ml/tree_attributes.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

using ml::Ensemble;
using ml::PostTransform;

Result<Dim> row_count(InferContext& context) {
  TESSERA_TRY(require_rank(context, 0, 2));
  const auto& shape = context.inputs[0].type.shape;
  return shape ? shape->front() : context.fresh_symbol("rows");
}

// ---- TreeEnsembleRegressor ----------------------------------------------------------------------

// The transform holds for one score as for several, as the standard says; ONNX Runtime leaves a
// single score as it is, but for PROBIT.
constexpr const char* kRegressor = "TreeEnsembleRegressor";

struct Regressor {
  Ensemble ensemble;
  std::vector<double> base;  // as many as targets
  PostTransform transform = PostTransform::kNone;
};

Result<ml::Fold> fold_of(const Attributes& attributes) {
  constexpr std::string_view kNames[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  const std::string name = attributes.get_string("aggregate_function", "SUM");
  const auto* const found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found != std::end(kNames)) return static_cast<ml::Fold>(found - std::begin(kNames));
  return attribute_error(
      "aggregate_function",
      fmt::format("expected 'AVERAGE', 'SUM', 'MIN' or 'MAX', found '{}'", name));
}

Result<Regressor> read_regressor(const Attributes& attributes) {
  const std::int64_t targets = attributes.get_int("n_targets", 1);
  if (targets < 1 || targets > ml::kMaxTargets)
    return attribute_error("n_targets",
                           fmt::format("expected 1 to {}, found {}", ml::kMaxTargets, targets));
  Regressor model;
  auto ensemble = ml::read_trees(attributes, "target", targets);
  if (!ensemble) return tl::unexpected(in_context(std::move(ensemble).error(), kRegressor));
  model.ensemble = *std::move(ensemble);
  TESSERA_ASSIGN(model.ensemble.fold, fold_of(attributes));
  TESSERA_ASSIGN(model.transform, ml::named_post_transform(attributes));
  TESSERA_ASSIGN(model.base, ml::reals_of(attributes, "base_values"));
  if (model.base.empty()) model.base.assign(model.ensemble.targets, 0);
  if (model.base.size() == model.ensemble.targets) return model;
  return attribute_error("base_values",
                         fmt::format("expected {} values, found {}", targets, model.base.size()));
}

Status infer_regressor(InferContext& context) {
  TESSERA_ASSIGN(const Regressor model, read_regressor(context.attributes));
  TESSERA_ASSIGN(const Dim rows, row_count(context));
  set_output(context, 0, DType::kFp32,
             Shape{rows, Dim(static_cast<std::int64_t>(model.ensemble.targets))});
  return {};
}

Status regressor_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(const Regressor model, read_regressor(context.attributes()));
  TESSERA_TRY_IN(ml::check_rows(model.ensemble, input->dims), kRegressor);
  const auto targets = static_cast<std::int64_t>(model.ensemble.targets);
  TESSERA_ASSIGN(const MutableTensorView output,
                 context.output(0, DType::kFp32, {input->dims[0], targets}));
  auto* y = output.as<float>();
  ml::score_rows(context, model.ensemble, *input,
                 [&](std::int64_t row, std::span<double> scores, std::span<const std::uint8_t>) {
                   for (std::size_t i = 0; i < scores.size(); ++i) scores[i] += model.base[i];
                   ml::apply(model.transform, scores);
                   for (std::size_t i = 0; i < scores.size(); ++i)
                     y[row * targets + static_cast<std::int64_t>(i)] =
                         static_cast<float>(scores[i]);
                 });
  return {};
}

// ---- TreeEnsembleClassifier ---------------------------------------------------------------------

constexpr const char* kClassifier = "TreeEnsembleClassifier";

struct Classifier {
  Ensemble ensemble;
  Tensor labels;
  std::vector<double> base;  // none, one, or as many as classes
  PostTransform transform = PostTransform::kNone;
  bool one_column = false;    // two classes, and weights for one of them alone
  bool all_positive = false;  // no weight is below 0: those of one column are probabilities
  [[nodiscard]] std::size_t classes() const { return ensemble.targets; }
};

Result<Classifier> read_classifier(const Attributes& attributes) {
  Classifier model;
  TESSERA_ASSIGN(model.labels,
                 ml::read_labels(attributes, "classlabels_strings", "classlabels_int64s"));
  auto ensemble = ml::read_trees(attributes, "class", model.labels.numel());
  if (!ensemble) return tl::unexpected(in_context(std::move(ensemble).error(), kClassifier));
  model.ensemble = *std::move(ensemble);
  TESSERA_ASSIGN(model.transform, ml::named_post_transform(attributes));
  TESSERA_ASSIGN(model.base, ml::reals_of(attributes, "base_values"));
  const auto& weights = model.ensemble.weights;
  model.one_column = model.classes() == 2 && !weights.empty() &&
                     std::all_of(weights.begin(), weights.end(), [&](const ml::LeafWeight& weight) {
                       return weight.target == weights[0].target;
                     });
  model.all_positive = std::all_of(weights.begin(), weights.end(),
                                   [](const ml::LeafWeight& weight) { return weight.weight >= 0; });
  const std::size_t count = model.base.size();
  if (count == 0 || count == model.classes() || (count == 1 && model.classes() == 2)) return model;
  return attribute_error("base_values",
                         fmt::format("expected {} values, found {}", model.classes(), count));
}

Status infer_classifier(InferContext& context) {
  TESSERA_ASSIGN(const Classifier model, read_classifier(context.attributes));
  TESSERA_ASSIGN(const Dim rows, row_count(context));
  return ml::set_classifier_outputs(context, model.labels.dtype(), rows, Dim(model.labels.numel()));
}

// The highest score that counts; the first of equal ones.
std::size_t best_class(std::span<const double> scores, std::span<const std::uint8_t> counts) {
  std::size_t best = scores.size();
  for (std::size_t i = 0; i < scores.size(); ++i)
    if (counts[i] != 0 && (best == scores.size() || scores[i] > scores[best])) best = i;
  return best == scores.size() ? 0 : best;
}

// Turns the sums of one row into its scores; gives the class. Where the weights are of one class of
// two, the standard leaves open what the other's score is, and which sum is the border: here it is
// as in ONNX Runtime.
std::size_t classify(const Classifier& model, std::span<double> scores,
                     std::span<const std::uint8_t> reached) {
  for (std::size_t i = 0; i < model.base.size(); ++i) scores[i] += model.base[i];
  if (model.one_column) {
    const std::size_t column = model.ensemble.weights[0].target;
    const std::size_t best = scores[column] > (model.all_positive ? 0.5 : 0) ? 1 : 0;
    if (column == 1) {
      ml::apply(model.transform, scores);
    } else {
      const auto two = ml::two_scores(model.transform, scores[0], model.all_positive);
      std::copy(two.begin(), two.end(), scores.begin());
    }
    return best;
  }
  // A class without any weight is no candidate, unless base values give it a score.
  const std::vector<std::uint8_t> all(scores.size(), 1);
  const std::size_t best =
      best_class(scores, model.base.size() == scores.size() ? std::span(all) : reached);
  ml::apply(model.transform, scores);
  return best;
}

Status classifier_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(const Classifier model, read_classifier(context.attributes()));
  TESSERA_TRY_IN(ml::check_rows(model.ensemble, input->dims), kClassifier);
  const std::int64_t rows = input->dims[0];
  const std::int64_t classes = model.labels.numel();
  TESSERA_ASSIGN(const MutableTensorView labels, context.output(0, model.labels.dtype(), {rows}));
  MutableTensorView scores;
  if (context.output_count() > 1) {
    TESSERA_ASSIGN(scores, context.output(1, DType::kFp32, {rows, classes}));
  }
  ml::score_rows(
      context, model.ensemble, *input,
      [&](std::int64_t row, std::span<double> sums, std::span<const std::uint8_t> reached) {
        ml::put_label(model.labels, classify(model, sums, reached), labels, row);
        if (scores.data == nullptr) return;
        for (std::int64_t i = 0; i < classes; ++i)
          scores.as<float>()[row * classes + i] =
              static_cast<float>(sums[static_cast<std::size_t>(i)]);
      });
  return {};
}

// ---- Schemas ------------------------------------------------------------------------------------

std::vector<FormalAttr> tree_attributes(std::string_view const (&weights)[5]) {
  std::vector<FormalAttr> list = {attr("base_values", AttrType::kFloats),
                                  attr("base_values_as_tensor", AttrType::kTensor),
                                  attr("nodes_falsenodeids", AttrType::kInts),
                                  attr("nodes_featureids", AttrType::kInts),
                                  attr("nodes_hitrates", AttrType::kFloats),
                                  attr("nodes_hitrates_as_tensor", AttrType::kTensor),
                                  attr("nodes_missing_value_tracks_true", AttrType::kInts),
                                  attr("nodes_modes", AttrType::kStrings),
                                  attr("nodes_nodeids", AttrType::kInts),
                                  attr("nodes_treeids", AttrType::kInts),
                                  attr("nodes_truenodeids", AttrType::kInts),
                                  attr("nodes_values", AttrType::kFloats),
                                  attr("nodes_values_as_tensor", AttrType::kTensor),
                                  attr("post_transform", AttrType::kString)};
  constexpr AttrType kTypes[] = {AttrType::kInts, AttrType::kInts, AttrType::kInts,
                                 AttrType::kFloats, AttrType::kTensor};
  for (std::size_t i = 0; i < 5; ++i) list.push_back(attr(weights[i], kTypes[i]));
  return list;
}

OpSchema tree_model(std::string_view name, InferFn infer, KernelFn kernel,
                    std::vector<FormalAttr> attributes) {
  OpSchema op;
  op.domain = "ai.onnx.ml";
  op.name = name;
  op.versions = {1, 3, 5};
  op.inputs = {required("X", "T1")};
  op.attributes = std::move(attributes);
  op.type_variables = {
      {"T1", ml::kRowTypes}, {"T2", kStringType | kInt64Type}, {"tensor(float)", kFp32Type}};
  op.structure = Structure::kOther;
  op.infer = infer;
  op.kernel = kernel;
  return op;
}

}  // namespace

std::vector<OpSchema> tree_model_ops() {
  constexpr std::string_view kClasses[] = {"class_ids", "class_nodeids", "class_treeids",
                                           "class_weights", "class_weights_as_tensor"};
  OpSchema classifier =
      tree_model(kClassifier, infer_classifier, classifier_kernel, tree_attributes(kClasses));
  classifier.attributes.push_back(attr("classlabels_int64s", AttrType::kInts));
  classifier.attributes.push_back(attr("classlabels_strings", AttrType::kStrings));
  classifier.outputs = {required("Y", "T2"), optional("Z", "tensor(float)")};
  classifier.unspecified =
      "of equal scores the first class is taken, but no class without a weight; where all weights "
      "are of one of two classes, the border and the scores are as in ONNX Runtime; a NaN is not "
      "equal to a split: BRANCH_NEQ holds";

  constexpr std::string_view kTargets[] = {"target_ids", "target_nodeids", "target_treeids",
                                           "target_weights", "target_weights_as_tensor"};
  OpSchema regressor =
      tree_model(kRegressor, infer_regressor, regressor_kernel, tree_attributes(kTargets));
  regressor.attributes.push_back(attr("aggregate_function", AttrType::kString));
  regressor.attributes.push_back(attr("n_targets", AttrType::kInt));
  regressor.outputs = {required("Y", "tensor(float)")};
  regressor.unspecified =
      "AVERAGE divides by the number of trees; a target that no leaf is for is 0, in MIN and MAX "
      "too; a NaN is not equal to a split: BRANCH_NEQ holds";
  return {classifier, regressor};
}

}  // namespace tessera::ops
