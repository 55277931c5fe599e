#pragma once

// The evidence of one compilation: one data model, printed as JSON (tessera.report/1.0) and as
// text. For every node four things that are never confused: permitted, supported, selected,
// executed.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tessera::report {

struct DeviceEntry {
  std::string name;
  bool simulated = false;
  bool rates_measured = false;  // "measured", else "profile"
};

struct AssignmentFigures {
  std::string objective = "sum";
  double cost_us = 0;
  double lower_bound_us = 0;
  double gap = 0;                     // (cost - bound) / cost
  std::optional<double> greedy_us;    // nothing where greedy finds no legal plan
  std::optional<double> cpu_only_us;  // nothing where the CPU alone cannot run the model
  std::string order;                  // which execution order the bound holds for
  std::uint64_t search_nodes = 0;
};

// A chosen or considered way to run a node or a cover.
struct Selection {
  std::string device;
  std::string kernel;
  std::string layout;
  std::string dtype;
  double price_us = 0;
  bool measured = false;  // "measured", else "estimated"
};

struct Execution {
  std::string device;
  std::string kernel;
  double us = 0;
};

struct NodeEntry {
  std::string name;
  std::string op;
  std::vector<std::string> origins;    // source nodes
  std::vector<std::string> permitted;  // devices
  std::map<std::string, std::string>
      supported;       // per device: "" where it is, else the reason of the refusal
  Selection selected;  // of the cover where it is in one
  std::optional<Selection> runner_up;
  std::optional<Execution> executed;  // nothing: "not run"
  std::optional<std::uint32_t> cover;
  std::string body;  // "if_1/then_branch"; empty outside of bodies. It may not run at all
};

struct RegionEntry {
  std::uint32_t id = 0;
  std::string device;
  std::vector<std::string> nodes;
  double compute_us = 0;
  double launch_us = 0;
};

struct CrossingEntry {
  std::string value;
  std::string from;
  std::string to;
  std::int64_t bytes = 0;
  double sync_us = 0;
  double layout_us = 0;
  double copy_us = 0;
  std::string form;  // in which it arrives: "nhwc/fp16"
};

// T = compute + sync + layout + copy - overlapped + unaccounted.
struct Accounting {
  std::string timeline = "modelled";  // or "wall"
  double compute_us = 0;
  double sync_us = 0;
  double layout_us = 0;
  double copy_us = 0;
  double overlapped_us = 0;
  double unaccounted_us = 0;
  double total_us = 0;
  double predicted_us = 0;
};

struct MemoryEntry {
  std::string device;  // of the memory space: "host" is the CPU's
  std::int64_t arena_bytes = 0;
  std::int64_t peak_live_bytes = 0;
  std::int64_t weights_bytes = 0;
  std::int64_t state_bytes = 0;
  std::int64_t scratch_bytes = 0;
};

struct PassEntry {
  std::string name;
  double ms = 0;  // zero in an artefact: equal inputs give equal bytes
  std::map<std::string, std::int64_t> added;
  std::map<std::string, std::int64_t> removed;
};

struct NearMiss {
  std::string pattern;
  std::vector<std::string> nodes;
  std::string reason;
};

struct PriceMiss {
  std::string key;
  std::string nearest;
};

struct Report {
  std::map<std::string, std::string> model;  // name, hash, opsets, nodes, ...
  std::map<std::string, std::string> options;
  std::vector<DeviceEntry> devices;
  AssignmentFigures assignment;
  std::vector<NodeEntry> nodes;  // in execution order
  std::vector<RegionEntry> regions;
  std::vector<CrossingEntry> crossings;
  Accounting accounting;
  std::vector<MemoryEntry> memory;
  std::vector<PassEntry> passes;
  std::vector<NearMiss> near_misses;
  std::uint64_t price_hits = 0;
  std::vector<PriceMiss> price_misses;
};

// One line of JSON, keys in the order of formats.md; parses back to an equal report.
std::string to_json(const Report& report);

// Errors: not JSON, another schema (both named), a field of the wrong type (its path, expected,
// found).
Result<Report> from_json(std::string_view text);

// For people: placements as a table (long runs of equal placements folded unless `verbose`),
// assignment, crossings, accounting, memory, passes, near misses, price misses. `width` is that of
// the terminal.
std::string to_text(const Report& report, bool verbose, int width = 120);

// Why a node runs where it runs: everything known about the nodes whose name or origin matches
// `name`.
std::string explain(const Report& report, std::string_view name);

}  // namespace tessera::report
