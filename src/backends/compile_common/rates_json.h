#pragma once

// What the files of devices (tessera.device/1), simulated and real, have in common. For the sources
// that read such files; errors name the key, what was expected and what was found.

#include <fmt/format.h>

#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "backends/compile_interface.h"

namespace tessera::backends {

template <typename... Args>
tl::unexpected<Error> wrong(std::string_view key, fmt::format_string<Args...> format,
                            Args&&... args) {
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("'{}': ", key) + fmt::format(format, std::forward<Args>(args)...));
}

// A JSON object with the schema of a device's file.
Result<nlohmann::json> parse_device_json(std::string_view text);

// Whether `object`, called `where`, is one with no other keys than the known ones.
Status check_keys(std::string_view where, const nlohmann::json& object,
                  std::initializer_list<std::string_view> known);

Result<double> number(std::string_view key, const nlohmann::json& value);  // at least 0

// An absent key leaves `target` as it is.
Status read_number(const nlohmann::json& object, const char* key, double& target);

Result<DType> dtype(std::string_view key, const std::string& name);

// gflops, memory_gb_per_s, launch_us, sync_us, link; absent keys leave what is there.
Status read_rates(const nlohmann::json& json, DeviceRates& rates);

}  // namespace tessera::backends
