#pragma once

// The compile half of the CPU: oneDNN behind its shim, own vectorised kernels for the rest.

#include <memory>

#include "backends/compile_common/rates_file.h"
#include "backends/compile_interface.h"

namespace tessera::backends {

// Device "cpu" in memory "host". Its rates are conservative figures for this processor's
// instruction set. Never null; nothing to fail.
std::unique_ptr<CompileDevice> make_cpu_device();

// The same with measured rates. Errors: they are another processor's (what differs).
Result<std::unique_ptr<CompileDevice>> make_cpu_device(const RatesFile& file);

// Measures this processor on `threads` threads in one to three seconds: a product of fp32 and one
// of int8 that stay in the caches; copying and reading in each cache that /sys tells, and beyond
// all. Medians over interleaved rounds; what was taken while a thread stood without a core counts
// only where there is nothing else, and then the best of it. Leaves hand_over_us and wake_up_us at
// 0: they are the runtime's. Errors: threads below 1, out of memory, oneDNN refuses.
Result<MeasuredRates> measure_rates(int threads);

}  // namespace tessera::backends
