#pragma once

// Comparison of outputs as the shared cases ask for it.

#include <string>

#include "base/tensor.h"
#include "io/npz.h"

namespace tessera::testing {

struct Tolerance {
  double rtol = 0;
  double atol = 0;
};

// What is wrong with `found`; empty where it is right: equal dtype and dims; floats within
// atol + rtol * |expected|, NaN where NaN is expected, infinities equal; everything else equal,
// unless atol is 1 or more. A dtype that npz lacks stands there as unsigned integers of its width.
std::string difference(const Tensor& expected, const Tensor& found, const Tolerance& tolerance);

// Every expected output by name, and no other one.
std::string difference(const io::NamedTensors& expected, const io::NamedTensors& found,
                       const Tolerance& tolerance);

}  // namespace tessera::testing
