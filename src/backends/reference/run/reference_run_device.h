#pragma once

// The run half of the reference backend: the op table's kernels in host memory, row-major. The
// oracle, and the last resort.

#include <memory>

#include "backends/run_interface.h"

namespace tessera::backends::reference {

std::unique_ptr<RunDevice> make_reference_run_device(std::string name);

}  // namespace tessera::backends::reference
