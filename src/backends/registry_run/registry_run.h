#pragma once

// The run halves that this build has, in an explicit list.

#include <memory>
#include <string_view>

#include "backends/run_interface.h"

namespace tessera::backends {

// A device as the artefact declares it. Errors: a backend that this build lacks (and those that it
// has), a profile that does not parse, a device that cannot start.
Result<std::unique_ptr<RunDevice>> make_run_device(const artefact::DeviceDecl& device);

}  // namespace tessera::backends
