#pragma once

// The compile halves that this build has, in an explicit list.

#include <memory>
#include <string>
#include <vector>

#include "backends/compile_interface.h"

namespace tessera::backends {

// `entry` of --devices: a name of a device that is here ("cpu", "reference"), or a file with a
// profile, ending in ".json". Errors: an unknown name (and those that are known), a malformed
// profile (file, key, expected, found).
Result<std::unique_ptr<CompileDevice>> make_compile_device(const std::string& entry);

// Names of the devices that are here.
std::vector<std::string> available_devices();

}  // namespace tessera::backends
