#include <fmt/format.h>

#include <algorithm>

#include "base/glob.h"
#include "report/report.h"

namespace tessera::report {
namespace {

// A table whose columns are as wide as their content; the last column is cut at the width.
class Table {
 public:
  explicit Table(std::vector<std::string> header) { rows_.push_back(std::move(header)); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  [[nodiscard]] std::string print(int width) const {
    std::vector<std::size_t> widths(rows_.front().size(), 0);
    for (const auto& row : rows_)
      for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    std::string text;
    for (const auto& row : rows_) {
      std::string line = " ";
      for (std::size_t i = 0; i < row.size(); ++i)
        line += i + 1 < row.size() ? fmt::format(" {:<{}}", row[i], widths[i]) : " " + row[i];
      if (line.size() > static_cast<std::size_t>(width))
        line.resize(static_cast<std::size_t>(width));
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
    return text;
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

std::string us(double value) {
  return fmt::format("{:.1f}", value);
}

std::string optional_us(const std::optional<double>& value) {
  return value ? us(*value) + " us" : "no plan";
}

std::string kind_of(const Report& report, const std::string& device) {
  const auto found = std::ranges::find(report.devices, device, &DeviceEntry::name);
  return found != report.devices.end() && found->simulated ? " (simulated)" : "";
}

std::string refusals_of(const NodeEntry& node) {
  std::string text;
  for (const auto& [device, reason] : node.supported)
    if (!reason.empty() && device != "reference")
      text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", device, reason);
  return text;
}

// One line for a run of nodes that one kernel, or one kind of kernel on one device, computes.
std::string placements_text(const Report& report, bool verbose, int width) {
  Table table({"node", "op", "device", "kernel", "form", "price us", "", "executed us",
               "runner-up us", "refused by"});
  for (std::size_t i = 0; i < report.nodes.size();) {
    const NodeEntry& node = report.nodes[i];
    std::size_t end = i + 1;
    std::string op = node.op;
    while (!verbose && node.cover && end < report.nodes.size() &&
           report.nodes[end].cover == node.cover)
      op += "+" + report.nodes[end++].op;
    const std::string executed = node.executed ? us(node.executed->us) : "not run";
    table.add({node.name, op, node.selected.device, node.selected.kernel,
               node.selected.layout + "/" + node.selected.dtype, us(node.selected.price_us),
               node.selected.measured ? "measured" : "estimated", executed,
               node.runner_up ? us(node.runner_up->price_us) + " " + node.runner_up->device + ":" +
                                    node.runner_up->kernel
                              : "-",
               refusals_of(node)});
    i = end;
  }
  return table.print(width);
}

std::string accounting_text(const Accounting& sum) {
  std::string text = fmt::format("accounting ({} timeline, us)\n", sum.timeline);
  text += fmt::format("  compute {} + sync {} + layout {} + copy {} - overlapped {}",
                      us(sum.compute_us), us(sum.sync_us), us(sum.layout_us), us(sum.copy_us),
                      us(sum.overlapped_us));
  text += fmt::format(" + unaccounted {} = {}; predicted {}\n", us(sum.unaccounted_us),
                      us(sum.total_us), us(sum.predicted_us));
  return text;
}

std::string crossings_text(const Report& report, int width) {
  if (report.crossings.empty()) return "crossings: none\n";
  Table table({"value", "from", "to", "bytes", "form", "sync us", "layout us", "copy us"});
  for (const auto& crossing : report.crossings)
    table.add({crossing.value, crossing.from, crossing.to, std::to_string(crossing.bytes),
               crossing.form, us(crossing.sync_us), us(crossing.layout_us), us(crossing.copy_us)});
  return fmt::format("crossings: {}\n", report.crossings.size()) + table.print(width);
}

std::string memory_text(const Report& report, int width) {
  Table table({"memory", "arena", "peak live", "weights", "state", "(bytes)"});
  for (const auto& memory : report.memory)
    table.add({memory.device, std::to_string(memory.arena_bytes),
               std::to_string(memory.peak_live_bytes), std::to_string(memory.weights_bytes),
               std::to_string(memory.state_bytes), ""});
  return "memory\n" + table.print(width);
}

std::string passes_text(const Report& report) {
  std::string text = "passes\n";
  for (const auto& pass : report.passes) {
    if (pass.added.empty() && pass.removed.empty()) continue;
    text += "  " + pass.name + ":";
    for (const auto& [op, count] : pass.removed) text += fmt::format(" -{} {}", count, op);
    for (const auto& [op, count] : pass.added) text += fmt::format(" +{} {}", count, op);
    text += "\n";
  }
  return text;
}

std::string notes_text(const Report& report, bool verbose) {
  constexpr std::size_t kShown = 5;
  std::string text;
  const std::size_t shown =
      verbose ? report.near_misses.size() : std::min(kShown, report.near_misses.size());
  if (!report.near_misses.empty())
    text += fmt::format("near misses: {}\n", report.near_misses.size());
  for (std::size_t i = 0; i < shown; ++i)
    text += fmt::format("  {} at {}: {}\n", report.near_misses[i].pattern,
                        fmt::join(report.near_misses[i].nodes, ", "), report.near_misses[i].reason);
  text += fmt::format("prices: {} from the table, {} estimated\n", report.price_hits,
                      report.price_misses.size());
  return text;
}

std::string selection_text(const Selection& selection) {
  return fmt::format("{} {} {}/{} at {:.2f} us ({})", selection.device, selection.kernel,
                     selection.layout, selection.dtype, selection.price_us,
                     selection.measured ? "measured" : "estimated");
}

std::string explain_node(const Report& report, const NodeEntry& node) {
  std::string text =
      fmt::format("{} ({}), from {}\n", node.name, node.op, fmt::join(node.origins, ", "));
  text += fmt::format("  permitted: {}\n", fmt::join(node.permitted, ", "));
  for (const auto& [device, reason] : node.supported)
    text += fmt::format("  {}: {}\n", device, reason.empty() ? "supported" : "refuses: " + reason);
  text += "  selected: " + selection_text(node.selected);
  if (node.cover) text += fmt::format(", inside cover {}", *node.cover);
  text +=
      "\n  runner-up: " + (node.runner_up ? selection_text(*node.runner_up) : std::string("none")) +
      "\n";
  text += node.executed ? fmt::format("  executed: {}{} {} in {:.1f} us\n", node.executed->device,
                                      kind_of(report, node.executed->device), node.executed->kernel,
                                      node.executed->us)
                        : std::string("  executed: not run\n");
  return text;
}

// Sizes that only the run decides, and where each comes from.
std::string assumptions_text(const Report& report, bool verbose) {
  constexpr std::string_view kPrefix = "assumed.";
  constexpr std::size_t kShown = 10;
  std::size_t count = 0;
  std::string text;
  for (const auto& [key, value] : report.options) {
    if (!key.starts_with(kPrefix)) continue;
    if (++count <= kShown || verbose)
      text += fmt::format("  {}: {}\n", key.substr(kPrefix.size()), value);
  }
  if (count == 0) return text;
  if (count > kShown && !verbose) text += fmt::format("  ... and {} more\n", count - kShown);
  return fmt::format("sizes that only the run decides, as priced: {}\n", count) + text;
}

}  // namespace

std::string to_text(const Report& report, bool verbose, int width) {
  std::string text;
  for (const auto& [key, value] : report.model) text += fmt::format("model {}: {}\n", key, value);
  for (const auto& device : report.devices)
    text += fmt::format("device {}: {}, rates {}\n", device.name,
                        device.simulated ? "simulated" : "real",
                        device.rates_measured ? "measured" : "from its profile");
  const AssignmentFigures& figures = report.assignment;
  text += fmt::format(
      "assignment: cost {} us, proven lower bound {} us, gap {:.2f} %; greedy by priority {}; cpu "
      "alone {}\n",
      us(figures.cost_us), us(figures.lower_bound_us), figures.gap * 100,
      optional_us(figures.greedy_us), optional_us(figures.cpu_only_us));
  text += assumptions_text(report, verbose);
  text += "placements\n" + placements_text(report, verbose, width);
  text += fmt::format("regions: {}\n", report.regions.size());
  for (const auto& region : report.regions)
    text += fmt::format("  {} on {}{}: {} nodes, compute {} us, launch {} us\n", region.id,
                        region.device, kind_of(report, region.device), region.nodes.size(),
                        us(region.compute_us), us(region.launch_us));
  return text + crossings_text(report, width) + accounting_text(report.accounting) +
         memory_text(report, width) + passes_text(report) + notes_text(report, verbose);
}

std::string explain(const Report& report, std::string_view name) {
  std::string text;
  for (const NodeEntry& node : report.nodes)
    if (glob_matches(name, node.name) ||
        std::ranges::any_of(node.origins,
                            [&](const std::string& origin) { return glob_matches(name, origin); }))
      text += explain_node(report, node);
  return text.empty()
             ? fmt::format(
                   "no node of the plan matches '{}': it may have been folded away (see passes)\n",
                   name)
             : text;
}

}  // namespace tessera::report
