#pragma once

// Elements of float constants as double, for passes that compute with weights.

#include <cstdint>
#include <optional>
#include <vector>

#include "base/tensor.h"

namespace tessera::passes {

// fp64, fp32, fp16, bf16.
bool has_float_elements(DType dtype);

// Every element, exactly. TESSERA_CHECKs the dtype.
std::vector<double> float_elements(const TensorView& view);

// The nearest value of the dtype, as double: infinite where it overflows, 0 where it underflows.
double round_to(DType dtype, double value);

// A tensor of the dtype from elements that round_to gave; `elements` has as many as `dims` say
// (checked).
Tensor from_float_elements(DType dtype, const Dims& dims, const std::vector<double>& elements);

}  // namespace tessera::passes
