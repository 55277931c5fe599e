#include "plan/cost_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/file.h"

namespace tessera::plan {
namespace {

constexpr std::string_view kSchema = "tessera.cost_table/1.0";
constexpr std::string_view kSchemaMajor = "tessera.cost_table/1.";

Result<CostEntry> parse_entry(const nlohmann::json& json) {
  CostEntry entry;
  if (!json.is_object())
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("expected an object, found {}", json.type_name()));
  for (const auto& [field, target] :
       {std::pair{"us", &entry.time_us}, std::pair{"spread_us", &entry.spread_us}}) {
    const auto found = json.find(field);
    if (found == json.end() || !found->is_number() || !std::isfinite(found->get<double>()) ||
        found->get<double>() < 0)
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("'{}': expected a number of at least 0, found {}", field,
                              found == json.end() ? "nothing" : found->dump()));
    *target = found->get<double>();
  }
  const auto samples = json.find("samples");
  if (samples == json.end() || !samples->is_number_unsigned() ||
      samples->get<std::uint64_t>() == 0 || samples->get<std::uint64_t>() > INT32_MAX)
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("'samples': expected an integer of at least 1, found {}",
                            samples == json.end() ? "nothing" : samples->dump()));
  entry.samples = samples->get<int>();
  if (const auto busy = json.find("busy"); busy != json.end()) {
    if (!busy->is_boolean())
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("'busy': expected true or false, found {}", busy->dump()));
    entry.busy = busy->get<bool>();
  }
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

double round_price_us(double time_us) {
  constexpr double kStep = 1.02;
  if (!(time_us > 0)) return 0;
  return std::pow(kStep, std::round(std::log(time_us) / std::log(kStep)));
}

}  // namespace tessera::plan
