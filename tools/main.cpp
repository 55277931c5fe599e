// tessera: the command line. Parses, calls the library, turns its answers into text. Exit codes: 0
// done, 1 the work failed, 2 usage.

#include <CLI/CLI.hpp>

#include "commands.h"
#include "console.h"

namespace {

// What is wrong with the first word, where it is the name of no command; CLI11 itself would not
// name it.
std::string unknown_command(const CLI::App& app, int argc, char** argv) {
  if (argc < 2 || argv[1][0] == '-') return {};
  std::string known;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (command->get_name() == argv[1]) return {};
    known += (known.empty() ? "" : ", ") + command->get_name();
  }
  return "no command '" + std::string(argv[1]) + "': expected one of " + known;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace tessera::tools;
  CLI::App app(
      "Tessera: assigns every operation of a trained model to a processor, compiles, runs, and "
      "shows the evidence.",
      "tessera");
  app.set_version_flag("--version", "tessera " TESSERA_VERSION);
  app.require_subcommand(1);
  Action action;
  for (auto* add : {add_inspect, add_compile, add_run, add_bench, add_report, add_plan, add_dump,
                    add_opt, add_measure, add_devices, add_solve, add_allocate})
    add(app, action);
  if (const std::string problem = unknown_command(app, argc, argv); !problem.empty()) {
    say("tessera: " + problem);
    return 2;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : 2;
  }
  install_cancellation();
  const tessera::Status status = action();
  if (status) return 0;
  say("tessera: " + status.error().to_string());
  return 1;
}
