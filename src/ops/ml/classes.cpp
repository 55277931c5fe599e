#include "ops/ml/classes.h"

#include <fmt/format.h>

#include <vector>

#include "ops/infer_util.h"

namespace tessera::ops::ml {

Result<Tensor> read_labels(const Attributes& attributes, const char* strings, const char* ints) {
  const AttributeValue* names = attributes.find(strings);
  const AttributeValue* numbers = attributes.find(ints);
  if ((names == nullptr) == (numbers == nullptr))
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("expected one of the attributes '{}' and '{}', found {}", strings, ints,
                            names == nullptr ? "none" : "both"));
  Tensor labels;
  if (names != nullptr) {
    if (const auto* list = std::get_if<std::vector<std::string>>(names))
      labels =
          Tensor::of<std::string>(DType::kString, {static_cast<std::int64_t>(list->size())}, *list);
  } else if (const auto* list = std::get_if<std::vector<std::int64_t>>(numbers)) {
    labels =
        Tensor::of<std::int64_t>(DType::kInt64, {static_cast<std::int64_t>(list->size())}, *list);
  }
  if (labels.is_defined() && labels.numel() > 0) return labels;
  return attribute_error(names != nullptr ? strings : ints, "expected a label or more, found none");
}

void put_label(const Tensor& labels, std::size_t index, const MutableTensorView& output,
               std::int64_t at) {
  if (labels.dtype() == DType::kString)
    output.as<std::string>()[at] = labels.span<std::string>()[index];
  else
    output.as<std::int64_t>()[at] = labels.span<std::int64_t>()[index];
}

Status set_classifier_outputs(InferContext& context, DType label, const Dim& rows,
                              const Dim& classes) {
  set_output(context, 0, label, Shape{rows});
  set_output(context, 1, DType::kFp32, Shape{rows, classes});
  return {};
}

std::array<double, 2> two_scores(PostTransform transform, double score, bool is_probability) {
  std::array<double, 2> scores = {is_probability ? 1 - score : -score, score};
  if (transform == PostTransform::kLogistic) scores[0] = -score;
  if (transform == PostTransform::kLogistic || transform == PostTransform::kProbit)
    ml::apply(transform, scores);
  return scores;
}

}  // namespace tessera::ops::ml
