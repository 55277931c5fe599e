#pragma once

// Element-wise comparison of outputs.

#include <string>

#include "base/tensor.h"

namespace tessera::tools {

struct Difference {
  double max_abs = 0;        // largest |a - b|
  double max_expected = 0;   // largest |expected|
  std::int64_t outside = 0;  // elements with |a - b| > atol * max_expected + rtol * |expected|, or
                             // unequal where not finite
  std::string problem;       // dtype or dims disagree: expected, found
};

// `atol` counts in units of the largest expected element. Integers and booleans must be equal.
Difference compare(const Tensor& expected, const Tensor& found, double rtol, double atol);

}  // namespace tessera::tools
