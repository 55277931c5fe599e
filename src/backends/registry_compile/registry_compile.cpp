#include "backends/registry_compile/registry_compile.h"

#include "backends/cpu/compile/cpu_device.h"
#include "backends/reference/compile/reference_device.h"
#include "backends/simulated/compile/simulated_device.h"

namespace tessera::backends {

Result<std::unique_ptr<CompileDevice>> make_compile_device(const std::string& entry) {
  if (entry.ends_with(".json")) return simulated::make_simulated_device(entry);
  if (entry == "cpu") return make_cpu_device();
  if (entry == "reference") return reference::make_reference_device();
  return fail(
      ErrorCode::kNotFound,
      "no device '" + entry + "' here: expected cpu, reference or a profile file ending in .json");
}

std::vector<std::string> available_devices() {
  return {"cpu", "reference"};
}

}  // namespace tessera::backends
