#include "compiler/evidence.h"

#include <algorithm>
#include <limits>
#include <map>

namespace tessera::compiler {
namespace {

using artefact::Opcode;

class Evidence {
 public:
  Evidence(const ir::Module& module, const ir::Method& method, const Planned& planned,
           const plan::Target& target, report::Report& report)
      : module_(module),
        graph_(method.graph),
        planned_(planned),
        target_(target),
        report_(report) {}

  void fill() {
    for (std::uint32_t device = 0; device < target_.device_count(); ++device)
      report_.devices.push_back({target_.info(device).name, target_.info(device).simulated,
                                 target_.info(device).rates_measured});
    for (std::size_t i = 0; i < planned_.choices.nodes.size(); ++i)
      report_.nodes.push_back(node_entry(i));
    add_regions();
    add_crossings_and_accounting();
    add_memory();
  }

 private:
  [[nodiscard]] report::Selection selection_of(const plan::Option& option) const {
    const auto& form = option.candidate.outputs.front();
    return {target_.info(option.device).name,
            option.candidate.kernel,
            form.layout.to_string(),
            std::string(to_string(option.candidate.compute_dtype)),
            option.price.us,
            option.price.measured};
  }
  [[nodiscard]] std::string device_of_memory(std::uint32_t memory) const {
    const auto device = std::ranges::find(target_.memory_of, memory) - target_.memory_of.begin();
    return target_.info(static_cast<std::uint32_t>(device)).name;
  }
  report::NodeEntry node_entry(std::size_t index) const;
  void fill_selection(std::size_t index, report::NodeEntry& entry) const;
  // Regions are numbered through all graphs.
  void add_regions();
  void add_memory();
  void add_crossings_and_accounting();
  void add_steps(const plan::Lowered& lowered);
  void add_crossing(const plan::Lowered& lowered, const plan::LoweredStep& step, double weight);

  const ir::Module& module_;
  const ir::Graph& graph_;
  const Planned& planned_;
  const plan::Target& target_;
  report::Report& report_;
};

report::NodeEntry Evidence::node_entry(std::size_t index) const {
  const plan::ItemOptions& options = planned_.choices.nodes[index];
  const ir::Node& node = *options.item.nodes.front();
  report::NodeEntry entry;
  entry.name = node.name;
  entry.op = node.op->qualified_name();
  if (node.block != 0) {
    const ir::Block& block = graph_.blocks[node.block];
    entry.body = graph_.find_node(block.owner)->name + "/" + block.name;
  }
  for (const ir::OriginId origin : node.origins)
    entry.origins.push_back(module_.source_nodes[origin].name);
  for (std::uint32_t device = 0; device < target_.device_count(); ++device) {
    const auto& name = target_.info(device).name;
    if (options.permitted[device]) entry.permitted.push_back(name);
    const auto refusal = options.refusals.find(device);
    entry.supported[name] = refusal == options.refusals.end() ? std::string() : refusal->second;
  }
  fill_selection(index, entry);
  return entry;
}

// The selected way, and the cheapest of the others: of the node alone, or of covers that hold it.
void Evidence::fill_selection(std::size_t index, report::NodeEntry& entry) const {
  const plan::ChosenNode& choice = planned_.assignment.nodes[index];
  const plan::Option* selected = nullptr;
  if (choice.cover >= 0) {
    const auto cover = static_cast<std::size_t>(choice.cover);
    entry.cover = static_cast<std::uint32_t>(choice.cover);
    selected = &planned_.choices.cover_options[cover]
                    .options[static_cast<std::size_t>(planned_.assignment.cover_option[cover])];
  } else {
    selected = &planned_.choices.nodes[index].options[static_cast<std::size_t>(choice.option)];
  }
  entry.selected = selection_of(*selected);
  const plan::ItemOptions& peers =
      choice.cover >= 0 ? planned_.choices.cover_options[static_cast<std::size_t>(choice.cover)]
                        : planned_.choices.nodes[index];
  const plan::Option* runner_up = nullptr;
  for (const plan::Option& option : peers.options)
    if (&option != selected && (runner_up == nullptr || option.price.us < runner_up->price.us))
      runner_up = &option;
  if (runner_up != nullptr) entry.runner_up = selection_of(*runner_up);
}

void Evidence::add_regions() {
  for (const plan::Lowered& lowered : planned_.lowered) {
    for (const plan::Region& region : lowered.regions) {
      const auto& info = target_.info(region.device);
      report::RegionEntry entry{static_cast<std::uint32_t>(report_.regions.size()),
                                info.name,
                                {},
                                region.compute_us,
                                info.rates.launch_us};
      for (const std::size_t step : region.steps)
        for (const std::size_t node : lowered.steps[step].nodes)
          entry.nodes.push_back(graph_.nodes()[node]->name);
      report_.regions.push_back(std::move(entry));
    }
  }
}

// Each body has arenas of its own.
void Evidence::add_memory() {
  for (std::uint32_t memory = 0; memory < target_.memories.size(); ++memory) {
    report::MemoryEntry entry{target_.memories[memory], 0, 0, 0, 0, 0};
    for (const plan::Lowered& lowered : planned_.lowered) {
      for (const plan::MemoryFigures& figures : lowered.memory) {
        if (figures.memory != memory) continue;
        entry.arena_bytes += figures.arena_bytes;
        entry.peak_live_bytes += figures.peak_live_bytes;
        entry.weights_bytes += figures.weights_bytes;
        entry.state_bytes += figures.state_bytes;
      }
    }
    report_.memory.push_back(std::move(entry));
  }
}

// A transfer, with the conversions of the same value that adapt it on either side.
void Evidence::add_crossing(const plan::Lowered& lowered, const plan::LoweredStep& step,
                            double weight) {
  const auto& from = step.conversion.from;
  const auto& to = step.conversion.to;
  report::CrossingEntry entry;
  entry.value = graph_.value(step.value).name;
  entry.from = device_of_memory(from.memory);
  entry.to = device_of_memory(to.memory);
  entry.bytes = lowered.buffers[step.inputs.front()].size_bytes;
  const auto from_device = target_.find(entry.from);
  entry.sync_us = weight * target_.info(from_device).rates.sync_us;
  entry.copy_us = weight * step.price_us;
  entry.form = to.tensor.layout.to_string() + "/" + std::string(to_string(to.tensor.dtype));
  for (const plan::LoweredStep& other : lowered.steps)
    if (other.opcode == Opcode::kConvert && other.value == step.value &&
        (other.conversion.to == from || other.conversion.from == to))
      entry.layout_us += weight * other.price_us;
  report_.crossings.push_back(std::move(entry));
}

// Times as often as the graph is expected to run.
void Evidence::add_steps(const plan::Lowered& lowered) {
  report::Accounting& accounting = report_.accounting;
  const double weight = graph_.weight_of(lowered.block);
  for (const plan::LoweredStep& step : lowered.steps) {
    switch (step.opcode) {
      case Opcode::kCall:
      case Opcode::kBranch:
      case Opcode::kLoop: accounting.compute_us += weight * step.price_us; break;
      case Opcode::kConvert: accounting.layout_us += weight * step.price_us; break;
      default:
        accounting.copy_us += weight * step.price_us;
        if (step.conversion.from.memory != step.conversion.to.memory)
          add_crossing(lowered, step, weight);
        break;
    }
  }
  // Each region is launched and waited for once: the neighbour costs of the assignment, at the
  // order that was chosen.
  for (const plan::Region& region : lowered.regions) {
    const auto& rates = target_.info(region.device).rates;
    accounting.sync_us += weight * (rates.launch_us + rates.sync_us);
  }
}

void Evidence::add_crossings_and_accounting() {
  for (const plan::Lowered& lowered : planned_.lowered) add_steps(lowered);
  report::Accounting& accounting = report_.accounting;
  accounting.total_us =
      accounting.compute_us + accounting.sync_us + accounting.layout_us + accounting.copy_us;
  accounting.predicted_us = accounting.total_us;
}

}  // namespace

void add_plan_evidence(const ir::Module& module, const ir::Method& method, const Planned& planned,
                       const plan::Target& target, const plan::Pricer& pricer,
                       report::Report& report) {
  auto& figures = report.assignment;
  figures.cost_us = planned.solution.cost;
  figures.lower_bound_us = planned.solution.lower_bound;
  figures.gap = planned.solution.gap;
  figures.search_nodes = planned.solution.search_nodes;
  figures.greedy_us = planned.greedy_us;
  figures.order = "topological order of the model's nodes";
  Evidence(module, method, planned, target, report).fill();
  report.price_hits = pricer.hits();
  for (const auto& miss : pricer.misses()) report.price_misses.push_back({miss.key, miss.nearest});
}

}  // namespace tessera::compiler
