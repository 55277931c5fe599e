#pragma once

// A device profile (tessera.device/1.0): what a simulated device supports and how fast it is.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "backends/compile_interface.h"

namespace tessera::backends::simulated {

// What an attribute must be: equal to a number, list of numbers or text, or within a range.
struct AttributeRule {
  std::string name;
  std::variant<double, std::vector<double>, std::string> equals;
  std::optional<double> min, max;  // set: a range, and `equals` does not count
};

struct SupportRule {
  std::string op;
  std::vector<DType> dtypes;         // empty: all
  std::vector<AttributeRule> where;  // all must hold
  std::optional<std::int64_t> max_rank;
};

// What a test wants to go wrong.
struct Mock {
  bool init_fails = false;
  std::vector<std::string> compile_fails_for;  // source nodes
  std::map<std::string, double>
      run_time;  // slow_down, after, lost_after, error_at, hangs_at, wrong_at
};

struct Profile {
  std::string name;
  std::optional<std::vector<SupportRule>> supports;  // absent: everything in the op table
  std::vector<SupportRule> lacks;
  std::optional<std::vector<std::string>> only;   // operators
  std::optional<std::vector<std::string>> nodes;  // globs over source nodes
  std::vector<std::string> layouts;               // in order of preference; empty: row-major
  DeviceRates rates;
  std::int64_t sram_kib = 0;
  std::map<std::string, double> power;
  std::optional<std::int64_t> max_partitions;
  Mock mock;
  std::string text;  // the file, without white space: what the artefact carries
};

// Errors name the key, what was expected and what was found; unknown keys are errors.
Result<Profile> parse_profile(std::string_view json);

}  // namespace tessera::backends::simulated
