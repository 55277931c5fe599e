// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/nn/nn_util.h"
#include "ops/nn/reals.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

enum class Reduce : std::uint8_t { kNone, kSum, kMean };

Result<Reduce> reduce_of(const Attributes& attributes) {
  const std::string reduction = attributes.get_string("reduction", "mean");
  if (reduction == "none") return Reduce::kNone;
  if (reduction == "sum") return Reduce::kSum;
  if (reduction == "mean") return Reduce::kMean;
  return attribute_error("reduction",
                         fmt::format("expected 'none', 'sum' or 'mean', found '{}'", reduction));
}

// The sizes of the labels: those of the scores without axis 1.
template <typename Sizes>
Sizes label_sizes(const Sizes& scores) {
  Sizes labels{scores[0]};
  labels.insert(labels.end(), scores.begin() + 2, scores.end());
  return labels;
}

Status infer_loss(InferContext& context) {
  TESSERA_ASSIGN(const Reduce reduce, reduce_of(context.attributes));
  TESSERA_ASSIGN(const InferInput* scores, tensor_input(context, 0));
  TESSERA_TRY(require_dtype(context, 1, kIndexTypes));
  TESSERA_TRY(require_rank_at_least(context, 0, 2));
  std::optional<Shape> loss;
  if (reduce != Reduce::kNone) loss.emplace();
  if (const auto& shape = scores->type.shape) {
    const auto rank = static_cast<std::int64_t>(shape->size());
    TESSERA_TRY(require_rank(context, 1, rank - 1));
    if (has_input(context, 2)) TESSERA_TRY(require_rank(context, 2, 1));
    if (!loss) loss = label_sizes(*shape);
  }
  set_output(context, 0, scores->type.dtype, std::move(loss));
  set_output(context, 1, scores->type.dtype, scores->type.shape);
  return {};
}

// Log-probabilities as [batch, classes, inner], and what their labels say.
struct Labelled {
  std::int64_t batch = 1, classes = 1, inner = 1;
  std::vector<std::int64_t> labels;  // [batch, inner]
  std::vector<double> weights;       // by class; empty: all 1
  std::optional<std::int64_t> ignored;

  [[nodiscard]] bool counts(std::int64_t label) const { return !ignored || label != *ignored; }
  [[nodiscard]] double weight(std::int64_t label) const {
    return weights.empty() ? 1 : weights[static_cast<std::size_t>(label)];
  }
};

Result<Labelled> read_labels(const KernelContext& context, std::string_view op) {
  TESSERA_ASSIGN(const TensorView* scores, kernel_input(context, 0));
  TESSERA_ASSIGN(const TensorView* labels, kernel_input(context, 1));
  if (scores->dims.size() < 2 || labels->dims != label_sizes(scores->dims)) {
    return nn::op_error(op, fmt::format("expected labels of the scores' sizes without axis 1, "
                                        "found {} beside scores {}",
                                        to_string(labels->dims), to_string(scores->dims)));
  }
  Labelled read{scores->dims[0],
                scores->dims[1],
                count_between(scores->dims, 2, scores->dims.size()),
                to_int64_vector(*labels),
                {},
                {}};
  if (context.attributes().has("ignore_index"))
    read.ignored = context.attributes().get_int("ignore_index", 0);
  if (const TensorView* weights = context.input(2)) {
    if (weights->dims != Dims{read.classes})
      return nn::op_error(op, fmt::format("expected one weight for each of {} classes, found {}",
                                          read.classes, to_string(weights->dims)));
    const nn::Reals<double> reals(*weights);
    read.weights.assign(reals.data(), reals.data() + read.classes);
  }
  for (const std::int64_t label : read.labels) {
    if (read.counts(label) && (label < 0 || label >= read.classes))
      return nn::op_error(
          op, fmt::format("expected labels from 0 to {}, found {}", read.classes - 1, label));
  }
  return read;
}

Status write_loss(KernelContext& context, const Labelled& read, const double* log_probabilities) {
  TESSERA_ASSIGN(const Reduce reduce, reduce_of(context.attributes()));
  std::vector<double> losses(read.labels.size());
  double sum = 0;
  double weights = 0;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const std::int64_t label = read.labels[i];
    if (!read.counts(label)) continue;
    const auto at = static_cast<std::int64_t>(i);
    const std::int64_t from =
        (at / read.inner * read.classes + label) * read.inner + at % read.inner;
    losses[i] = -log_probabilities[from] * read.weight(label);
    sum += losses[i];
    weights += read.weight(label);
  }
  if (reduce != Reduce::kNone) losses = {reduce == Reduce::kSum ? sum : sum / weights};
  const TensorView& scores = *context.input(0);
  const Dims dims = reduce == Reduce::kNone ? label_sizes(scores.dims) : Dims();
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, scores.dtype, dims));
  cast_elements({DType::kFp64, dims, losses.data()}, output, true);
  return {};
}

Status nll_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const Labelled read, read_labels(context, "NegativeLogLikelihoodLoss"));
  const nn::Reals<double> input(*context.input(0));
  return write_loss(context, read, input.data());
}

// log(softmax) along the classes of one position, `inner` elements apart.
void log_softmax(const double* from, double* to, std::int64_t classes, std::int64_t inner) {
  double top = -std::numeric_limits<double>::infinity();
  for (std::int64_t c = 0; c < classes; ++c) top = std::max(top, from[c * inner]);
  double sum = 0;
  for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(from[c * inner] - top);
  const double log_sum = std::log(sum) + top;
  for (std::int64_t c = 0; c < classes; ++c) to[c * inner] = from[c * inner] - log_sum;
}

Status cross_entropy_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const Labelled read, read_labels(context, "SoftmaxCrossEntropyLoss"));
  const TensorView& view = *context.input(0);
  const nn::Reals<double> scores(view);
  std::vector<double> logs(static_cast<std::size_t>(view.numel()));
  for (std::int64_t i = 0; i < read.batch * read.inner; ++i) {
    const std::int64_t at = i / read.inner * read.classes * read.inner + i % read.inner;
    log_softmax(scores.data() + at, logs.data() + at, read.classes, read.inner);
  }
  TESSERA_TRY(write_loss(context, read, logs.data()));
  if (context.output_count() < 2) return {};
  TESSERA_ASSIGN(const MutableTensorView output, context.output(1, view.dtype, view.dims));
  cast_elements({DType::kFp64, view.dims, logs.data()}, output, true);
  return {};
}

OpSchema loss(std::string_view name, std::vector<int> versions, KernelFn kernel) {
  OpSchema op;
  op.name = name;
  op.versions = std::move(versions);
  op.unspecified =
      "a mean is over the labels that are not ignored, and NaN where their weights add up to 0; a "
      "label out of range is an error";
  op.attributes = {attr("ignore_index", AttrType::kInt), attr("reduction", AttrType::kString)};
  op.type_variables = {{"T", kFloatTypes}, {"Tind", kIndexTypes}};
  op.structure = Structure::kReduction;
  op.infer = infer_loss;
  op.kernel = kernel;
  return op;
}

}  // namespace

std::vector<OpSchema> loss_ops() {
  OpSchema nll = loss("NegativeLogLikelihoodLoss", {12, 13, 22}, nll_kernel);
  nll.inputs = {required("input", "T"), required("target", "Tind"), optional("weight", "T")};
  nll.outputs = {required("loss", "T")};
  nll.work = nn::work_per_input_element<1>;

  OpSchema cross_entropy = loss("SoftmaxCrossEntropyLoss", {12, 13}, cross_entropy_kernel);
  cross_entropy.inputs = {required("scores", "T"), required("labels", "Tind"),
                          optional("weights", "T")};
  cross_entropy.outputs = {required("output", "T"), optional("log_prob", "T")};
  cross_entropy.work = nn::work_per_input_element<5>;
  return {nll, cross_entropy};
}

}  // namespace tessera::ops
