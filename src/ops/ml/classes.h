#pragma once

// Labels and scores of classifiers.

#include <array>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "base/tensor.h"
#include "ops/ml/post_transform.h"
#include "ops/op.h"

namespace tessera::ops::ml {

// The labels of the classes: strings or int64, rank 1, of the one of two attributes that is there.
// Errors: both are, or none; no label at all.
Result<Tensor> read_labels(const Attributes& attributes, const char* strings, const char* ints);

// Label `index` becomes element `at` of the output.
void put_label(const Tensor& labels, std::size_t index, const MutableTensorView& output,
               std::int64_t at);

// Sets the outputs of a classifier: labels [rows], scores [rows, classes].
Status set_classifier_outputs(InferContext& context, DType label, const Dim& rows,
                              const Dim& classes);

// The scores of two classes where one number tells them apart, that of the second class: the other
// has what is left to 1 where the number is a probability, else the number with the other sign. The
// standard does not say so; ONNX Runtime does it, with SOFTMAX and SOFTMAX_ZERO as with NONE.
std::array<double, 2> two_scores(PostTransform transform, double score, bool is_probability);

}  // namespace tessera::ops::ml
