#include "backends/compile_common/rates_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tessera::backends {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kSchema = "tessera.device/1.0";
constexpr std::string_view kSchemaMajor = "tessera.device/1.";

Status read_link(const Json& json, DeviceRates& rates) {
  const auto link = json.find("link");
  if (link == json.end()) return {};
  TESSERA_TRY(check_keys("link", *link, {"gb_per_s", "latency_us", "unified"}));
  TESSERA_TRY(read_number(*link, "gb_per_s", rates.link_gb_per_s));
  TESSERA_TRY(read_number(*link, "latency_us", rates.link_latency_us));
  if (rates.link_gb_per_s <= 0)
    return wrong("gb_per_s", "expected a number above 0, found {}", rates.link_gb_per_s);
  if (const auto unified = link->find("unified"); unified != link->end()) {
    if (!unified->is_boolean())
      return wrong("unified", "expected true or false, found {}", unified->dump());
    rates.unified = unified->get<bool>();
  }
  return {};
}

}  // namespace

Result<Json> parse_device_json(std::string_view text) {
  auto json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded())
    return fail(ErrorCode::kInvalidArgument, "not a device profile: expected JSON");
  if (!json.is_object())
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format("not a device profile: expected an object, found {}", json.type_name()));
  const auto schema = json.value("schema", Json());
  if (!schema.is_string() || !schema.get<std::string>().starts_with(kSchemaMajor))
    return wrong("schema", "expected {}, found {}", kSchema, schema.dump());
  return json;
}

Status check_keys(std::string_view where, const Json& object,
                  std::initializer_list<std::string_view> known) {
  if (!object.is_object()) return wrong(where, "expected an object, found {}", object.dump());
  for (const auto& [key, value] : object.items())
    if (std::ranges::find(known, key) == known.end())
      return wrong(key, "unknown key in {}: expected one of {}", where, fmt::join(known, ", "));
  return {};
}

Result<double> number(std::string_view key, const Json& value) {
  if (!value.is_number() || value.get<double>() < 0)
    return wrong(key, "expected a number of at least 0, found {}", value.dump());
  return value.get<double>();
}

Status read_number(const Json& object, const char* key, double& target) {
  if (const auto found = object.find(key); found != object.end()) {
    TESSERA_ASSIGN(target, number(key, *found));
  }
  return {};
}

Result<DType> dtype(std::string_view key, const std::string& name) {
  const DType found = dtype_from_string(name);
  if (found == DType::kUndefined)
    return wrong(key, "expected a dtype such as fp32, fp16 or int8, found '{}'", name);
  return found;
}

Status read_rates(const Json& json, DeviceRates& rates) {
  if (const auto gflops = json.find("gflops"); gflops != json.end()) {
    if (!gflops->is_object())
      return wrong("gflops", "expected an object, found {}", gflops->dump());
    for (const auto& [name, value] : gflops->items()) {
      TESSERA_ASSIGN(const DType found, dtype("gflops", name));
      TESSERA_ASSIGN(const double rate, number(name, value));
      if (rate <= 0) return wrong(name, "expected a rate above 0, found {}", value.dump());
      rates.gflops[found] = rate;
    }
  }
  TESSERA_TRY(read_number(json, "memory_gb_per_s", rates.memory_gb_per_s));
  if (rates.memory_gb_per_s <= 0)
    return wrong("memory_gb_per_s", "expected a number above 0, found {}", rates.memory_gb_per_s);
  TESSERA_TRY(read_number(json, "launch_us", rates.launch_us));
  TESSERA_TRY(read_number(json, "sync_us", rates.sync_us));
  return read_link(json, rates);
}

}  // namespace tessera::backends
