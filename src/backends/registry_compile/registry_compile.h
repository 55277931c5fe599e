#pragma once

// The compile halves that this build has, in an explicit list.

#include <memory>
#include <string>
#include <vector>

#include "backends/compile_common/rates_file.h"
#include "backends/compile_interface.h"

namespace tessera::backends {

// `entry` of --devices: a name of a device that is here ("cpu", "reference"), or a file ending in
// ".json": the profile of a simulated device, or the measured rates of a real one. Errors: an
// unknown name (and those that are known), a malformed file (file, key, expected, found), rates of
// another processor.
Result<std::unique_ptr<CompileDevice>> make_compile_device(const std::string& entry);

// Measures the rates of the device "cpu", as far as they are the processor's. Errors: threads below
// 1, out of memory.
Result<RatesFile> measure_device(int threads);

// Names of the devices that are here.
std::vector<std::string> available_devices();

}  // namespace tessera::backends
