#pragma once

// Reference kernel of Resize.

#include <vector>

#include "ops/op.h"

namespace tessera::ops::nn {

Status resize_kernel(KernelContext& context);

// Elements of a float tensor (fp32, fp64, fp16, bf16) as fp32.
std::vector<float> float_elements(const TensorView& view);

}  // namespace tessera::ops::nn
