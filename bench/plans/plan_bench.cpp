// Is the chosen plan the fastest one? Other plans of the same assignment problem, run and timed
// beside it. `./dev bench plans`; docs/performance.md says how it is done.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/file.h"
#include "console.h"
#include "plans/results.h"

namespace tessera::bench {
namespace {

struct Arguments {
  std::vector<std::string> models = {"resnet50", "mobilenet_v2", "ppocrv4_rec"};
  std::string json;
  Settings settings;
};

Result<bool> run(const Arguments& arguments) {
  std::vector<ModelFile> models;
  for (const std::string& word : arguments.models) {
    TESSERA_ASSIGN(ModelFile model, find_model(word));
    models.push_back(std::move(model));
  }
  std::vector<ModelResult> results;
  for (const ModelFile& model : models) {
    auto result = measure_model(model, arguments.settings);
    if (!result) return tl::unexpected(in_context(std::move(result).error(), model.path.string()));
    tools::answer(results_text(*result) + "\n");
    results.push_back(*std::move(result));
    if (!arguments.json.empty())
      TESSERA_TRY(write_file_atomically(arguments.json, results_json(results, arguments.settings)));
  }
  return std::ranges::all_of(
      results, [](const ModelResult& result) { return result.verdict() == Verdict::kHolds; });
}

void add_options(CLI::App& app, Arguments& arguments) {
  Settings& settings = arguments.settings;
  app.add_option("MODEL", arguments.models,
                 "ONNX files, or names of shared models (default: resnet50, mobilenet_v2 and "
                 "ppocrv4_rec)");
  app.add_option("--threads", settings.flags.threads, "CPU threads")->capture_default_str();
  app.add_option("--cost-table", settings.flags.cost_table,
                 "File of prices, read and (with --measure) written");
  app.add_option("--measure", settings.flags.measure, "off, missing or all: measure prices first");
  app.add_option("--measure-seconds", settings.flags.measure_seconds,
                 "Time to spend on measuring prices, per model");
  app.add_option("--subgraph", settings.subgraph,
                 "Names or globs of the nodes whose combinations are all measured, 10 at most "
                 "(default: some of the models above)");
  app.add_option("--random", settings.random, "Random plans")->capture_default_str();
  app.add_option("--neighbours", settings.neighbours, "Plans with one choice of a node changed")
      ->capture_default_str();
  app.add_option("--seed", settings.seed, "Of random plans and neighbours")->capture_default_str();
  app.add_option("--last-resort-ms", settings.last_resort_ms,
                 "Leave the reference device out where it is predicted to take longer, and "
                 "another device takes the node; random plans always do")
      ->capture_default_str();
  app.add_option("--combinations", settings.combinations,
                 "The most plans of the subgraph; more are an error")
      ->capture_default_str();
  app.add_option("--rounds", settings.rounds, "Rounds of every plan beside the chosen one")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--final-rounds", settings.final_rounds,
                 "Rounds of those that may be the best, which decide")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--json", arguments.json, "File for everything that was measured");
}

}  // namespace
}  // namespace tessera::bench

int main(int argc, char** argv) {
  using namespace tessera;
  bench::Arguments arguments;
  arguments.settings.flags.threads = 2;
  arguments.settings.flags.quiet = true;
  CLI::App app("Measures other plans beside the chosen one", "./dev bench plans");
  bench::add_options(app, arguments);
  try {
    app.parse(argc, argv);
    tools::check_usage(arguments.settings.flags);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  tools::install_cancellation();
  const auto holds = bench::run(arguments);
  if (!holds) {
    tools::say("plan_bench: " + holds.error().to_string());
    return 1;
  }
  return *holds ? 0 : 1;
}
