#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "artefact/write/writer.h"
#include "commands.h"
#include "compile_flags.h"
#include "compiler/compile.h"
#include "console.h"
#include "report/report.h"

namespace tessera::tools {
namespace {

struct CompileArguments {
  std::string model;
  std::string output;
  std::shared_ptr<CompileFlags> flags;
};

std::string summary(const compiler::Compiled& compiled) {
  const auto& figures = compiled.report.assignment;
  std::string text = fmt::format("cost {:.1f} us, lower bound {:.1f} us, gap {:.2f} %",
                                 figures.cost_us, figures.lower_bound_us, figures.gap * 100);
  if (figures.greedy_us) text += fmt::format(", greedy {:.1f} us", *figures.greedy_us);
  if (figures.cpu_only_us) text += fmt::format(", cpu alone {:.1f} us", *figures.cpu_only_us);
  text += fmt::format("; prices: {} from the table, {} estimated", compiled.report.price_hits,
                      compiled.report.price_misses.size());
  return text;
}

void say_misses(const report::Report& report, bool all) {
  std::size_t shown = 0;
  for (const auto& miss : report.price_misses) {
    if (!all && ++shown > 3) {
      say(fmt::format("  ... and {} more (-v names all)", report.price_misses.size() - 3));
      break;
    }
    say(fmt::format("  no price for {}{}", miss.key,
                    miss.nearest.empty() ? "" : "; nearest " + miss.nearest));
  }
}

Status run_compile(const CompileArguments& arguments) {
  TESSERA_ASSIGN(const auto options, to_options(*arguments.flags));
  TESSERA_ASSIGN(const auto compiled, compiler::compile(arguments.model, options));
  const bool whole = options.stop_after == compiler::Stage::kEmit;
  if (whole) TESSERA_TRY(artefact::write_program(compiled.image, arguments.output));
  if (arguments.flags->json) {
    answer(report::to_json(compiled.report) + "\n");
  } else if (!whole) {
    say(fmt::format("tessera: {}: stopped after stage '{}'; nothing is written", arguments.model,
                    to_string(options.stop_after)));
  } else if (!arguments.flags->quiet) {
    say(summary(compiled));
    if (!options.cost_table.empty()) say_misses(compiled.report, arguments.flags->verbose);
    say(fmt::format("tessera: compiled {} in {:.2f} s -> {}", arguments.model,
                    compiled.total_ms / 1000, arguments.output));
  }
  return {};
}

struct StageArguments {
  std::string model;
  std::string stage = "simplify";
  bool canonical = false;  // dump alone
  std::shared_ptr<CompileFlags> flags;
};

Status run_plan(const StageArguments& arguments) {
  TESSERA_ASSIGN(auto options, to_options(*arguments.flags));
  options.stop_after = compiler::Stage::kAllocate;
  TESSERA_ASSIGN(const auto compiled, compiler::compile(arguments.model, options));
  if (arguments.flags->json)
    answer(report::to_json(compiled.report) + "\n");
  else
    answer(report::to_text(compiled.report, arguments.flags->verbose, terminal_width()));
  return {};
}

// What inference could not tell, as comments of the text form.
std::string unknown_sizes(const report::Report& report) {
  std::string text;
  for (const auto& miss : report.near_misses) {
    if (miss.pattern == "shape inference")
      text += fmt::format("// not known: node '{}': {}\n", miss.nodes.front(), miss.reason);
  }
  return text;
}

Status run_dump(const StageArguments& arguments) {
  TESSERA_ASSIGN(auto options, to_options(*arguments.flags));
  TESSERA_ASSIGN(options.stop_after, compiler::stage_from_string(arguments.stage));
  options.canonical_dump = arguments.canonical;
  options.dump = [&](compiler::Stage stage, const std::string& text) {
    if (stage == options.stop_after) answer(text);
  };
  TESSERA_ASSIGN(const auto compiled, compiler::compile(arguments.model, options));
  if (options.stop_after == compiler::Stage::kInfer) answer(unknown_sizes(compiled.report));
  if (options.stop_after == compiler::Stage::kEmit || arguments.flags->json)
    answer(report::to_json(compiled.report) + "\n");
  return {};
}

template <typename Run>
std::shared_ptr<StageArguments> add_stage_command(CLI::App& app, Action& action, const char* name,
                                                  const char* help, Run run) {
  auto* command = app.add_subcommand(name, help);
  auto arguments = std::make_shared<StageArguments>();
  command->add_option("MODEL", arguments->model, "ONNX file")->required();
  arguments->flags = add_compile_flags(*command);
  command->callback([=, &action] {
    check_usage(*arguments->flags);
    action = [=] { return run(*arguments); };
  });
  return arguments;
}

}  // namespace

void add_compile(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("compile", "Compile a model to an artefact");
  auto arguments = std::make_shared<CompileArguments>();
  command->add_option("MODEL", arguments->model, "ONNX file")->required();
  command->add_option("-o,--output", arguments->output, "Artefact to write")->required();
  arguments->flags = add_compile_flags(*command);
  command->callback([=, &action] {
    check_usage(*arguments->flags);
    action = [=] { return run_compile(*arguments); };
  });
}

void add_plan(CLI::App& app, Action& action) {
  add_stage_command(app, action, "plan", "Assignment and memory, without writing kernels",
                    run_plan);
}

void add_dump(CLI::App& app, Action& action) {
  auto arguments = add_stage_command(app, action, "dump", "The text form of one stage", run_dump);
  app.get_subcommand("dump")
      ->add_option("--stage", arguments->stage,
                   "import, infer, simplify, fuse, enumerate, price, assign, legalize, schedule, "
                   "allocate, emit")
      ->check([](const std::string& name) {
        const auto stage = compiler::stage_from_string(name);
        return stage ? std::string() : stage.error().to_string();
      });
  app.get_subcommand("dump")->add_flag(
      "--canonical", arguments->canonical,
      "Up to fuse: for comparing graphs, without names and origins, values renumbered, constants "
      "by hash, operators in pieces as one node");
}

}  // namespace tessera::tools
