#include "compile_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>

#include "base/processors.h"
#include "console.h"

namespace tessera::tools {
namespace {

Result<std::int64_t> parse_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || value < 0)
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("expected a number of at least 0, found '{}'", text));
  return value;
}

std::vector<std::string> split(std::string_view text, std::string_view separator) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t next = std::min(text.find(separator, at), text.size());
    parts.emplace_back(text.substr(at, next - at));
    at = next + separator.size();
  }
  return parts;
}

// "KEY=VALUE" at the last '=' (names of values may hold one).
Result<std::pair<std::string, std::string>> parse_pair(std::string_view option,
                                                       const std::string& word,
                                                       std::string_view form) {
  const auto at = word.rfind('=');
  if (at == std::string::npos || at == 0 || at + 1 == word.size())
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: expected {}, found '{}'", option, form, word));
  return std::pair{word.substr(0, at), word.substr(at + 1)};
}

Status add_shapes(const CompileFlags& flags, compiler::CompileOptions& options) {
  for (const std::string& word : flags.shapes) {
    TESSERA_ASSIGN(const auto pair, parse_pair("--shape", word, "NAME=1x3x640x640"));
    auto dims = parse_dims(pair.second);
    if (!dims)
      return tl::unexpected(in_context(std::move(dims).error(), fmt::format("--shape {}", word)));
    options.shapes[pair.first] = *dims;
  }
  for (const std::string& word : flags.ranges) {
    TESSERA_ASSIGN(const auto pair, parse_pair("--range", word, "SYMBOL=1..8"));
    const auto ends = split(pair.second, "..");
    const auto min = parse_number(ends.front());
    const auto max = parse_number(ends.back());
    if (ends.size() != 2 || !min || !max || *min > *max)
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("--range: expected SYMBOL=1..8, found '{}'", word));
    options.ranges[pair.first] = {*min, *max};
  }
  for (const std::string& word : flags.states) {
    TESSERA_ASSIGN(auto pair, parse_pair("--state", word, "PAST=PRESENT"));
    options.states.push_back(std::move(pair));
  }
  return {};
}

Status add_rules(const CompileFlags& flags, compiler::CompileOptions& options) {
  using Kind = plan::PlacementRule::Kind;
  const auto add = [&](Kind kind, std::string_view option, const std::string& word) -> Status {
    // The first '=' here: devices have no '=' in their names, globs may.
    const auto at = word.find('=');
    if (at == std::string::npos || at == 0 || at + 1 == word.size())
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: expected DEVICE=GLOB, found '{}'", option, word));
    options.rules.push_back({kind, word.substr(0, at), word.substr(at + 1)});
    return {};
  };
  for (const std::string& word : flags.permits) TESSERA_TRY(add(Kind::kPermit, "--permit", word));
  for (const std::string& word : flags.forbids) TESSERA_TRY(add(Kind::kForbid, "--forbid", word));
  for (const std::string& word : flags.pins) {
    TESSERA_ASSIGN(const auto pair, parse_pair("--pin", word, "GLOB=DEVICE"));
    options.rules.push_back({Kind::kPin, pair.second, pair.first});
  }
  for (const std::string& word : flags.requirements) {
    const auto at = word.find('=');
    options.requirements.push_back(
        {word.substr(0, at), at == std::string::npos ? "*" : word.substr(at + 1)});
  }
  return {};
}

Status add_measuring(const CompileFlags& flags, compiler::CompileOptions& options) {
  if (flags.measure == "off")
    options.measure = plan::MeasureMode::kOff;
  else if (flags.measure == "missing")
    options.measure = plan::MeasureMode::kMissing;
  else if (flags.measure == "all")
    options.measure = plan::MeasureMode::kAll;
  else
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("--measure: expected off, missing or all, found '{}'", flags.measure));
  options.measure_seconds = flags.measure_seconds;
  options.cost_table = flags.cost_table;
  options.require_prices = flags.require_prices;
  return {};
}

}  // namespace

Result<Dims> parse_dims(const std::string& text) {
  Dims dims;
  for (const std::string& part : split(text, "x")) {
    TESSERA_ASSIGN(const std::int64_t size, parse_number(part));
    dims.push_back(size);
  }
  return dims;
}

std::shared_ptr<CompileFlags> add_compile_flags(CLI::App& command) {
  auto flags = std::make_shared<CompileFlags>();
  command.add_option(
      "--devices", flags->devices,
      "Devices, comma-separated: names of devices that are here, or profile files (.json)");
  command.add_option("--threads", flags->threads,
                     "CPU threads (default: as many as this process may use)");
  command.add_option("--precision", flags->precision,
                     "fp32, bf16 or fp16: in which fp32 operations may be computed");
  command.add_option("--shape", flags->shapes, "Sizes to price at: NAME=1x3x640x640");
  command.add_option("--range", flags->ranges, "Range of a symbol: SYMBOL=1..8");
  command.add_option("--state", flags->states, "State that is kept between calls: PAST=PRESENT");
  command.add_option("--measure", flags->measure,
                     "off, missing or all: measure prices on this machine");
  command.add_option("--measure-seconds", flags->measure_seconds, "Time to spend on measuring");
  command.add_option("--cost-table", flags->cost_table,
                     "File of prices, read and (with --measure) written");
  command.add_flag("--require-prices", flags->require_prices,
                   "A price that is not in the table is an error");
  command.add_option("--permit", flags->permits,
                     "Leave a device to the nodes that match: DEVICE=GLOB");
  command.add_option("--forbid", flags->forbids, "Keep matching nodes off a device: DEVICE=GLOB");
  command.add_option("--pin", flags->pins, "Put matching nodes on a device: GLOB=DEVICE");
  command.add_option("--require", flags->requirements,
                     "Fail where a matching node falls elsewhere: DEVICE[=GLOB]");
  command.add_option("--disable-pass", flags->disabled_passes, "Leave out a pass, by name");
  command.add_flag(
      "--strict", flags->strict,
      "Nothing is left out: a device that cannot start, a kernel that does not compile, "
      "or (run) a node that ran elsewhere than selected is an error");
  command
      .add_option("--assume-trips", flags->assume_trips,
                  "Iterations that are assumed of a loop whose number is not known (default: 8)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30));
  command
      .add_option("--assume-branch", flags->assume_branch,
                  "Share of its runs in which an If is assumed to take a branch, each of the "
                  "two (default: 0.5)")
      ->check(CLI::Range(0.0, 1.0));
  command
      .add_option("--runs-per-load", flags->runs_per_load,
                  "Runs that are assumed to follow a load, and to share what preparing the kernels "
                  "costs there (default: 100; 0: loads cost nothing)")
      ->check(CLI::Range(0.0, 1e12));
  command.add_flag("--exact", flags->exact, "No algorithm or rewrite with a wider error bound");
  command.add_flag("--deterministic", flags->deterministic,
                   "Equal inputs give equal artefacts (always so)");
  command.add_flag("--no-fallback", flags->no_fallback, "Do not carry the plan for the CPU alone");
  command.add_option("--stop-after", flags->stop_after, "Stop after a stage");
  command.add_flag("-v,--verbose", flags->verbose, "Say more");
  command.add_flag("-q,--quiet", flags->quiet, "Say nothing but errors");
  command.add_flag("--json", flags->json, "The answer as one line of JSON, the last");
  return flags;
}

void check_usage(const CompileFlags& flags) {
  if (const auto options = to_options(flags); !options)
    throw CLI::ValidationError(options.error().to_string());
}

Result<compiler::CompileOptions> to_options(const CompileFlags& flags) {
  compiler::CompileOptions options;
  options.devices = split(flags.devices, ",");
  if (flags.threads < 0)
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("--threads: expected at least 1, found {}", flags.threads));
  options.threads = flags.threads > 0 ? flags.threads : usable_processors();
  options.precision = dtype_from_string(flags.precision);
  if (options.precision != DType::kFp32 && options.precision != DType::kBf16 &&
      options.precision != DType::kFp16)
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format("--precision: expected fp32, bf16 or fp16, found '{}'", flags.precision));
  TESSERA_TRY(add_shapes(flags, options));
  TESSERA_TRY(add_rules(flags, options));
  TESSERA_TRY(add_measuring(flags, options));
  options.disabled_passes = flags.disabled_passes;
  options.strict = flags.strict;
  options.control = {.branch_share = flags.assume_branch, .trips = flags.assume_trips};
  options.runs_per_load = flags.runs_per_load;
  options.exact = flags.exact;
  options.fallback = !flags.no_fallback;
  TESSERA_ASSIGN(options.stop_after, compiler::stage_from_string(flags.stop_after));
  options.cancel = cancellation();
  if (!flags.quiet)
    options.progress = [](std::string_view stage, double share) { show_progress(stage, share); };
  return options;
}

}  // namespace tessera::tools
