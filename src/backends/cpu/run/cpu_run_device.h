#pragma once

// The run half of the CPU.

#include <memory>

#include "backends/run_interface.h"

namespace tessera::backends {

// Device "cpu": host memory, kernels "onednn.*", "simd.*", "cpu.*". Never null. Its members may be
// called from any thread.
std::unique_ptr<RunDevice> make_cpu_run_device();

}  // namespace tessera::backends
