#pragma once

// The file of a real device's measured rates: tessera.device/1.1 with "kind": "real".

#include <map>
#include <string>
#include <string_view>

#include "backends/compile_interface.h"

namespace tessera::backends {

struct RatesFile {
  std::string name;  // of the device, "cpu"
  MeasuredRates measured;
  int threads = 1;                              // that were measured
  std::map<std::string, std::string> identity;  // of the processor and libraries; empty: any
};

// Whether a device's file describes a real device; else it is a simulated one's profile.
bool describes_real_device(std::string_view json);

// A device that shares host memory and whose regions cost nothing to start, but for what the file
// says. Errors name the key, what was expected and what was found; unknown keys are errors.
Result<RatesFile> parse_rates(std::string_view json);
std::string print_rates(const RatesFile& file);  // parses back; four digits of each rate

}  // namespace tessera::backends
