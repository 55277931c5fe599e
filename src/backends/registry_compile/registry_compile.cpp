#include "backends/registry_compile/registry_compile.h"

#include <fmt/format.h>

#include "backends/cpu/compile/cpu_device.h"
#include "backends/reference/compile/reference_device.h"
#include "backends/simulated/compile/simulated_device.h"
#include "base/file.h"

namespace tessera::backends {
namespace {

Result<std::unique_ptr<CompileDevice>> make_real_device(std::string_view rates) {
  TESSERA_ASSIGN(const RatesFile file, parse_rates(rates));
  if (file.name != "cpu")
    return fail(ErrorCode::kNotFound,
                fmt::format("'name': expected cpu, found '{}': no rates are measured of other "
                            "devices",
                            file.name));
  return make_cpu_device(file);
}

}  // namespace

Result<std::unique_ptr<CompileDevice>> make_compile_device(const std::string& entry) {
  if (entry.ends_with(".json")) {
    TESSERA_ASSIGN(const std::string text, read_file(entry));
    if (!describes_real_device(text)) return simulated::make_simulated_device(entry);
    auto device = make_real_device(text);
    if (!device) return tl::unexpected(in_context(std::move(device).error(), entry));
    return device;
  }
  if (entry == "cpu") return make_cpu_device();
  if (entry == "reference") return reference::make_reference_device();
  return fail(
      ErrorCode::kNotFound,
      "no device '" + entry + "' here: expected cpu, reference or a profile file ending in .json");
}

Result<RatesFile> measure_device(int threads) {
  TESSERA_ASSIGN(MeasuredRates measured, measure_rates(threads));
  return RatesFile{"cpu", std::move(measured), threads, make_cpu_device()->identity()};
}

std::vector<std::string> available_devices() {
  return {"cpu", "reference"};
}

}  // namespace tessera::backends
