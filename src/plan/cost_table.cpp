#include "plan/cost_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/file.h"

namespace tessera::plan {
namespace {

constexpr std::string_view kSchema = "tessera.cost_table/1.1";
constexpr std::string_view kSchemaMajor = "tessera.cost_table/1.";

using Json = nlohmann::json;

tl::unexpected<Error> wrong(std::string_view field, std::string_view expected,
                            const std::string& found) {
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("'{}': expected {}, found {}", field, expected, found));
}

// `absent`: what an absent field means; nothing: it must be there.
Status read_time(const Json& json, const char* field, std::optional<double> absent,
                 double& target) {
  const auto found = json.find(field);
  if (found == json.end() && absent) {
    target = *absent;
    return {};
  }
  if (found == json.end() || !found->is_number() || !std::isfinite(found->get<double>()) ||
      found->get<double>() < 0)
    return wrong(field, "a number of at least 0", found == json.end() ? "nothing" : found->dump());
  target = found->get<double>();
  return {};
}

Status read_count(const Json& json, const char* field, std::uint64_t least, int& target) {
  const auto found = json.find(field);
  if (found == json.end() && least == 0) return {};
  if (found == json.end() || !found->is_number_unsigned() || found->get<std::uint64_t>() < least ||
      found->get<std::uint64_t>() > INT32_MAX)
    return wrong(field, fmt::format("an integer of at least {}", least),
                 found == json.end() ? "nothing" : found->dump());
  target = found->get<int>();
  return {};
}

Status read_flag(const Json& json, const char* field, bool& target) {
  const auto found = json.find(field);
  if (found == json.end()) return {};
  if (!found->is_boolean()) return wrong(field, "true or false", found->dump());
  target = found->get<bool>();
  return {};
}

Result<CostEntry> parse_entry(const Json& json) {
  CostEntry entry;
  if (!json.is_object())
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("expected an object, found {}", json.type_name()));
  TESSERA_TRY(read_time(json, "us", std::nullopt, entry.time_us));
  TESSERA_TRY(read_time(json, "spread_us", std::nullopt, entry.spread_us));
  TESSERA_TRY(read_count(json, "samples", 1, entry.samples));
  TESSERA_TRY(read_flag(json, "busy", entry.busy));
  TESSERA_TRY(read_time(json, "cold_us", 0, entry.cold_us));
  TESSERA_TRY(read_time(json, "prepare_us", 0, entry.prepare_us));
  TESSERA_TRY(read_count(json, "outliers", 0, entry.outliers));
  TESSERA_TRY(read_flag(json, "clock_changed", entry.clock_changed));
  return entry;
}

}  // namespace

Result<CostTable> CostTable::load(const std::filesystem::path& path) {
  if (!std::filesystem::exists(path)) return CostTable();
  TESSERA_ASSIGN(const std::string text, read_file(path));
  auto table = parse(text);
  if (!table) return tl::unexpected(in_context(std::move(table).error(), path.string()));
  return table;
}

Result<CostTable> CostTable::parse(std::string_view text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object())
    return fail(ErrorCode::kInvalidArgument, "not a cost table: expected a JSON object");
  const auto schema = json.value("schema", nlohmann::json());
  if (!schema.is_string() || !schema.get<std::string>().starts_with(kSchemaMajor))
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format("not a cost table: expected schema {}, found {}", kSchema, schema.dump()));
  const auto prices = json.find("prices");
  if (prices == json.end() || !prices->is_object())
    return fail(ErrorCode::kInvalidArgument, "cost table: expected an object 'prices'");
  CostTable table;
  for (const auto& [key, value] : prices->items()) {
    auto entry = parse_entry(value);
    if (!entry)
      return tl::unexpected(in_context(std::move(entry).error(), fmt::format("price '{}'", key)));
    table.entries_.emplace(key, *entry);
  }
  return table;
}

std::string CostTable::print() const {
  nlohmann::ordered_json json;
  json["schema"] = kSchema;
  auto& prices = json["prices"] = nlohmann::ordered_json::object();
  for (const auto& [key, entry] : entries_) {
    auto& price = prices[key] = {
        {"us", entry.time_us}, {"spread_us", entry.spread_us}, {"samples", entry.samples}};
    if (entry.busy) price["busy"] = true;
    if (entry.cold_us > 0) price["cold_us"] = entry.cold_us;
    if (entry.prepare_us > 0) price["prepare_us"] = entry.prepare_us;
    if (entry.outliers > 0) price["outliers"] = entry.outliers;
    if (entry.clock_changed) price["clock_changed"] = true;
  }
  return json.dump(1) + "\n";
}

Status CostTable::save(const std::filesystem::path& path) const {
  return write_file_atomically(path, print());
}

const CostEntry* CostTable::find(std::string_view key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : &found->second;
}

void CostTable::add(std::string key, const CostEntry& entry, bool replace) {
  const auto [found, is_new] = entries_.emplace(std::move(key), entry);
  if (!is_new && replace) found->second = entry;
}

std::string CostTable::nearest(std::string_view key) const {
  const auto shared = [key](std::string_view other) {
    return std::ranges::mismatch(key, other).in1 - key.begin();
  };
  // Keys that share the longest prefix stand next to where the key would be.
  const auto after = entries_.lower_bound(key);
  std::string_view best;
  if (after != entries_.end()) best = after->first;
  if (after != entries_.begin())
    if (const auto& before = std::prev(after)->first;
        best.empty() || shared(before) >= shared(best))
      best = before;
  return best.empty() || shared(best) == 0 ? std::string() : std::string(best);
}

ContentHash CostTable::content_hash() const {
  const std::string text = print();
  return hash_bytes(text.data(), text.size());
}

std::string_view to_string(CacheState state) {
  switch (state) {
    case CacheState::kResident: return "resident";
    case CacheState::kShared: return "shared";
    case CacheState::kStreamed: return "streamed";
  }
  return "";
}

std::optional<CacheState> find_cache_state(std::string_view word) {
  for (const auto state : {CacheState::kResident, CacheState::kShared, CacheState::kStreamed})
    if (word == to_string(state)) return state;
  return std::nullopt;
}

double round_price_us(double time_us) {
  constexpr double kStep = 1.02;
  if (!(time_us > 0)) return 0;
  return std::pow(kStep, std::round(std::log(time_us) / std::log(kStep)));
}

}  // namespace tessera::plan
