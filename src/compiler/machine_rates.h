#pragma once

// The rates of this machine: those of its processor and those of the runtime's threads.

#include "backends/compile_common/rates_file.h"

namespace tessera::compiler {

// Takes one to three seconds on `threads` threads. Where others use the cores all the time, the
// rates of the threads may stay 0, and the file says that it was busy. Errors: threads below 1, out
// of memory.
Result<backends::RatesFile> measure_machine(int threads);

}  // namespace tessera::compiler
