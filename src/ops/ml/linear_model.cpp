// LinearClassifier and LinearRegressor of ai.onnx.ml.

#include <fmt/format.h>

#include <algorithm>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/kernel_util.h"
#include "ops/ml/classes.h"
#include "ops/ml/post_transform.h"
#include "ops/ml/rows.h"
#include "ops/nn/reals.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

// A row of coefficients for each score, and what is added to it.
struct Planes {
  std::vector<float> coefficients;
  std::vector<float> intercepts;
  std::size_t scores = 1;
  std::size_t features = 0;
  ml::PostTransform transform = ml::PostTransform::kNone;
};

Result<Planes> read_planes(const Attributes& attributes, std::size_t scores) {
  Planes planes;
  planes.scores = scores;
  planes.coefficients = attributes.get_floats("coefficients");
  planes.intercepts = attributes.get_floats("intercepts");
  TESSERA_ASSIGN(planes.transform, ml::named_post_transform(attributes));
  const std::size_t count = planes.coefficients.size();
  if (count == 0 || count % scores != 0)
    return attribute_error(
        "coefficients",
        fmt::format("expected as many values for each of {} scores, found {}", scores, count));
  planes.features = count / scores;
  if (planes.intercepts.empty()) planes.intercepts.assign(scores, 0);
  if (planes.intercepts.size() == scores) return planes;
  return attribute_error(
      "intercepts", fmt::format("expected {} values, found {}", scores, planes.intercepts.size()));
}

void score_row(const Planes& planes, const double* row, std::span<double> scores) {
  const float* coefficient = planes.coefficients.data();
  for (std::size_t i = 0; i < planes.scores; ++i) {
    double sum = 0;
    for (std::size_t f = 0; f < planes.features; ++f)
      sum += row[f] * static_cast<double>(*coefficient++);
    scores[i] = sum + static_cast<double>(planes.intercepts[i]);
  }
}

// Calls use(row, scores) for each row, in parallel.
template <typename Use>
void score_rows(KernelContext& context, const Planes& planes, const TensorView& input,
                const Use& use) {
  const nn::Reals<double> x(input);
  const auto features = static_cast<std::int64_t>(planes.features);
  const auto grain = kGrain / static_cast<std::int64_t>(planes.coefficients.size()) + 1;
  context.parallel_for(ml::rows_of(input.dims), grain, [&](std::int64_t begin, std::int64_t end) {
    std::vector<double> scores(planes.scores);
    for (std::int64_t row = begin; row < end; ++row) {
      score_row(planes, x.data() + row * features, scores);
      use(row, std::span<double>(scores));
    }
  });
}

// ---- LinearRegressor ----------------------------------------------------------------------------

Result<Planes> read_regressor(const Attributes& attributes) {
  const std::int64_t targets = attributes.get_int("targets", 1);
  if (targets < 1)
    return attribute_error("targets", fmt::format("expected 1 or more, found {}", targets));
  return read_planes(attributes, static_cast<std::size_t>(targets));
}

Status infer_regressor(InferContext& context) {
  TESSERA_TRY(tensor_input(context, 0).map([](const InferInput*) {}));
  TESSERA_ASSIGN(const Planes planes, read_regressor(context.attributes));
  set_output(context, 0, DType::kFp32,
             Shape{ml::row_dim(context), Dim(static_cast<std::int64_t>(planes.scores))});
  return {};
}

Status regressor_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(const Planes planes, read_regressor(context.attributes()));
  TESSERA_TRY(ml::check_features("LinearRegressor", planes.features, input->dims));
  const auto targets = static_cast<std::int64_t>(planes.scores);
  TESSERA_ASSIGN(const MutableTensorView output,
                 context.output(0, DType::kFp32, {ml::rows_of(input->dims), targets}));
  score_rows(context, planes, *input, [&](std::int64_t row, std::span<double> scores) {
    ml::apply(planes.transform, scores);
    for (std::size_t i = 0; i < scores.size(); ++i)
      output.as<float>()[row * targets + static_cast<std::int64_t>(i)] =
          static_cast<float>(scores[i]);
  });
  return {};
}

// ---- LinearClassifier ---------------------------------------------------------------------------

struct Classifier {
  Tensor labels;
  Planes planes;
  [[nodiscard]] std::int64_t classes() const { return labels.numel(); }
};

// One score tells two classes apart; else each class has its own.
Result<Classifier> read_classifier(const Attributes& attributes) {
  Classifier model;
  TESSERA_ASSIGN(model.labels,
                 ml::read_labels(attributes, "classlabels_strings", "classlabels_ints"));
  const bool has_one = model.classes() == 2 && attributes.get_floats("intercepts").size() == 1;
  TESSERA_ASSIGN(model.planes,
                 read_planes(attributes, has_one ? 1 : static_cast<std::size_t>(model.classes())));
  return model;
}

Status infer_classifier(InferContext& context) {
  TESSERA_TRY(tensor_input(context, 0).map([](const InferInput*) {}));
  TESSERA_ASSIGN(const Classifier model, read_classifier(context.attributes));
  return ml::set_classifier_outputs(context, model.labels.dtype(), ml::row_dim(context),
                                    Dim(model.classes()));
}

Status classifier_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(const Classifier model, read_classifier(context.attributes()));
  TESSERA_TRY(ml::check_features("LinearClassifier", model.planes.features, input->dims));
  const std::int64_t rows = ml::rows_of(input->dims);
  TESSERA_ASSIGN(const MutableTensorView labels, context.output(0, model.labels.dtype(), {rows}));
  MutableTensorView output;
  if (context.output_count() > 1) {
    TESSERA_ASSIGN(output, context.output(1, DType::kFp32, {rows, model.classes()}));
  }
  const ml::PostTransform transform = model.planes.transform;
  score_rows(context, model.planes, *input, [&](std::int64_t row, std::span<double> scores) {
    const bool has_one = scores.size() == 1 && model.classes() == 2;
    const auto best = has_one
                          ? static_cast<std::size_t>(scores[0] > 0 ? 1 : 0)
                          : static_cast<std::size_t>(
                                std::max_element(scores.begin(), scores.end()) - scores.begin());
    ml::put_label(model.labels, best, labels, row);
    if (output.data == nullptr) return;
    auto two = ml::two_scores(transform, scores[0], true);
    if (!has_one) ml::apply(transform, scores);
    const std::span<double> given = has_one ? std::span<double>(two) : scores;
    for (std::size_t i = 0; i < given.size(); ++i)
      output.as<float>()[row * model.classes() + static_cast<std::int64_t>(i)] =
          static_cast<float>(given[i]);
  });
  return {};
}

OpSchema linear_model(std::string_view name, InferFn infer, KernelFn kernel) {
  OpSchema op;
  op.domain = "ai.onnx.ml";
  op.name = name;
  op.versions = {1};
  op.inputs = {required("X", "T1")};
  op.attributes = {required_attr("coefficients", AttrType::kFloats),
                   attr("intercepts", AttrType::kFloats),
                   attr("post_transform", AttrType::kString)};
  op.type_variables = {
      {"T1", ml::kRowTypes}, {"T2", kStringType | kInt64Type}, {"tensor(float)", kFp32Type}};
  op.structure = Structure::kOther;
  op.infer = infer;
  op.kernel = kernel;
  return op;
}

}  // namespace

std::vector<OpSchema> linear_model_ops() {
  OpSchema classifier = linear_model("LinearClassifier", infer_classifier, classifier_kernel);
  classifier.attributes.push_back(attr("classlabels_ints", AttrType::kInts));
  classifier.attributes.push_back(attr("classlabels_strings", AttrType::kStrings));
  classifier.attributes.push_back(attr("multi_class", AttrType::kInt));
  classifier.outputs = {required("Y", "T2"), optional("Z", "tensor(float)")};
  classifier.unspecified =
      "of equal scores the first class is taken; where one score tells two classes apart it is the "
      "second one above 0, and scores are as in ONNX Runtime; multi_class is not used";
  OpSchema regressor = linear_model("LinearRegressor", infer_regressor, regressor_kernel);
  regressor.attributes.push_back(attr("targets", AttrType::kInt));
  regressor.outputs = {required("Y", "tensor(float)")};
  return {classifier, regressor};
}

}  // namespace tessera::ops
