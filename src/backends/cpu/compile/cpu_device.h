#pragma once

// The compile half of the CPU: oneDNN behind its shim, own vectorised kernels for the rest.

#include <memory>

#include "backends/compile_interface.h"

namespace tessera::backends {

// Device "cpu" in memory "host". Its rates are conservative figures for this processor's
// instruction set, until someone puts measured ones in their place. Never null; nothing to fail.
std::unique_ptr<CompileDevice> make_cpu_device();

// Measures this processor in about a third of a second: fp32 GFLOP/s of a product through oneDNN on
// `threads` threads, memory bandwidth of a copy larger than the caches. Errors: out of memory,
// oneDNN refuses.
Result<DeviceRates> measure_rates(int threads);

}  // namespace tessera::backends
