#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "report/report.h"

namespace tessera::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSchema = "tessera.report/1.0";
constexpr std::string_view kSchemaMajor = "tessera.report/1.";

Json optional_number(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json selection_json(const Selection& selection) {
  return {
      {"device", selection.device},     {"kernel", selection.kernel},
      {"layout", selection.layout},     {"dtype", selection.dtype},
      {"price_us", selection.price_us}, {"price", selection.measured ? "measured" : "estimated"}};
}

Json node_json(const NodeEntry& node) {
  Json supported = Json::object();
  for (const auto& [device, reason] : node.supported)
    supported[device] = reason.empty() ? Json(true) : Json{{"refused", reason}};
  Json json = {{"name", node.name},       {"op", node.op},
               {"origins", node.origins}, {"permitted", node.permitted},
               {"supported", supported},  {"selected", selection_json(node.selected)}};
  json["runner_up"] = node.runner_up ? selection_json(*node.runner_up) : Json(nullptr);
  if (node.executed)
    json["executed"] = {{"device", node.executed->device},
                        {"kernel", node.executed->kernel},
                        {"us", node.executed->us}};
  else
    json["executed"] = "not run";
  json["cover"] = node.cover ? Json(*node.cover) : Json(nullptr);
  json["body"] = node.body;
  return json;
}

Json plan_json(const Report& report) {
  Json json;
  json["regions"] = Json::array();
  for (const auto& region : report.regions)
    json["regions"].push_back({{"id", region.id},
                               {"device", region.device},
                               {"nodes", region.nodes},
                               {"compute_us", region.compute_us},
                               {"launch_us", region.launch_us}});
  json["crossings"] = Json::array();
  for (const auto& crossing : report.crossings)
    json["crossings"].push_back({{"value", crossing.value},
                                 {"from", crossing.from},
                                 {"to", crossing.to},
                                 {"bytes", crossing.bytes},
                                 {"sync_us", crossing.sync_us},
                                 {"layout_us", crossing.layout_us},
                                 {"copy_us", crossing.copy_us},
                                 {"form", crossing.form}});
  const Accounting& sum = report.accounting;
  json["accounting"] = {{"timeline", sum.timeline},
                        {"compute_us", sum.compute_us},
                        {"sync_us", sum.sync_us},
                        {"layout_us", sum.layout_us},
                        {"copy_us", sum.copy_us},
                        {"overlapped_us", sum.overlapped_us},
                        {"unaccounted_us", sum.unaccounted_us},
                        {"total_us", sum.total_us},
                        {"predicted_us", sum.predicted_us}};
  json["memory"] = Json::array();
  for (const auto& memory : report.memory)
    json["memory"].push_back({{"device", memory.device},
                              {"arena_bytes", memory.arena_bytes},
                              {"peak_live_bytes", memory.peak_live_bytes},
                              {"weights_bytes", memory.weights_bytes},
                              {"state_bytes", memory.state_bytes},
                              {"scratch_bytes", memory.scratch_bytes}});
  return json;
}

// Reads fields of one object; the first that is missing or of the wrong type is kept as the error,
// by its path.
class Reader {
 public:
  Reader(const Json& json, std::string path, std::string& error)
      : json_(json), path_(std::move(path)), error_(error) {
    if (error_.empty() && !json_.is_object())
      error_ = fmt::format("'{}': expected an object, found {}", path_.substr(0, path_.size() - 1),
                           json_.type_name());
  }

  template <typename T>
  void read(const char* key, T& target) const {
    const Json* value = find(key);
    if (value == nullptr) return;
    try {
      if (fits(*value, target)) {
        value->get_to(target);
        return;
      }
    } catch (const nlohmann::json::exception&) {
    }
    error_ =
        fmt::format("'{}{}': expected {}, found {}", path_, key, wanted(target), value->dump());
  }

  template <typename Visit>
  void each(const char* key, Visit visit) const {
    const Json* value = find(key);
    if (value == nullptr) return;
    if (!value->is_array()) {
      error_ = fmt::format("'{}{}': expected a list, found {}", path_, key, value->type_name());
      return;
    }
    for (std::size_t i = 0; i < value->size(); ++i)
      visit(Reader((*value)[i], fmt::format("{}{}[{}].", path_, key, i), error_));
  }

  [[nodiscard]] const Json* find(const char* key) const {
    if (!error_.empty()) return nullptr;
    const auto found = json_.find(key);
    if (found == json_.end()) error_ = fmt::format("'{}{}': missing", path_, key);
    return error_.empty() ? &*found : nullptr;
  }
  [[nodiscard]] Reader child(const char* key) const {
    static const Json empty = Json::object();
    const Json* value = find(key);
    return {value == nullptr ? empty : *value, path_ + key + ".", error_};
  }
  [[nodiscard]] bool failed() const { return !error_.empty(); }
  void fail_with(const char* key, std::string_view expected, const Json& found) const {
    error_ = fmt::format("'{}{}': expected {}, found {}", path_, key, expected, found.dump());
  }

 private:
  // The library would also turn true into 1, 1.5 into 1 and -1 into a large number.
  template <typename T>
  static bool fits(const Json& value, const T& /*unused*/) {
    if constexpr (std::is_unsigned_v<T>)
      return value.is_number_unsigned() &&
             value.get<std::uint64_t>() <= std::numeric_limits<T>::max();
    if constexpr (std::is_integral_v<T>) return value.is_number_integer();
    if constexpr (std::is_arithmetic_v<T>) return value.is_number();
    return true;
  }

  static std::string_view wanted(const std::string& /*unused*/) { return "a text"; }
  static std::string_view wanted(const std::vector<std::string>& /*unused*/) {
    return "a list of texts";
  }
  static std::string_view wanted(const std::map<std::string, std::string>& /*unused*/) {
    return "an object of texts";
  }
  static std::string_view wanted(const std::map<std::string, std::int64_t>& /*unused*/) {
    return "an object of numbers";
  }
  template <typename T>
  static std::string_view wanted(const T& /*unused*/) {
    if constexpr (std::is_unsigned_v<T>) return "a whole number of at least 0";
    return std::is_integral_v<T> ? "a whole number" : "a number";
  }

  const Json& json_;
  std::string path_;
  std::string& error_;
};

void read_choice(const Reader& reader, const char* key, std::string_view yes, std::string_view no,
                 bool& target) {
  std::string text;
  reader.read(key, text);
  target = text == yes;
  if (!reader.failed() && text != yes && text != no)
    reader.fail_with(key, fmt::format("\"{}\" or \"{}\"", yes, no), text);
}

void read_optional(const Reader& reader, const char* key, std::optional<double>& target) {
  const Json* value = reader.find(key);
  if (value == nullptr || value->is_null()) return;
  target.emplace();
  reader.read(key, *target);
}

void read_selection(const Reader& reader, Selection& selection) {
  reader.read("device", selection.device);
  reader.read("kernel", selection.kernel);
  reader.read("layout", selection.layout);
  reader.read("dtype", selection.dtype);
  reader.read("price_us", selection.price_us);
  read_choice(reader, "price", "measured", "estimated", selection.measured);
}

void read_supported(const Reader& reader, NodeEntry& node) {
  const Json* supported = reader.find("supported");
  if (supported == nullptr) return;
  if (!supported->is_object()) return reader.fail_with("supported", "an object", *supported);
  for (const auto& [device, value] : supported->items()) {
    if (value == true)
      node.supported[device] = {};
    else if (value.is_object() && value.contains("refused") && value["refused"].is_string())
      node.supported[device] = value["refused"].get<std::string>();
    else
      return reader.fail_with("supported", "true or {\"refused\": reason}", value);
  }
}

NodeEntry read_node(const Reader& reader) {
  NodeEntry node;
  reader.read("name", node.name);
  reader.read("op", node.op);
  reader.read("origins", node.origins);
  reader.read("permitted", node.permitted);
  read_supported(reader, node);
  read_selection(reader.child("selected"), node.selected);
  if (const Json* value = reader.find("runner_up"); value != nullptr && !value->is_null())
    read_selection(reader.child("runner_up"), node.runner_up.emplace());
  if (const Json* value = reader.find("executed"); value != nullptr && !value->is_string()) {
    const Reader executed = reader.child("executed");
    Execution& execution = node.executed.emplace();
    executed.read("device", execution.device);
    executed.read("kernel", execution.kernel);
    executed.read("us", execution.us);
  }
  if (const Json* value = reader.find("cover"); value != nullptr && !value->is_null())
    reader.read("cover", node.cover.emplace());
  reader.read("body", node.body);
  return node;
}

void read_assignment(const Reader& reader, AssignmentFigures& figures) {
  reader.read("objective", figures.objective);
  reader.read("cost_us", figures.cost_us);
  reader.read("lower_bound_us", figures.lower_bound_us);
  reader.read("gap", figures.gap);
  read_optional(reader, "greedy_us", figures.greedy_us);
  read_optional(reader, "cpu_only_us", figures.cpu_only_us);
  reader.read("order", figures.order);
  reader.read("search_nodes", figures.search_nodes);
}

void read_plan(const Reader& reader, Report& report) {
  reader.each("regions", [&](const Reader& entry) {
    auto& region = report.regions.emplace_back();
    entry.read("id", region.id);
    entry.read("device", region.device);
    entry.read("nodes", region.nodes);
    entry.read("compute_us", region.compute_us);
    entry.read("launch_us", region.launch_us);
  });
  reader.each("crossings", [&](const Reader& entry) {
    auto& crossing = report.crossings.emplace_back();
    entry.read("value", crossing.value);
    entry.read("from", crossing.from);
    entry.read("to", crossing.to);
    entry.read("bytes", crossing.bytes);
    entry.read("sync_us", crossing.sync_us);
    entry.read("layout_us", crossing.layout_us);
    entry.read("copy_us", crossing.copy_us);
    entry.read("form", crossing.form);
  });
  const Reader accounting = reader.child("accounting");
  Accounting& sum = report.accounting;
  accounting.read("timeline", sum.timeline);
  for (const auto& [key, target] :
       {std::pair{"compute_us", &sum.compute_us}, std::pair{"sync_us", &sum.sync_us},
        std::pair{"layout_us", &sum.layout_us}, std::pair{"copy_us", &sum.copy_us},
        std::pair{"overlapped_us", &sum.overlapped_us},
        std::pair{"unaccounted_us", &sum.unaccounted_us}, std::pair{"total_us", &sum.total_us},
        std::pair{"predicted_us", &sum.predicted_us}})
    accounting.read(key, *target);
  reader.each("memory", [&](const Reader& entry) {
    auto& memory = report.memory.emplace_back();
    entry.read("device", memory.device);
    for (const auto& [key, target] : {std::pair{"arena_bytes", &memory.arena_bytes},
                                      std::pair{"peak_live_bytes", &memory.peak_live_bytes},
                                      std::pair{"weights_bytes", &memory.weights_bytes},
                                      std::pair{"state_bytes", &memory.state_bytes},
                                      std::pair{"scratch_bytes", &memory.scratch_bytes}})
      entry.read(key, *target);
  });
}

}  // namespace

std::string to_json(const Report& report) {
  Json json = {{"schema", kSchema}, {"model", report.model}, {"options", report.options}};
  json["devices"] = Json::array();
  for (const auto& device : report.devices)
    json["devices"].push_back({{"name", device.name},
                               {"kind", device.simulated ? "simulated" : "real"},
                               {"rates", device.rates_measured ? "measured" : "profile"}});
  const AssignmentFigures& figures = report.assignment;
  json["assignment"] = {{"objective", figures.objective},
                        {"cost_us", figures.cost_us},
                        {"lower_bound_us", figures.lower_bound_us},
                        {"gap", figures.gap},
                        {"greedy_us", optional_number(figures.greedy_us)},
                        {"cpu_only_us", optional_number(figures.cpu_only_us)},
                        {"order", figures.order},
                        {"search_nodes", figures.search_nodes}};
  json["nodes"] = Json::array();
  for (const NodeEntry& node : report.nodes) json["nodes"].push_back(node_json(node));
  json.update(plan_json(report));
  json["passes"] = Json::array();
  for (const auto& pass : report.passes)
    json["passes"].push_back(
        {{"name", pass.name}, {"ms", pass.ms}, {"added", pass.added}, {"removed", pass.removed}});
  json["near_misses"] = Json::array();
  for (const auto& miss : report.near_misses)
    json["near_misses"].push_back(
        {{"pattern", miss.pattern}, {"nodes", miss.nodes}, {"reason", miss.reason}});
  Json misses = Json::array();
  for (const auto& miss : report.price_misses)
    misses.push_back({{"key", miss.key}, {"nearest", miss.nearest}});
  json["prices"] = {{"hits", report.price_hits}, {"misses", misses}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Report> from_json(std::string_view text) {
  const auto json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object())
    return fail(ErrorCode::kInvalidArgument, "not a report: expected a JSON object");
  const auto schema = json.value("schema", Json());
  if (!schema.is_string() || !schema.get<std::string>().starts_with(kSchemaMajor))
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("not a report: expected schema {}, found {}", kSchema, schema.dump()));
  Report report;
  std::string error;
  const Reader reader(json, "", error);
  reader.read("model", report.model);
  reader.read("options", report.options);
  reader.each("devices", [&](const Reader& entry) {
    auto& device = report.devices.emplace_back();
    entry.read("name", device.name);
    read_choice(entry, "kind", "simulated", "real", device.simulated);
    read_choice(entry, "rates", "measured", "profile", device.rates_measured);
  });
  read_assignment(reader.child("assignment"), report.assignment);
  reader.each("nodes", [&](const Reader& entry) { report.nodes.push_back(read_node(entry)); });
  read_plan(reader, report);
  reader.each("passes", [&](const Reader& entry) {
    auto& pass = report.passes.emplace_back();
    entry.read("name", pass.name);
    entry.read("ms", pass.ms);
    entry.read("added", pass.added);
    entry.read("removed", pass.removed);
  });
  reader.each("near_misses", [&](const Reader& entry) {
    auto& miss = report.near_misses.emplace_back();
    entry.read("pattern", miss.pattern);
    entry.read("nodes", miss.nodes);
    entry.read("reason", miss.reason);
  });
  const Reader prices = reader.child("prices");
  prices.read("hits", report.price_hits);
  prices.each("misses", [&](const Reader& entry) {
    auto& miss = report.price_misses.emplace_back();
    entry.read("key", miss.key);
    entry.read("nearest", miss.nearest);
  });
  if (!error.empty()) return fail(ErrorCode::kInvalidArgument, "report: " + error);
  return report;
}

}  // namespace tessera::report
