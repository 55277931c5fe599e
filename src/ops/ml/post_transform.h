#pragma once

// What ai.onnx.ml does to the scores of a row at the end.

#include <cstdint>
#include <span>

#include "base/error.h"
#include "ops/attributes.h"

namespace tessera::ops::ml {

enum class PostTransform : std::uint8_t { kNone, kSoftmax, kLogistic, kSoftmaxZero, kProbit };

// By its number in the standard. Error: "attribute 'post_transform': expected a number from 0 to 4,
// found 7".
Result<PostTransform> post_transform(std::int64_t number);

// By its name in the standard, the attribute 'post_transform'; NONE where it is absent. Error:
// "attribute 'post_transform': expected 'NONE', 'SOFTMAX', 'LOGISTIC', 'SOFTMAX_ZERO' or 'PROBIT',
// found 'TANH'".
Result<PostTransform> named_post_transform(const Attributes& attributes);

void apply(PostTransform transform, std::span<double> scores);

}  // namespace tessera::ops::ml
