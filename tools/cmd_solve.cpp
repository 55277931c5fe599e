#include <fmt/format.h>
#include <zlib.h>

#include <CLI/CLI.hpp>
#include <chrono>

#include "base/file.h"
#include "commands.h"
#include "console.h"
#include "solve/memory_greedy.h"
#include "solve/memory_text.h"
#include "solve/memory_validate.h"
#include "solve/problem_text.h"
#include "solve/solve.h"
#include "solve/validate.h"

namespace tessera::tools {
namespace {

// A file's text; gzip is recognised by zlib itself.
Result<std::string> read_text(const std::string& path) {
  if (!path.ends_with(".gz")) return read_file(path);
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return fail(ErrorCode::kNotFound, path + ": cannot open");
  std::string text;
  std::string block(1 << 16, '\0');
  int count = 0;
  while ((count = gzread(file, block.data(), static_cast<unsigned>(block.size()))) > 0)
    text.append(block, 0, static_cast<std::size_t>(count));
  const bool damaged = count < 0 || gzclose(file) != Z_OK;
  if (damaged) return fail(ErrorCode::kDataLoss, path + ": not a whole gzip file");
  return text;
}

struct SolveArguments {
  std::string path;
  std::uint64_t node_limit = 200'000;
};

Status run_solve(const SolveArguments& arguments) {
  TESSERA_ASSIGN(const std::string text, read_text(arguments.path));
  auto problem = solve::parse_problem(text);
  if (!problem) return tl::unexpected(in_context(std::move(problem).error(), arguments.path));
  solve::SolveOptions options;
  options.node_limit = arguments.node_limit;
  options.cancel = cancellation();
  options.progress = [](const solve::SolveProgress& progress) {
    show_progress(fmt::format("{} nodes, best {:.6g}", progress.search_nodes, progress.best_cost),
                  0);
  };
  const auto start = std::chrono::steady_clock::now();
  TESSERA_ASSIGN(const auto solution, solve::solve(*problem, options));
  TESSERA_TRY(solve::validate(*problem, solution));
  answer(solve::print_solution(
             solution,
             std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()) +
         "\n");
  return {};
}

struct AllocateArguments {
  std::string path;
  std::int64_t capacity_bytes = -1;
  bool minimise = false;
  std::string output;
};

Status run_allocate(const AllocateArguments& arguments) {
  TESSERA_ASSIGN(const std::string text, read_text(arguments.path));
  auto table = solve::parse_memory(text);
  if (!table) return tl::unexpected(in_context(std::move(table).error(), arguments.path));
  if (arguments.capacity_bytes >= 0 && !arguments.minimise)
    table->problem.capacity_bytes = arguments.capacity_bytes;
  TESSERA_ASSIGN(const auto solution, solve::allocate_greedy(table->problem));
  TESSERA_TRY(solve::validate(table->problem, solution));
  const std::string csv = solve::print_memory(table->problem, &solution);
  if (arguments.output.empty()) {
    answer(csv);
  } else {
    TESSERA_TRY(write_file_atomically(arguments.output, csv));
  }
  say(fmt::format("tessera: arena {} bytes, peak live {} bytes, {} buffers", solution.arena_bytes,
                  solution.peak_live_bytes, table->problem.buffers.size()));
  return {};
}

}  // namespace

void add_solve(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("solve", "Solve an assignment problem (IOPDDL JSON, .gz too)");
  auto arguments = std::make_shared<SolveArguments>();
  command->add_option("PROBLEM", arguments->path, "JSON file")->required();
  command->add_option("--node-limit", arguments->node_limit, "Nodes of the branch and bound");
  command->callback([=, &action] { action = [=] { return run_solve(*arguments); }; });
}

void add_allocate(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("allocate", "Place buffers in an arena (minimalloc's CSV)");
  auto arguments = std::make_shared<AllocateArguments>();
  command->add_option("FILE", arguments->path, "CSV file")->required();
  command->add_option("--capacity", arguments->capacity_bytes, "Bytes that the arena may have");
  command->add_flag("--minimise", arguments->minimise,
                    "The smallest arena found, whatever the capacity");
  command->add_option("-o,--output", arguments->output, "Write the table to a file");
  command->callback([=, &action] { action = [=] { return run_allocate(*arguments); }; });
}

}  // namespace tessera::tools
