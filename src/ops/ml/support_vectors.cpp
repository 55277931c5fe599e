// SVMClassifier and SVMRegressor of ai.onnx.ml.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/kernel_util.h"
#include "ops/ml/classes.h"
#include "ops/ml/coupling.h"
#include "ops/ml/post_transform.h"
#include "ops/ml/rows.h"
#include "ops/nn/reals.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

enum class Kernel : std::uint8_t { kLinear, kPoly, kRbf, kSigmoid };

struct Machine {
  Kernel kernel = Kernel::kLinear;
  double gamma = 0, offset = 0, degree = 0;
  std::vector<float> coefficients, vectors, rho;
  std::size_t vector_count = 0;  // 0: the coefficients are planes
  std::size_t features = 0;
  ml::PostTransform transform = ml::PostTransform::kNone;
};

Result<Kernel> kernel_of(const Attributes& attributes) {
  constexpr std::string_view kNames[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};
  const std::string name = attributes.get_string("kernel_type", "LINEAR");
  const auto* const found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found != std::end(kNames)) return static_cast<Kernel>(found - std::begin(kNames));
  return attribute_error(
      "kernel_type",
      fmt::format("expected 'LINEAR', 'POLY', 'RBF' or 'SIGMOID', found '{}'", name));
}

// What both operators have. `vector_count` vectors, or `planes` rows of coefficients where it is 0.
Result<Machine> read_machine(const Attributes& attributes, std::int64_t vector_count,
                             std::size_t planes) {
  Machine machine;
  TESSERA_ASSIGN(machine.kernel, kernel_of(attributes));
  TESSERA_ASSIGN(machine.transform, ml::named_post_transform(attributes));
  const std::vector<float> parameters = attributes.get_floats("kernel_params");
  if (!parameters.empty() && parameters.size() != 3)
    return attribute_error(
        "kernel_params",
        fmt::format("expected gamma, coef0 and degree, found {} values", parameters.size()));
  if (parameters.size() == 3) {
    machine.gamma = static_cast<double>(parameters[0]);
    machine.offset = static_cast<double>(parameters[1]);
    machine.degree = static_cast<double>(parameters[2]);
  }
  machine.coefficients = attributes.get_floats("coefficients");
  machine.vectors = attributes.get_floats("support_vectors");
  machine.rho = attributes.get_floats("rho");
  machine.vector_count = static_cast<std::size_t>(vector_count);
  const bool has_vectors = machine.vector_count > 0;
  const std::size_t count = has_vectors ? machine.vectors.size() : machine.coefficients.size();
  const std::size_t rows = has_vectors ? machine.vector_count : planes;
  if (count == 0 || count % rows != 0)
    return attribute_error(
        has_vectors ? "support_vectors" : "coefficients",
        fmt::format("expected {} rows of equal length, found {} values", rows, count));
  machine.features = count / rows;
  return machine;
}

Status check_count(const char* name, std::size_t expected, std::size_t found) {
  if (expected == found) return {};
  return attribute_error(name, fmt::format("expected {} values, found {}", expected, found));
}

double dot(const double* a, const float* b, std::size_t count) {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += a[i] * static_cast<double>(b[i]);
  return sum;
}

double kernel_value(const Machine& machine, const double* row, const float* vector) {
  switch (machine.kernel) {
    case Kernel::kLinear: return dot(row, vector, machine.features);
    case Kernel::kPoly:
      return std::pow(machine.gamma * dot(row, vector, machine.features) + machine.offset,
                      machine.degree);
    case Kernel::kSigmoid:
      return std::tanh(machine.gamma * dot(row, vector, machine.features) + machine.offset);
    case Kernel::kRbf: {
      double distance = 0;
      for (std::size_t i = 0; i < machine.features; ++i) {
        const double difference = row[i] - static_cast<double>(vector[i]);
        distance += difference * difference;
      }
      return std::exp(-machine.gamma * distance);
    }
  }
  return 0;
}

// ---- SVMRegressor -------------------------------------------------------------------------------

Result<Machine> read_regressor(const Attributes& attributes) {
  const std::int64_t vectors = attributes.get_int("n_supports", 0);
  if (vectors < 0)
    return attribute_error("n_supports", fmt::format("expected 0 or more, found {}", vectors));
  TESSERA_ASSIGN(Machine machine, read_machine(attributes, vectors, 1));
  if (vectors > 0)
    TESSERA_TRY(check_count("coefficients", machine.vector_count, machine.coefficients.size()));
  TESSERA_TRY(check_count("rho", 1, machine.rho.size()));
  return machine;
}

Status infer_regressor(InferContext& context) {
  TESSERA_TRY(tensor_input(context, 0).map([](const InferInput*) {}));
  TESSERA_TRY(read_regressor(context.attributes).map([](const Machine&) {}));
  set_output(context, 0, DType::kFp32, Shape{ml::row_dim(context), Dim(1)});
  return {};
}

double regress(const Machine& machine, const double* row) {
  double sum = static_cast<double>(machine.rho[0]);
  if (machine.vector_count == 0)  // a linear model, whatever the kernel
    return sum + dot(row, machine.coefficients.data(), machine.features);
  for (std::size_t i = 0; i < machine.vector_count; ++i)
    sum += static_cast<double>(machine.coefficients[i]) *
           kernel_value(machine, row, machine.vectors.data() + i * machine.features);
  return sum;
}

Status regressor_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(const Machine machine, read_regressor(context.attributes()));
  TESSERA_TRY(ml::check_features("SVMRegressor", machine.features, input->dims));
  const std::int64_t rows = ml::rows_of(input->dims);
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, DType::kFp32, {rows, 1}));
  const bool is_one_class = context.attributes().get_int("one_class", 0) != 0;
  const nn::Reals<double> x(*input);
  context.parallel_for(rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      double score = regress(machine, x.data() + row * static_cast<std::int64_t>(machine.features));
      if (is_one_class)
        score = score > 0 ? 1 : -1;
      else
        ml::apply(machine.transform, {&score, 1});
      output.as<float>()[row] = static_cast<float>(score);
    }
  });
  return {};
}

// ---- SVMClassifier ------------------------------------------------------------------------------

struct Classifier {
  Machine machine;
  Tensor labels;
  std::vector<std::size_t> first;  // vector of each class, and one more behind the last
  std::vector<float> prob_a, prob_b;
  [[nodiscard]] std::size_t classes() const { return static_cast<std::size_t>(labels.numel()); }
  [[nodiscard]] std::size_t pairs() const { return classes() * (classes() - 1) / 2; }
  [[nodiscard]] bool has_vectors() const { return machine.vector_count > 0; }
  // Scores that it gives: one for each class, or one for each pair of more than two.
  [[nodiscard]] std::size_t scores() const {
    return !has_vectors() || !prob_a.empty() || classes() == 2 ? classes() : pairs();
  }
};

Status read_vectors(const Attributes& attributes, Classifier& model, std::int64_t& total) {
  const std::vector<std::int64_t> counts = attributes.get_ints("vectors_per_class");
  total = 0;
  if (counts.empty()) return {};
  TESSERA_TRY(check_count("vectors_per_class", model.classes(), counts.size()));
  model.first = {0};
  for (const std::int64_t count : counts) {
    if (count < 0 || count > INT32_MAX)
      return attribute_error("vectors_per_class",
                             fmt::format("expected 0 or more, found {}", count));
    total += count;
    model.first.push_back(static_cast<std::size_t>(total));
  }
  return {};
}

Result<Classifier> read_classifier(const Attributes& attributes) {
  Classifier model;
  TESSERA_ASSIGN(model.labels,
                 ml::read_labels(attributes, "classlabels_strings", "classlabels_ints"));
  std::int64_t vectors = 0;
  TESSERA_TRY(read_vectors(attributes, model, vectors));
  TESSERA_ASSIGN(model.machine, read_machine(attributes, vectors, model.classes()));
  model.prob_a = attributes.get_floats("prob_a");
  model.prob_b = attributes.get_floats("prob_b");
  if (!model.has_vectors()) {
    TESSERA_TRY(check_count("rho", 1, model.machine.rho.size()));
    return model;
  }
  if (model.classes() < 2)
    return attribute_error("vectors_per_class", "expected two classes or more, found one");
  TESSERA_TRY(check_count("coefficients", model.machine.vector_count * (model.classes() - 1),
                          model.machine.coefficients.size()));
  TESSERA_TRY(check_count("rho", model.pairs(), model.machine.rho.size()));
  TESSERA_TRY(check_count("prob_b", model.prob_a.size(), model.prob_b.size()));
  if (!model.prob_a.empty()) TESSERA_TRY(check_count("prob_a", model.pairs(), model.prob_a.size()));
  return model;
}

Status infer_classifier(InferContext& context) {
  TESSERA_TRY(tensor_input(context, 0).map([](const InferInput*) {}));
  TESSERA_ASSIGN(const Classifier model, read_classifier(context.attributes));
  return ml::set_classifier_outputs(context, model.labels.dtype(), ml::row_dim(context),
                                    Dim(static_cast<std::int64_t>(model.scores())));
}

// What each pair of classes says; above 0 is a vote for the first of the two.
std::vector<double> pair_scores(const Classifier& model, const double* row) {
  const Machine& machine = model.machine;
  std::vector<double> values(machine.vector_count);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = kernel_value(machine, row, machine.vectors.data() + i * machine.features);
  // Row `other` of the coefficients, over the vectors of class `own`.
  const auto part = [&](std::size_t own, std::size_t other) {
    const float* coefficients = machine.coefficients.data() + other * machine.vector_count;
    double sum = 0;
    for (std::size_t i = model.first[own]; i < model.first[own + 1]; ++i)
      sum += static_cast<double>(coefficients[i]) * values[i];
    return sum;
  };
  std::vector<double> scores;
  for (std::size_t i = 0; i < model.classes(); ++i)
    for (std::size_t j = i + 1; j < model.classes(); ++j)
      scores.push_back(part(i, j - 1) + part(j, i) +
                       static_cast<double>(machine.rho[scores.size()]));
  return scores;
}

std::size_t most_votes(std::size_t classes, const std::vector<double>& scores) {
  std::vector<std::size_t> votes(classes, 0);
  std::size_t pair = 0;
  for (std::size_t i = 0; i < classes; ++i)
    for (std::size_t j = i + 1; j < classes; ++j) ++votes[scores[pair++] > 0 ? i : j];
  return static_cast<std::size_t>(std::max_element(votes.begin(), votes.end()) - votes.begin());
}

struct Verdict {
  std::size_t best = 0;
  std::vector<double> scores;
};

// The scores where no vectors are: each class has a plane.
Verdict classify_by_planes(const Classifier& model, const double* row) {
  Verdict verdict;
  const Machine& machine = model.machine;
  for (std::size_t i = 0; i < model.classes(); ++i)
    verdict.scores.push_back(
        kernel_value(machine, row, machine.coefficients.data() + i * machine.features) +
        static_cast<double>(machine.rho[0]));
  verdict.best = static_cast<std::size_t>(
      std::max_element(verdict.scores.begin(), verdict.scores.end()) - verdict.scores.begin());
  ml::apply(machine.transform, verdict.scores);
  return verdict;
}

Verdict classify(const Classifier& model, const double* row) {
  if (!model.has_vectors()) return classify_by_planes(model, row);
  Verdict verdict;
  const ml::PostTransform transform = model.machine.transform;
  verdict.scores = pair_scores(model, row);
  verdict.best = most_votes(model.classes(), verdict.scores);
  if (!model.prob_a.empty()) {
    for (std::size_t pair = 0; pair < verdict.scores.size(); ++pair)
      verdict.scores[pair] =
          ml::pair_probability(verdict.scores[pair], static_cast<double>(model.prob_a[pair]),
                               static_cast<double>(model.prob_b[pair]));
    verdict.scores = ml::couple(model.classes(), verdict.scores);
  } else if (model.classes() == 2) {
    // As in ONNX Runtime, the rest to 1 where a transform is asked for.
    const auto two =
        ml::two_scores(transform, verdict.scores[0], transform != ml::PostTransform::kNone);
    verdict.scores.assign(two.begin(), two.end());
    return verdict;
  }
  ml::apply(transform, verdict.scores);
  return verdict;
}

Status classifier_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(const Classifier model, read_classifier(context.attributes()));
  TESSERA_TRY(ml::check_features("SVMClassifier", model.machine.features, input->dims));
  const std::int64_t rows = ml::rows_of(input->dims);
  const auto columns = static_cast<std::int64_t>(model.scores());
  TESSERA_ASSIGN(const MutableTensorView labels, context.output(0, model.labels.dtype(), {rows}));
  MutableTensorView output;
  if (context.output_count() > 1) {
    TESSERA_ASSIGN(output, context.output(1, DType::kFp32, {rows, columns}));
  }
  const nn::Reals<double> x(*input);
  const auto features = static_cast<std::int64_t>(model.machine.features);
  context.parallel_for(rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const Verdict verdict = classify(model, x.data() + row * features);
      ml::put_label(model.labels, verdict.best, labels, row);
      if (output.data == nullptr) continue;
      for (std::size_t i = 0; i < verdict.scores.size(); ++i)
        output.as<float>()[row * columns + static_cast<std::int64_t>(i)] =
            static_cast<float>(verdict.scores[i]);
    }
  });
  return {};
}

OpSchema machine_op(std::string_view name, InferFn infer, KernelFn kernel) {
  OpSchema op;
  op.domain = "ai.onnx.ml";
  op.name = name;
  op.versions = {1};
  op.inputs = {required("X", "T1")};
  op.attributes = {
      attr("coefficients", AttrType::kFloats), attr("kernel_params", AttrType::kFloats),
      attr("kernel_type", AttrType::kString),  attr("post_transform", AttrType::kString),
      attr("rho", AttrType::kFloats),          attr("support_vectors", AttrType::kFloats)};
  op.type_variables = {
      {"T1", ml::kRowTypes}, {"T2", kStringType | kInt64Type}, {"tensor(float)", kFp32Type}};
  op.structure = Structure::kOther;
  op.infer = infer;
  op.kernel = kernel;
  return op;
}

}  // namespace

std::vector<OpSchema> support_vector_ops() {
  OpSchema classifier = machine_op("SVMClassifier", infer_classifier, classifier_kernel);
  for (const FormalAttr& extra :
       {attr("classlabels_ints", AttrType::kInts), attr("classlabels_strings", AttrType::kStrings),
        attr("prob_a", AttrType::kFloats), attr("prob_b", AttrType::kFloats),
        attr("vectors_per_class", AttrType::kInts)})
    classifier.attributes.push_back(extra);
  classifier.outputs = {required("Y", "T2"), optional("Z", "tensor(float)")};
  classifier.unspecified =
      "of equal votes the first class is taken; without prob_a, two classes have scores as in ONNX "
      "Runtime, and more classes one for each pair";
  OpSchema regressor = machine_op("SVMRegressor", infer_regressor, regressor_kernel);
  regressor.attributes.push_back(attr("n_supports", AttrType::kInt));
  regressor.attributes.push_back(attr("one_class", AttrType::kInt));
  regressor.outputs = {required("Y", "tensor(float)")};
  regressor.unspecified = "one_class gives 1 for a score above 0, else -1, and no transform";
  return {classifier, regressor};
}

}  // namespace tessera::ops
