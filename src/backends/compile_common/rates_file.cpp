#include "backends/compile_common/rates_file.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "backends/compile_common/rates_json.h"

namespace tessera::backends {
namespace {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

constexpr std::string_view kSchema = "tessera.device/1.1";

double four_digits(double value) {
  if (!(value > 0)) return 0;
  const double unit = std::pow(10, std::floor(std::log10(value)) - 3);
  return unit < 1 ? std::round(value / unit) / std::round(1 / unit)
                  : std::round(value / unit) * unit;
}

Result<CacheRates> cache_rates(const Json& json) {
  TESSERA_TRY(check_keys("a cache", json, {"name", "kib", "copy_gb_per_s", "read_gb_per_s"}));
  CacheRates cache;
  const auto name = json.value("name", Json());
  if (!name.is_string()) return wrong("name", "expected a cache's name, found {}", name.dump());
  cache.name = name.get<std::string>();
  double kib = 0;
  TESSERA_TRY(read_number(json, "kib", kib));
  TESSERA_TRY(read_number(json, "copy_gb_per_s", cache.copy_gb_per_s));
  TESSERA_TRY(read_number(json, "read_gb_per_s", cache.read_gb_per_s));
  for (const auto& [key, value] :
       {std::pair{"kib", kib}, std::pair{"copy_gb_per_s", cache.copy_gb_per_s},
        std::pair{"read_gb_per_s", cache.read_gb_per_s}})
    if (value <= 0) return wrong(key, "expected a number above 0, found {}", value);
  if (kib > 1e12) return wrong("kib", "expected at most 1e+12, found {:g}", kib);
  cache.size_bytes = static_cast<std::int64_t>(kib * 1024);
  return cache;
}

Status read_caches(const Json& json, std::vector<CacheRates>& caches) {
  const auto found = json.find("caches");
  if (found == json.end()) return {};
  if (!found->is_array()) return wrong("caches", "expected a list, found {}", found->dump());
  for (const Json& entry : *found) {
    auto cache = cache_rates(entry);
    if (!cache)
      return tl::unexpected(
          in_context(std::move(cache).error(), fmt::format("'caches'[{}]", caches.size())));
    if (!caches.empty() && cache->size_bytes <= caches.back().size_bytes)
      return wrong("caches", "expected the smallest first, found {} after {}", cache->name,
                   caches.back().name);
    caches.push_back(*std::move(cache));
  }
  return {};
}

Status read_notes(const Json& json, RatesFile& file) {
  if (const auto threads = json.find("threads"); threads != json.end()) {
    if (!threads->is_number_integer() || *threads < 1 || *threads > std::numeric_limits<int>::max())
      return wrong("threads", "expected a whole number of at least 1, found {}", threads->dump());
    file.threads = threads->get<int>();
  }
  if (const auto identity = json.find("identity"); identity != json.end()) {
    if (!identity->is_object())
      return wrong("identity", "expected an object, found {}", identity->dump());
    for (const auto& [key, value] : identity->items()) {
      if (!value.is_string()) return wrong(key, "expected a text, found {}", value.dump());
      file.identity[key] = value.get<std::string>();
    }
  }
  if (const auto spread = json.find("spread"); spread != json.end()) {
    if (!spread->is_object())
      return wrong("spread", "expected an object, found {}", spread->dump());
    for (const auto& [key, value] : spread->items()) {
      TESSERA_ASSIGN(file.measured.spreads[key], number(key, value));
    }
  }
  if (const auto busy = json.find("busy"); busy != json.end()) {
    if (!busy->is_boolean()) return wrong("busy", "expected true or false, found {}", busy->dump());
    file.measured.busy = busy->get<bool>();
  }
  return {};
}

}  // namespace

bool describes_real_device(std::string_view text) {
  const auto json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return json.is_object() && json.value("kind", Json()) == "real";
}

Result<RatesFile> parse_rates(std::string_view text) {
  TESSERA_ASSIGN(const Json json, parse_device_json(text));
  TESSERA_TRY(check_keys("the rates", json,
                         {"schema", "name", "kind", "threads", "identity", "gflops",
                          "memory_gb_per_s", "read_gb_per_s", "caches", "hand_over_us",
                          "wake_up_us", "launch_us", "sync_us", "link", "spread", "busy"}));
  const auto name = json.value("name", Json());
  if (!name.is_string()) return wrong("name", "expected a device's name, found {}", name.dump());
  RatesFile file;
  file.name = name.get<std::string>();
  DeviceRates& rates = file.measured.rates;
  rates.launch_us = rates.sync_us = rates.link_latency_us = 0;
  rates.unified = true;
  TESSERA_TRY(read_rates(json, rates));
  TESSERA_TRY(read_number(json, "read_gb_per_s", rates.read_gb_per_s));
  TESSERA_TRY(read_number(json, "hand_over_us", rates.hand_over_us));
  TESSERA_TRY(read_number(json, "wake_up_us", rates.wake_up_us));
  TESSERA_TRY(read_caches(json, rates.caches));
  const auto fp32 = rates.gflops.find(DType::kFp32);
  if (fp32 == rates.gflops.end()) return wrong("gflops", "expected a rate of fp32, found none");
  rates.default_gflops = fp32->second;
  TESSERA_TRY(read_notes(json, file));
  return file;
}

std::string print_rates(const RatesFile& file) {
  const DeviceRates& rates = file.measured.rates;
  OrderedJson json = {{"schema", kSchema},
                      {"name", file.name},
                      {"kind", "real"},
                      {"threads", file.threads},
                      {"identity", file.identity}};
  for (const auto& [dtype, gflops] : rates.gflops)
    json["gflops"][std::string(to_string(dtype))] = four_digits(gflops);
  json["memory_gb_per_s"] = four_digits(rates.memory_gb_per_s);
  json["read_gb_per_s"] = four_digits(rates.read_gb_per_s);
  json["caches"] = OrderedJson::array();
  for (const CacheRates& cache : rates.caches)
    json["caches"].push_back({{"name", cache.name},
                              {"kib", static_cast<double>(cache.size_bytes) / 1024},
                              {"copy_gb_per_s", four_digits(cache.copy_gb_per_s)},
                              {"read_gb_per_s", four_digits(cache.read_gb_per_s)}});
  json["hand_over_us"] = four_digits(rates.hand_over_us);
  json["wake_up_us"] = four_digits(rates.wake_up_us);
  json["launch_us"] = four_digits(rates.launch_us);
  json["sync_us"] = four_digits(rates.sync_us);
  for (const auto& [name, spread] : file.measured.spreads)
    json["spread"][name] = four_digits(spread);
  if (file.measured.busy) json["busy"] = true;
  return json.dump(1) + "\n";
}

}  // namespace tessera::backends
