#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "backends/registry_compile/registry_compile.h"
#include "base/shown_text.h"
#include "commands.h"
#include "console.h"
#include "import/import.h"

namespace tessera::tools {
namespace {

// Names that are not UTF-8 bear replacement characters: JSON holds nothing else.
std::string json_line(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

struct InspectArguments {
  std::string model;
  bool json = false;
};

std::string inspection_text(const importer::Inspection& found) {
  std::string text =
      fmt::format("producer {}, IR version {}\n",
                  found.producer.empty() ? "unknown" : shown(found.producer), found.ir_version);
  for (const auto& [domain, version] : found.opsets)
    text += fmt::format("opset {} {}\n", shown(domain), version);
  for (const auto& [name, type] : found.inputs)
    text += fmt::format("input '{}' {}\n", shown(name), shown(type.to_string()));
  for (const auto& [name, type] : found.outputs)
    text += fmt::format("output '{}' {}\n", shown(name), shown(type.to_string()));
  for (const auto& [name, count] : found.operators)
    text += fmt::format("operator {} {}\n", shown(name), count);
  for (const auto& entry : found.unsupported)
    text += fmt::format("UNSUPPORTED {} ({} {}), first in node '{}': {}\n", shown(entry.op),
                        shown(entry.domain), entry.version, shown(entry.node), shown(entry.reason));
  return text;
}

nlohmann::ordered_json inspection_json(const importer::Inspection& found) {
  nlohmann::ordered_json json = {{"schema", "tessera.inspect/1.0"},
                                 {"producer", found.producer},
                                 {"ir_version", found.ir_version},
                                 {"opsets", found.opsets}};
  const auto values = [](const auto& list) {
    auto array = nlohmann::ordered_json::array();
    for (const auto& [name, type] : list)
      array.push_back({{"name", name}, {"type", type.to_string()}});
    return array;
  };
  json["inputs"] = values(found.inputs);
  json["outputs"] = values(found.outputs);
  json["operators"] = found.operators;
  json["unsupported"] = nlohmann::ordered_json::array();
  for (const auto& entry : found.unsupported)
    json["unsupported"].push_back({{"op", entry.op},
                                   {"domain", entry.domain},
                                   {"version", entry.version},
                                   {"node", entry.node},
                                   {"nearest", entry.nearest},
                                   {"reason", entry.reason}});
  return json;
}

Status run_inspect(const InspectArguments& arguments) {
  TESSERA_ASSIGN(const auto found, importer::inspect_file(arguments.model));
  answer(arguments.json ? json_line(inspection_json(found)) : inspection_text(found));
  return {};
}

struct DevicesArguments {
  std::vector<std::string> profiles;
  bool json = false;
};

Status run_devices(const DevicesArguments& arguments) {
  std::vector<std::string> entries = backends::available_devices();
  entries.insert(entries.end(), arguments.profiles.begin(), arguments.profiles.end());
  nlohmann::ordered_json json = {{"schema", "tessera.devices/1.0"},
                                 {"devices", nlohmann::ordered_json::array()}};
  std::string text;
  for (const std::string& entry : entries) {
    TESSERA_ASSIGN(const auto device, backends::make_compile_device(entry));
    const auto& info = device->info();
    const auto identity = device->identity();
    text += fmt::format("{}: {}, memory {}, {} rates\n", info.name,
                        info.simulated ? "simulated" : "real", info.memory,
                        info.rates_measured ? "measured" : "stated");
    for (const auto& [key, value] : identity) text += fmt::format("  {}: {}\n", key, value);
    for (const auto& [dtype, gflops] : info.rates.gflops)
      text += fmt::format("  {}: {:g} GFLOP/s\n", to_string(dtype), gflops);
    for (const auto& cache : info.rates.caches)
      text += fmt::format("  {} of {:g} KiB: copy {:g} GB/s, read {:g} GB/s\n", cache.name,
                          static_cast<double>(cache.size_bytes) / 1024, cache.copy_gb_per_s,
                          cache.read_gb_per_s);
    text += fmt::format("  memory: {:g} GB/s; launch {:g} us, sync {:g} us\n",
                        info.rates.memory_gb_per_s, info.rates.launch_us, info.rates.sync_us);
    if (info.rates.wake_up_us > 0)
      text += fmt::format("  threads: hand-over {:g} us, wake-up {:g} us\n",
                          info.rates.hand_over_us, info.rates.wake_up_us);
    json["devices"].push_back({{"name", info.name},
                               {"kind", info.simulated ? "simulated" : "real"},
                               {"memory", info.memory},
                               {"identity", identity},
                               {"memory_gb_per_s", info.rates.memory_gb_per_s},
                               {"launch_us", info.rates.launch_us},
                               {"sync_us", info.rates.sync_us}});
  }
  answer(arguments.json ? json_line(json) : text);
  return {};
}

}  // namespace

void add_inspect(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "inspect", "Inputs, outputs, operators, and all that is unsupported at once");
  auto arguments = std::make_shared<InspectArguments>();
  command->add_option("MODEL", arguments->model, "ONNX file")->required();
  command->add_flag("--json", arguments->json, "One line of JSON");
  command->callback([=, &action] { action = [=] { return run_inspect(*arguments); }; });
}

void add_devices(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("devices", "The devices that are here, and profiles");
  auto arguments = std::make_shared<DevicesArguments>();
  command->add_option("PROFILE", arguments->profiles, "Profile files to show too");
  command->add_flag("--json", arguments->json, "One line of JSON");
  command->callback([=, &action] { action = [=] { return run_devices(*arguments); }; });
}

}  // namespace tessera::tools
