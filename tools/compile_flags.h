#pragma once

// The options that all compiling commands share (formats.md), and what they mean.

#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "compiler/options.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}

namespace tessera::tools {

// The words as given; to_options() checks them and makes them values.
struct CompileFlags {
  std::string devices = "cpu";
  int threads = 0;  // 0: as many as there are cores
  std::string precision = "fp32";
  std::vector<std::string> shapes;  // NAME=1x3x640x640
  std::vector<std::string> ranges;  // SYMBOL=1..8
  std::vector<std::string> states;  // past=present
  std::string measure = "off";
  double measure_seconds = 30;
  std::string cost_table;
  bool require_prices = false;
  std::vector<std::string> permits, forbids;  // DEVICE=GLOB
  std::vector<std::string> pins;              // GLOB=DEVICE
  std::vector<std::string> requirements;      // DEVICE[=GLOB]
  std::vector<std::string> disabled_passes;
  bool strict = false;
  std::int64_t assume_trips = 8;
  double assume_branch = 0.5;
  double runs_per_load = 100;
  bool exact = false;
  bool deterministic = false;  // every plan is: accepted for scripts that ask for it
  bool no_fallback = false;
  std::string stop_after = "emit";
  bool verbose = false;
  bool quiet = false;
  bool json = false;
};

std::shared_ptr<CompileFlags> add_compile_flags(CLI::App& command);

// Errors: a malformed word (which option, expected, found). Sets up progress and cancellation too.
Result<compiler::CompileOptions> to_options(const CompileFlags& flags);

// For the callbacks of commands: a malformed word is an error of usage, as an unknown option is.
// Throws CLI::ValidationError.
void check_usage(const CompileFlags& flags);

// "1x3x640x640".
Result<Dims> parse_dims(const std::string& text);

}  // namespace tessera::tools
