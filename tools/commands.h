#pragma once

// The subcommands. Each adds itself to the application and leaves what to do in `action`, which
// main() calls after parsing. Answers go to standard output, messages to standard error; an Error
// becomes exit code 1.

#include <functional>

#include "base/error.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}

namespace tessera::tools {

using Action = std::function<Status()>;

void add_inspect(CLI::App& app, Action& action);
void add_compile(CLI::App& app, Action& action);
void add_run(CLI::App& app, Action& action);
void add_bench(CLI::App& app, Action& action);
void add_report(CLI::App& app, Action& action);
void add_plan(CLI::App& app, Action& action);
void add_dump(CLI::App& app, Action& action);
void add_opt(CLI::App& app, Action& action);
void add_measure(CLI::App& app, Action& action);
void add_devices(CLI::App& app, Action& action);
void add_solve(CLI::App& app, Action& action);
void add_allocate(CLI::App& app, Action& action);

}  // namespace tessera::tools
