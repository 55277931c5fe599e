#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "artefact/read/reader.h"
#include "artefact/write/writer.h"
#include "base/glob.h"
#include "cases/compare_values.h"
#include "cases/judges.h"
#include "cases/region_graph.h"
#include "testing/mentions.h"

namespace tessera::testing {
namespace {

using artefact::Instruction;
using artefact::Opcode;
using nlohmann::json;
using Words = std::vector<std::string>;

// What the judge of one key sees: the plan of one way.
struct View {
  const Case& tested;
  const Way& way;
  const Attempt& attempt;

  [[nodiscard]] const report::Report& report() const { return attempt.loaded->compiled.report; }
  [[nodiscard]] const runtime::LoadedProgram& program() const { return *attempt.loaded->program; }
  [[nodiscard]] const artefact::MethodImage& method() const { return program().method(); }
};

std::size_t count_regions(const View& view) {
  return static_cast<std::size_t>(std::ranges::count_if(
      view.report().regions, [](const auto& region) { return !region.nodes.empty(); }));
}

std::string at_most(std::int64_t limit, std::size_t found) {
  return static_cast<std::int64_t>(found) <= limit
             ? ""
             : fmt::format("expected at most {}, found {}", limit, found);
}

// The devices of the profile that the case describes.
std::set<std::string> accelerators(const View& view) {
  std::set<std::string> names;
  for (const json& device : view.tested.partition()->at("devices"))
    if (device.is_object()) names.insert(device.at("name").get<std::string>());
  return names;
}

// Where the nodes that came from a source node were placed.
std::set<std::string> devices_of(const View& view, const std::string& source) {
  std::set<std::string> devices;
  for (const auto& node : view.report().nodes)
    if (std::ranges::find(node.origins, source) != node.origins.end())
      devices.insert(node.selected.device);
  return devices;
}

std::string placement_problem(const View& view, const json& names, bool wanted) {
  std::string text;
  for (const std::string name : names) {
    const auto devices = devices_of(view, name);
    const auto accelerated = accelerators(view);
    const bool there = std::ranges::any_of(
        devices, [&](const std::string& device) { return accelerated.contains(device); });
    if (there != wanted)
      text +=
          fmt::format("{}'{}' is on {}", text.empty() ? "" : "; ", name,
                      devices.empty() ? "no device" : fmt::format("{}", fmt::join(devices, ", ")));
  }
  return text;
}

// Each thing that the report says, as one text: a line of it, or all about one node.
Words report_entries(const View& view) {
  Words entries;
  const std::string text = report::to_text(view.report(), true, 1000);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    entries.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  for (const auto& node : view.report().nodes)
    entries.push_back(report::explain(view.report(), node.name));
  return entries;
}

std::string mention_problem(const View& view, const json& words) {
  for (const std::string& entry : report_entries(view))
    if (std::ranges::all_of(
            words, [&](const json& word) { return mentions(entry, word.get<std::string>()); }))
      return {};
  return fmt::format("nothing in the report mentions {}", words.dump());
}

std::string forbidden_problem(const View& view, const json& globs) {
  std::set<std::string> names;
  for (const auto& method : view.program().plan().methods)
    for (const Instruction& instruction : method.instructions) {
      if (instruction.kernel == UINT32_MAX) continue;
      const auto& kernel = view.program().image().kernels[instruction.kernel];
      names.insert(kernel.kernel);
      for (const auto& step : kernel.steps) names.insert(step.op_type);
    }
  for (const std::string glob : globs)
    for (const std::string& name : names)
      if (glob_matches(glob, name)) return fmt::format("the artefact holds {}", name);
  return {};
}

// Writes the artefact, reads it back, and runs the plan for the given device alone.
Result<std::string> reload_problem(const View& view, const std::string& device) {
  const TempDir folder;
  TESSERA_TRY(artefact::write_program(view.program().image(), folder / "m.tsr"));
  TESSERA_ASSIGN(auto image, artefact::read_program(folder / "m.tsr"));
  TESSERA_ASSIGN(const auto program, load_image(std::move(image), device));
  TESSERA_ASSIGN(const auto executor, open_session(program));
  for (const StepRun& step : view.attempt.steps) {
    TESSERA_TRY(bind_feeds(*executor, step.feeds));
    TESSERA_TRY(executor->run());
    TESSERA_ASSIGN(const auto outputs, outputs_of(*executor));
    const std::string problem =
        difference(step.outputs, outputs,
                   {view.tested.number("rtol", 1e-5), view.tested.number("atol", 1e-6)});
    if (!problem.empty()) return problem;
  }
  return std::string();
}

std::string reloads_problem(const View& view, const json& devices) {
  for (const std::string device : devices) {
    const auto problem = reload_problem(view, device);
    if (!problem) return fmt::format("{}: {}", device, problem.error().to_string());
    if (!problem->empty()) return fmt::format("{}: {}", device, *problem);
  }
  return {};
}

std::string value_copies_problem(const View& view, const json& limits) {
  std::string text;
  for (const auto& [value, limit] : limits.items()) {
    std::size_t found = 0;
    for (const Instruction& instruction : view.method().instructions)
      if (instruction.opcode == Opcode::kTransfer &&
          view.method().buffers[instruction.inputs.front()].value == value)
        ++found;
    const std::string problem = at_most(limit.get<std::int64_t>(), found);
    if (!problem.empty()) text += fmt::format("'{}': {}", value, problem);
  }
  return text;
}

// Instructions of all bodies: of the methods that some instruction calls.
std::vector<const Instruction*> body_instructions(const View& view) {
  const auto& methods = view.program().plan().methods;
  std::set<std::uint32_t> bodies;
  for (const auto& method : methods)
    for (const Instruction& instruction : method.instructions)
      bodies.insert(instruction.bodies.begin(), instruction.bodies.end());
  std::vector<const Instruction*> found;
  for (const std::uint32_t body : bodies)
    for (const Instruction& instruction : methods[body].instructions) found.push_back(&instruction);
  return found;
}

std::string body_devices_problem(const View& view, std::int64_t limit) {
  const auto instructions = body_instructions(view);
  if (instructions.empty()) return "the program has no body";
  std::set<std::uint32_t> devices;
  for (const Instruction* instruction : instructions)
    if (!instruction->source_nodes.empty()) devices.insert(instruction->device);
  return at_most(limit, devices.size());
}

std::string hoisted_problem(const View& view, const json& names) {
  const auto instructions = body_instructions(view);
  if (instructions.empty()) return "the program has no body";
  for (const std::string name : names)
    for (const Instruction* instruction : instructions)
      if (std::ranges::find(instruction->source_nodes, name) != instruction->source_nodes.end())
        return fmt::format("'{}' is computed in the body", name);
  return {};
}

// As --require of every device that the case describes: nothing may fall elsewhere.
std::string strict_problem(const View& view, const json& words) {
  compiler::CompileOptions options;
  options.devices = view.way.devices;
  for (const std::string& device : accelerators(view))
    options.requirements.push_back({device, "*"});
  const auto compiled = compiler::compile(view.tested.steps.front().model, options);
  if (compiled) return "compiles, but an error is expected";
  const std::string text = without(compiled.error().to_string(), view.tested.folder.string());
  for (const std::string word : words)
    if (!mentions(text, word)) return fmt::format("no '{}' in: {}", word, text);
  return {};
}

std::string rewritten_problem(const View& view, std::int64_t limit) {
  const bool refused = std::ranges::any_of(view.report().nodes, [&](const auto& node) {
    return std::ranges::any_of(node.supported, [&](const auto& entry) {
      return accelerators(view).contains(entry.first) && !entry.second.empty();
    });
  });
  return refused ? "" : at_most(limit, count_regions(view));
}

struct KeyJudge {
  bool dear = false;          // judged where borders cost something
  bool free = false;          // judged where they cost nothing
  bool without_plan = false;  // judged where nothing was compiled too
  std::function<std::string(const View&, const json&)> problem;
};

const std::map<std::string, KeyJudge>& key_judges() {
  static const std::map<std::string, KeyJudge> judges = {
      {"must_be_dag",
       {true, true, false,
        [](const View& view, const json&) {
          return RegionGraph(view.method()).is_dag() ? "" : "the regions form a cycle";
        }}},
      {"max_partitions",
       {true, false, false,
        [](const View& view, const json& limit) {
          return at_most(limit.get<std::int64_t>(), count_regions(view));
        }}},
      {"max_partitions_if_rewritten",
       {true, true, false,
        [](const View& view, const json& limit) {
          return rewritten_problem(view, limit.get<std::int64_t>());
        }}},
      {"independent_partitions_min",
       {false, true, false,
        [](const View& view, const json& limit) {
          const std::size_t width = RegionGraph(view.method()).width();
          return width >= limit.get<std::size_t>()
                     ? std::string()
                     : fmt::format("expected at least {}, found {}", limit.dump(), width);
        }}},
      {"copies_of_value_max", {true, true, false, value_copies_problem}},
      {"must_place_on_accel",
       {false, true, false,
        [](const View& view, const json& names) { return placement_problem(view, names, true); }}},
      {"must_not_win_slot",
       {false, true, false,
        [](const View& view, const json& names) { return placement_problem(view, names, false); }}},
      {"report_mentions", {false, true, false, mention_problem}},
      {"nonstrict_report_mentions", {false, true, false, mention_problem}},
      {"strict_error_mentions", {true, true, true, strict_problem}},
      {"artifact_forbidden_ops", {true, true, false, forbidden_problem}},
      {"artifact_reload_on", {true, true, false, reloads_problem}},
      {"loop_body_devices",
       {true, false, false,
        [](const View& view, const json& limit) {
          return body_devices_problem(view, limit.get<std::int64_t>());
        }}},
      {"hoisted", {true, true, false, hoisted_problem}},
  };
  return judges;
}

}  // namespace

void judge_partition(const Case& tested, const std::vector<TriedWay>& tried, Verdicts& verdicts) {
  if (tested.partition() == nullptr) return;
  for (const auto& [key, value] : tested.partition()->items()) {
    const auto judge = key_judges().find(key);
    if (judge == key_judges().end()) continue;
    for (const TriedWay& one : tried) {
      if (!(one.way.dear ? judge->second.dear : judge->second.free)) continue;
      std::string problem;
      if (!one.attempt.loaded && !judge->second.without_plan)
        problem = "no plan: " + one.attempt.failure_text();
      else
        problem = judge->second.problem({tested, one.way, one.attempt}, value);
      verdicts.judge("partition." + key, problem.empty() ? "" : one.way.name + ": " + problem);
    }
  }
}

}  // namespace tessera::testing
