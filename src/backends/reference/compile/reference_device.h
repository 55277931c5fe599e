#pragma once

// The compile half of the reference backend: every operator that has a reference kernel, row-major,
// in its own dtype.

#include <memory>

#include "backends/compile_interface.h"

namespace tessera::backends::reference {

std::unique_ptr<CompileDevice> make_reference_device();

}  // namespace tessera::backends::reference
