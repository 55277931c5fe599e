#include "ops/ml/post_transform.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "ops/infer_util.h"

namespace tessera::ops::ml {
namespace {

// `keeps_zeros`: scores of 0 are no part of it, and stay.
void softmax(std::span<double> scores, bool keeps_zeros) {
  double top = -std::numeric_limits<double>::infinity();
  for (const double score : scores) top = std::max(top, score);
  double sum = 0;
  for (double& score : scores) {
    if (keeps_zeros && score == 0) continue;
    sum += score = std::exp(score - top);
  }
  for (double& score : scores) score = sum == 0 ? score : score / sum;
}

// The inverse of erf by Winitzki's formula, as the standard's own implementation has it.
double inverse_erf(double x) {
  const double log = std::log((1 - x) * (1 + x));
  constexpr double kA = 0.147;
  const double term = 2 / (std::numbers::pi * kA) + 0.5 * log;
  return std::copysign(std::sqrt(-term + std::sqrt(term * term - log / kA)), x);
}

}  // namespace

Result<PostTransform> post_transform(std::int64_t number) {
  if (number >= 0 && number <= 4) return static_cast<PostTransform>(number);
  return attribute_error("post_transform",
                         fmt::format("expected a number from 0 to 4, found {}", number));
}

Result<PostTransform> named_post_transform(const Attributes& attributes) {
  constexpr std::string_view kNames[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  const std::string name = attributes.get_string("post_transform", "NONE");
  const auto* const found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found != std::end(kNames)) return static_cast<PostTransform>(found - std::begin(kNames));
  return attribute_error("post_transform",
                         fmt::format("expected 'NONE', 'SOFTMAX', 'LOGISTIC', 'SOFTMAX_ZERO' or "
                                     "'PROBIT', found '{}'",
                                     name));
}

void apply(PostTransform transform, std::span<double> scores) {
  switch (transform) {
    case PostTransform::kNone: return;
    case PostTransform::kSoftmax: return softmax(scores, false);
    case PostTransform::kSoftmaxZero: return softmax(scores, true);
    case PostTransform::kLogistic:
      for (double& score : scores) score = 1 / (1 + std::exp(-score));
      return;
    case PostTransform::kProbit:
      for (double& score : scores) score = std::numbers::sqrt2 * inverse_erf(2 * score - 1);
      return;
  }
}

}  // namespace tessera::ops::ml
