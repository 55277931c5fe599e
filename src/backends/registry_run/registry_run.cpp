#include "backends/registry_run/registry_run.h"

#include <string>

#include "backends/cpu/run/cpu_run_device.h"
#include "backends/reference/run/reference_run_device.h"
#include "backends/simulated/run/simulated_run_device.h"

namespace tessera::backends {

Result<std::unique_ptr<RunDevice>> make_run_device(const artefact::DeviceDecl& device) {
  if (device.backend == "cpu") return make_cpu_run_device();
  if (device.backend == "simulated") return simulated::make_simulated_run_device(device);
  if (device.backend == "reference") return reference::make_reference_run_device(device.name);
  return fail(ErrorCode::kUnavailable, "device '" + device.name + "' needs the backend '" +
                                           device.backend +
                                           "': this build has cpu, simulated, reference");
}

}  // namespace tessera::backends
