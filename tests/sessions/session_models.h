#pragma once

// Small models for tests with many sessions. Each has the input "x" of [n, ...], n at will, and the
// output "y"; together they reach the library's and own kernels, branches and loops, sizes that
// only the run decides, and a device with memory of its own. At n = 12 the kernels of convolutions,
// products, attention, recurrent cells and elementwise groups are worth several threads.

#include <filesystem>
#include <string>
#include <vector>

#include "base/dims.h"

namespace tessera::testing {

struct SessionModel {
  std::string name;
  std::string onnx;
  Dims item;  // the sizes of x behind n
  bool with_npu = false;
};

std::vector<SessionModel> session_models();

// A simulated device that would rather do everything itself, but for Erf.
std::string quick_npu_profile();

}  // namespace tessera::testing
