#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "commands.h"
#include "compile_flags.h"
#include "compiler/compile.h"
#include "compiler/machine_rates.h"
#include "console.h"
#include "plan/cost_table.h"
#include "plan/estimate_errors.h"

namespace tessera::tools {
namespace {

constexpr std::size_t kKeyWidth = 120;

struct MeasureArguments {
  std::string model;  // empty: the rates alone
  std::string rates;  // empty: none
  std::shared_ptr<CompileFlags> flags;
};

// Rates that are there stay, but for --measure all, and for those taken while others used a core.
Status measure_rates(const MeasureArguments& arguments, const compiler::CompileOptions& options) {
  if (std::filesystem::exists(arguments.rates) && options.measure != plan::MeasureMode::kAll) {
    TESSERA_ASSIGN(const std::string text, read_file(arguments.rates));
    auto known = backends::parse_rates(text);
    if (!known) return tl::unexpected(in_context(std::move(known).error(), arguments.rates));
    if (!known->measured.busy) return {};
  }
  if (options.progress) options.progress("rates", 0);
  TESSERA_ASSIGN(const auto file, compiler::measure_machine(options.threads));
  TESSERA_TRY(write_file_atomically(arguments.rates, backends::print_rates(file)));
  if (arguments.flags->quiet) return {};
  say(fmt::format("tessera: {} holds the rates of {} threads{}", arguments.rates, file.threads,
                  file.measured.busy ? ", measured while others used a core" : ""));
  return {};
}

void say_outcome(const compiler::Compiled& compiled, const std::string& path, std::size_t prices,
                 bool all_keys) {
  const auto& measuring = compiled.measuring;
  say(
      fmt::format("tessera: measured {} prices in {:.1f} of {:g} s; {} holds {}; {} of this model "
                  "still estimated",
                  measuring.measured, measuring.spent_s, measuring.budget_s, path, prices,
                  compiled.report.price_misses.size()));
  if (const auto notes = plan::measuring_notes(compiled.estimates); !notes.empty())
    say(fmt::format("tessera: of this model's measured prices: {}", notes));
  std::string table = plan::to_text(plan::estimate_errors(compiled.estimates),
                                    all_keys ? std::string::npos : kKeyWidth);
  if (table.empty()) return;
  table.pop_back();
  say(table);
}

Status run_measure(const MeasureArguments& arguments) {
  TESSERA_ASSIGN(auto options, to_options(*arguments.flags));
  if (arguments.model.empty() && arguments.rates.empty())
    return fail(ErrorCode::kInvalidArgument,
                "measure: expected a MODEL, or --rates FILE to measure the machine alone");
  if (!arguments.model.empty() && options.cost_table.empty())
    return fail(ErrorCode::kInvalidArgument, "measure: expected --cost-table FILE to write to");
  if (!arguments.rates.empty()) {
    if (!arguments.rates.ends_with(".json"))
      return fail(
          ErrorCode::kInvalidArgument,
          fmt::format("--rates: expected a file ending in .json, found '{}'", arguments.rates));
    TESSERA_TRY(measure_rates(arguments, options));
    std::ranges::replace(options.devices, std::string("cpu"), arguments.rates);
  }
  if (arguments.model.empty()) return {};
  if (options.measure == plan::MeasureMode::kOff) options.measure = plan::MeasureMode::kMissing;
  options.stop_after = compiler::Stage::kAllocate;
  TESSERA_ASSIGN(const auto compiled, compiler::compile(arguments.model, options));
  TESSERA_ASSIGN(const auto table, plan::CostTable::load(options.cost_table));
  if (!arguments.flags->quiet)
    say_outcome(compiled, options.cost_table.string(), table.size(), arguments.flags->verbose);
  return {};
}

}  // namespace

void add_measure(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand(
      "measure", "Measure the rates of the machine, and the prices that a model needs");
  auto arguments = std::make_shared<MeasureArguments>();
  command->add_option("MODEL", arguments->model,
                      "ONNX file whose prices to measure, into --cost-table");
  command->add_option("--rates", arguments->rates,
                      "File (.json) of the machine's rates for --devices: measured first where it "
                      "is not there, and used in place of 'cpu'");
  arguments->flags = add_compile_flags(*command);
  command->callback([=, &action] {
    check_usage(*arguments->flags);
    action = [=] { return run_measure(*arguments); };
  });
}

}  // namespace tessera::tools
