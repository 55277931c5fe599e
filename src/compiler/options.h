#pragma once

// What the user asks of a compilation. One structure; each field says what its absence means.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/dim_expr.h"
#include "base/dims.h"
#include "ir/flatten.h"
#include "plan/choices.h"
#include "plan/price.h"

namespace tessera::compiler {

class PlanSpace;

// The stages in order; each can be stopped at, and printed.
enum class Stage : std::uint8_t {
  kImport,
  kInfer,
  kSimplify,
  kFuse,
  kEnumerate,
  kPrice,
  kAssign,
  kLegalize,
  kSchedule,
  kAllocate,
  kEmit
};
std::string_view to_string(Stage stage);
Result<Stage> stage_from_string(std::string_view name);  // an error lists the stages

// `--require DEVICE[=GLOB]`: every node that matches must be placed there.
struct Requirement {
  std::string device;
  std::string glob = "*";
};

struct CompileOptions {
  std::vector<std::string> devices = {"cpu"};  // names of devices that are here, or profile files
  int threads = 1;
  DType precision = DType::kFp32;  // in which fp32 operations may be computed besides fp32 itself
  std::map<std::string, Dims>
      shapes;  // input sizes to price at, by input; absent: batch 1 and the default sizes
  std::map<std::string, SymbolRange> ranges;  // of symbols
  std::vector<std::pair<std::string, std::string>> states;
  plan::MeasureMode measure = plan::MeasureMode::kOff;
  double measure_seconds = 30;             // budget of measuring; what is left is estimated
  std::filesystem::path cost_table;        // empty: none
  bool require_prices = false;             // a price that is not in the table is an error
  std::vector<plan::PlacementRule> rules;  // --permit, --forbid, --pin
  std::vector<Requirement> requirements;
  bool strict =
      false;  // a device that cannot start, or fails to compile what it offered, is an error
  std::vector<std::string> disabled_passes;
  ir::FlattenOptions control;          // how often bodies are assumed to run
  double runs_per_load = 100;          // that share what preparing kernels costs; 0: nobody pays
  bool exact = false;                  // no algorithm with a wider error bound
  bool fallback = true;                // with several devices, carry the plan for the CPU alone too
  std::uint64_t node_limit = 200'000;  // of the branch and bound
  Stage stop_after = Stage::kEmit;
  // Called before each stage and while measuring: stage, share done in [0, 1].
  std::function<void(std::string_view, double)> progress;
  // Called with the text form of a stage when it is done; only for the stages that have one.
  std::function<void(Stage, const std::string&)> dump;
  bool canonical_dump = false;  // graphs up to fuse in the form by which they are compared
  // Called after emit with all that could have been chosen (compiler/plan_space.h); an error ends
  // the compilation.
  std::function<Status(const PlanSpace&)> explore;
  std::stop_token cancel;
};

}  // namespace tessera::compiler
