#pragma once

// What inference of the convolutions shares: those of numbers, and those of quantized ones.

#include <cstddef>

#include "ops/op.h"

namespace tessera::ops::nn {

// The first output: of that dtype, its sizes those of input 0 (X) and of the weight and the
// optional bias at those inputs. Errors: see plan_conv.
Status infer_conv_operands(InferContext& context, std::size_t w_index, std::size_t b_index,
                           DType dtype);

}  // namespace tessera::ops::nn
