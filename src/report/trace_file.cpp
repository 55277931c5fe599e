#include "report/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

namespace tessera::report {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSchema = "tessera.trace/1.0";
constexpr std::string_view kSchemaMajor = "tessera.trace/1.";

// The value of a field, or an error that names event and field.
template <typename T>
Status field(const Json& object, std::size_t event, const char* key, std::string_view expected,
             T& target) {
  const auto found = object.find(key);
  if (found != object.end()) {
    try {
      found->get_to(target);
      return {};
    } catch (const nlohmann::json::exception&) {
    }
  }
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("trace: event {}: '{}': expected {}, found {}", event, key, expected,
                          found == object.end() ? "nothing" : found->dump()));
}

Result<TraceSpan> parse_span(const Json& json, std::size_t event) {
  TraceSpan span;
  TESSERA_TRY(field(json, event, "name", "a text", span.name));
  TESSERA_TRY(field(json, event, "cat", "a text", span.category));
  TESSERA_TRY(field(json, event, "ts", "a number", span.start_us));
  TESSERA_TRY(field(json, event, "dur", "a number", span.duration_us));
  const auto args = json.find("args");
  if (args == json.end() || !args->is_object())
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("trace: event {}: 'args': expected an object", event));
  TESSERA_TRY(field(*args, event, "device", "a text", span.device));
  TESSERA_TRY(field(*args, event, "kernel", "a text", span.kernel));
  TESSERA_TRY(field(*args, event, "source_nodes", "a list of texts", span.source_nodes));
  TESSERA_TRY(field(*args, event, "predicted_us", "a number", span.predicted_us));
  TESSERA_TRY(field(*args, event, "simulated", "true or false", span.simulated));
  return span;
}

double& term_of(Accounting& sum, const TraceSpan& span) {
  if (span.category == "layout") return sum.layout_us;
  if (span.category == "copy") return sum.copy_us;
  if (span.category == "sync") return sum.sync_us;
  return sum.compute_us;
}

}  // namespace

std::string to_chrome_json(const std::vector<TraceSpan>& spans, double total_us) {
  Json json = {
      {"schema", kSchema}, {"traceEvents", Json::array()}, {"otherData", {{"total_us", total_us}}}};
  std::map<std::string, int> threads;
  for (const TraceSpan& span : spans) {
    const auto [thread, is_new] =
        threads.emplace(span.device, static_cast<int>(threads.size()) + 1);
    if (is_new)
      json["traceEvents"].push_back({{"name", "thread_name"},
                                     {"ph", "M"},
                                     {"pid", 1},
                                     {"tid", thread->second},
                                     {"args", {{"name", span.device}}}});
    json["traceEvents"].push_back({{"name", span.name},
                                   {"cat", span.category},
                                   {"ph", "X"},
                                   {"ts", span.start_us},
                                   {"dur", span.duration_us},
                                   {"pid", 1},
                                   {"tid", thread->second},
                                   {"args",
                                    {{"device", span.device},
                                     {"kernel", span.kernel},
                                     {"source_nodes", span.source_nodes},
                                     {"predicted_us", span.predicted_us},
                                     {"simulated", span.simulated}}}});
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<TraceFile> parse_chrome_json(std::string_view text) {
  const auto json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object())
    return fail(ErrorCode::kInvalidArgument, "not a trace: expected a JSON object");
  const auto schema = json.value("schema", Json());
  if (!schema.is_string() || !schema.get<std::string>().starts_with(kSchemaMajor))
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("not a trace: expected schema {}, found {}", kSchema, schema.dump()));
  const auto events = json.find("traceEvents");
  if (events == json.end() || !events->is_array())
    return fail(ErrorCode::kInvalidArgument, "trace: expected a list 'traceEvents'");
  TraceFile trace;
  for (std::size_t i = 0; i < events->size(); ++i) {
    const Json& event = (*events)[i];
    if (!event.is_object() || event.value("ph", Json()) != "X") continue;
    TESSERA_ASSIGN(auto span, parse_span(event, i));
    trace.spans.push_back(std::move(span));
  }
  const auto other = json.value("otherData", Json::object());
  const auto total = other.is_object() ? other.value("total_us", Json()) : Json();
  if (!total.is_number())
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format("trace: 'otherData.total_us': expected a number, found {}", total.dump()));
  trace.total_us = total.get<double>();
  return trace;
}

void add_execution(Report& report, const std::vector<TraceSpan>& spans, double total_us) {
  std::map<std::string, const TraceSpan*> by_source;
  for (const TraceSpan& span : spans)
    for (const std::string& source : span.source_nodes) by_source.emplace(source, &span);
  for (NodeEntry& node : report.nodes) {
    node.executed.reset();
    for (const std::string& origin : node.origins) {
      const auto found = by_source.find(origin);
      if (found == by_source.end()) continue;
      node.executed = Execution{
          found->second->device, found->second->kernel,
          found->second->simulated ? found->second->predicted_us : found->second->duration_us};
      break;
    }
  }
  const bool modelled =
      std::ranges::any_of(spans, [](const TraceSpan& span) { return span.simulated; });
  const double planned_sync_us = report.accounting.sync_us;
  const double predicted_us = report.accounting.predicted_us;
  Accounting sum;
  sum.timeline = modelled ? "modelled" : "wall";
  for (const TraceSpan& span : spans)
    term_of(sum, span) += modelled ? span.predicted_us : span.duration_us;
  if (modelled) sum.sync_us += planned_sync_us;
  const double terms_us = sum.compute_us + sum.sync_us + sum.layout_us + sum.copy_us;
  sum.total_us = modelled ? terms_us : total_us;
  sum.unaccounted_us = sum.total_us - terms_us;
  sum.predicted_us = predicted_us;
  report.accounting = sum;
}

}  // namespace tessera::report
