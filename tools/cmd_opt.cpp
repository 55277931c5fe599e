#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "commands.h"
#include "console.h"
#include "import/import.h"
#include "io/npz.h"
#include "ir/infer.h"
#include "ir/text.h"
#include "passes/pipeline.h"

namespace tessera::tools {
namespace {

struct OptArguments {
  std::string model;
  std::vector<std::string> passes;
  std::string output;
  bool list = false;
  bool canonical = false;
  bool quiet = false;
};

std::string list_text() {
  std::string text;
  for (const passes::Pass& pass : passes::simplify_passes())
    text += fmt::format("{}: {}\n", pass.name, pass.reason);
  return text;
}

// "fold_constants: -2 Add, +1 Mul", or that it changed nothing.
std::string change_text(const passes::PassReport& report) {
  std::string text;
  for (const auto& [op, count] : report.removed)
    text += fmt::format("{}-{} {}", text.empty() ? "" : ", ", count, op);
  for (const auto& [op, count] : report.added)
    text += fmt::format("{}+{} {}", text.empty() ? "" : ", ", count, op);
  if (text.empty()) text = report.changed ? "changed" : "changed nothing";
  return report.name + ": " + text;
}

// The text, and beside it the constants that stand in it by hash.
Status write_module(const ir::Module& module, const OptArguments& arguments) {
  ir::ConstantPool pool;
  const std::string text = ir::print(module, {.canonical = arguments.canonical}, &pool);
  if (arguments.output.empty()) {
    answer(text);
    return {};
  }
  if (!pool.empty()) {
    const io::NamedTensors constants(pool.begin(), pool.end());
    TESSERA_TRY(io::write_npz(arguments.output + ".npz", constants));
  }
  return write_file_atomically(arguments.output, text);
}

Status run_opt(const OptArguments& arguments) {
  if (arguments.list) {
    answer(list_text());
    return {};
  }
  TESSERA_ASSIGN(ir::Module module, importer::import_file(arguments.model));
  TESSERA_TRY(ir::infer(module).map([](const auto&) {}));
  TESSERA_ASSIGN(const auto result, passes::run_passes(module, arguments.passes));
  if (!arguments.quiet) {
    for (const passes::PassReport& report : result.passes) say("tessera: " + change_text(report));
    for (const passes::Note& note : result.notes)
      say(fmt::format("tessera: {} at {}: {}", note.pattern, fmt::join(note.nodes, ", "),
                      note.reason));
  }
  return write_module(module, arguments);
}

// A pass that is not there is an error of usage, with the names of those that are.
std::string check_pass(const std::string& name) {
  ir::Module nothing;
  const auto found = passes::run_passes(nothing, std::vector<std::string>{name});
  return found ? std::string() : found.error().to_string();
}

}  // namespace

void add_opt(CLI::App& app, Action& action) {
  auto* command =
      app.add_subcommand("opt", "Run some passes alone, and print the graph that they leave");
  auto arguments = std::make_shared<OptArguments>();
  command->add_option("MODEL", arguments->model, "ONNX file");
  command->add_option("--passes", arguments->passes, "Names, comma-separated, run once in order")
      ->delimiter(',')
      ->check(check_pass);
  command->add_option("-o,--output", arguments->output,
                      "Write the text to F, and its larger constants to F.npz");
  command->add_flag("--list", arguments->list,
                    "The passes that there are, and why they stand there");
  command->add_flag("--canonical", arguments->canonical,
                    "Without names and origins: for comparing graphs");
  command->add_flag("-q,--quiet", arguments->quiet, "Say nothing but errors");
  command->callback([=, &action] {
    if (!arguments->list && arguments->model.empty()) throw CLI::RequiredError("MODEL");
    if (!arguments->list && arguments->passes.empty()) throw CLI::RequiredError("--passes");
    action = [=] { return run_opt(*arguments); };
  });
}

}  // namespace tessera::tools
