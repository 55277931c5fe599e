#pragma once

// The compile half of simulated devices: a profile file says what they support and how fast they
// are.

#include <memory>
#include <string>
#include <string_view>

#include "backends/compile_interface.h"

namespace tessera::backends::simulated {

// Reads a profile. Errors: see parse_profile, with the file's name; a device that cannot start
// (mock: init_fails).
Result<std::unique_ptr<CompileDevice>> make_simulated_device(const std::string& path);

// The same from text.
Result<std::unique_ptr<CompileDevice>> make_simulated_device_from_text(std::string_view json);

}  // namespace tessera::backends::simulated
