#pragma once

// The run half of simulated devices: tensors really lie in the declared layout and dtype, in memory
// that only the device touches; numerics are those of the reference in the declared dtype. Its
// times are modelled, never measured.

#include <memory>

#include "backends/run_interface.h"

namespace tessera::backends::simulated {

Result<std::unique_ptr<RunDevice>> make_simulated_run_device(const artefact::DeviceDecl& device);

}  // namespace tessera::backends::simulated
