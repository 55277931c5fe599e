#pragma once

// The experiment of one model: other plans than the chosen one, measured beside it.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "compile_flags.h"
#include "plans/alternatives.h"
#include "plans/timing.h"

namespace tessera::bench {

struct Settings {
  tools::CompileFlags flags;          // devices, threads, prices
  std::vector<std::string> subgraph;  // globs; empty: the one that default_subgraph() knows
  std::size_t combinations = 400;     // of the subgraph, at most
  std::size_t random = 100;
  std::size_t neighbours = 50;
  std::uint64_t seed = 1;
  double last_resort_ms = 10;
  int rounds = 3;         // of every plan
  int final_rounds = 15;  // of those that may be the best
};

// The chosen plan may take this much longer than the best one.
inline constexpr double kAllowed = 1.05;

struct MeasuredPlan {
  std::size_t group = 0;  // of ModelResult::groups
  double predicted_us = 0;
  std::vector<NodeDifference> differences;
  Timing timing;
  std::optional<Timing> final_timing;
  std::string problem;  // it does not compile, does not run, or gives other outputs; else empty
};

enum class Verdict : std::uint8_t { kHolds, kFails, kUndecided };
std::string_view to_string(Verdict verdict);

struct ModelResult {
  std::string name;
  std::vector<std::string> subgraph;  // nodes
  double predicted_us = 0;            // of the chosen plan
  std::size_t known_prices = 0;       // that the cost table had
  std::size_t estimated_prices = 0;
  double chosen_us = 0;       // median over all rounds that count for the verdict
  Timing again;               // the chosen plan, emitted once more, beside itself: the noise
  std::vector<Group> groups;  // without their plans
  std::vector<MeasuredPlan> plans;

  // The fastest of the plans that were measured again; null where there is none.
  [[nodiscard]] const MeasuredPlan* best() const;
  // kUndecided where the chosen plan beside itself is off by more than kAllowed; else kHolds where
  // no plan has a problem and the chosen one is within kAllowed of the best.
  [[nodiscard]] Verdict verdict() const;
};

struct ModelFile {
  std::string name;
  std::filesystem::path path;
};

// A file, named by its folder; or the name of a model that is shared, or was filled by `./dev
// models`. Errors: neither.
Result<ModelFile> find_model(const std::string& word);

// Nodes that make a telling subgraph of a well-known model; empty for others.
std::vector<std::string> default_subgraph(const std::string& model);

// Inputs, and the sizes to plan for, come from inputs.npz beside the model; drawn where there is
// none. Every plan is measured in `rounds`; then those that seemed faster than kFast of the chosen
// one, or are among the fastest few, are measured again in `final_rounds`, which alone decide: of
// many noisy ratios the smallest is too small. Errors: no subgraph; see find_nodes, combinations
// and compiler::compile.
Result<ModelResult> measure_model(const ModelFile& model, const Settings& settings);

}  // namespace tessera::bench
