#include <fmt/format.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "commands.h"
#include "console.h"
#include "runnable.h"

namespace tessera::tools {
namespace {

using Clock = std::chrono::steady_clock;

struct BenchArguments {
  std::string path;
  InputFlags inputs;
  std::string plan;
  double seconds = 3;
  std::shared_ptr<CompileFlags> flags;
};

double elapsed_us(Clock::time_point since) {
  return std::chrono::duration<double, std::micro>(Clock::now() - since).count();
}

double rss_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

Status run_bench(const BenchArguments& arguments) {
  constexpr std::size_t kMinRuns = 5;
  TESSERA_ASSIGN(const auto options, to_options(*arguments.flags));
  TESSERA_ASSIGN(auto runnable, open_runnable(arguments.path, *arguments.flags, arguments.plan));
  const auto create_start = Clock::now();
  TESSERA_ASSIGN(const auto executor,
                 runtime::Executor::create(runnable.program, {.threads = options.threads}));
  const double load_ms = runnable.load_ms + elapsed_us(create_start) / 1000;
  InputFlags inputs_flags = arguments.inputs;
  inputs_flags.random = inputs_flags.random || inputs_flags.files.empty();
  TESSERA_ASSIGN(const auto inputs, gather_inputs(runnable.program->method(), inputs_flags));
  TESSERA_TRY(bind_inputs(*executor, inputs));
  const auto first_start = Clock::now();
  TESSERA_TRY(executor->run());
  const double first_ms = elapsed_us(first_start) / 1000;
  std::vector<double> times_us;
  for (const auto start = Clock::now();
       times_us.size() < kMinRuns || elapsed_us(start) < arguments.seconds * 1e6;) {
    const auto begin = Clock::now();
    TESSERA_TRY(executor->run());
    times_us.push_back(elapsed_us(begin));
    if (options.cancel.stop_requested()) return fail(ErrorCode::kCancelled, "stopped");
  }
  std::ranges::sort(times_us);
  const double median_us = times_us[times_us.size() / 2];
  const double p99_us = times_us[std::min(times_us.size() - 1, times_us.size() * 99 / 100)];
  if (arguments.flags->json) {
    const nlohmann::ordered_json json = {{"us", median_us},      {"p99_us", p99_us},
                                         {"load_ms", load_ms},   {"first_ms", first_ms},
                                         {"rss_mib", rss_mib()}, {"runs", times_us.size()}};
    answer(json.dump() + "\n");
  } else {
    answer(
        fmt::format("median {:.1f} us, p99 {:.1f} us, load {:.1f} ms, first run {:.1f} ms, rss "
                    "{:.0f} MiB, {} runs\n",
                    median_us, p99_us, load_ms, first_ms, rss_mib(), times_us.size()));
  }
  return {};
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("bench", "Latency of a model or an artefact on this machine");
  auto arguments = std::make_shared<BenchArguments>();
  command->add_option("MODEL", arguments->path, "ONNX file or artefact")->required();
  command->add_option("--inputs,--input", arguments->inputs.files,
                      "F.npz, NAME=F.npy or NAME=F.pb; drawn where not given");
  command->add_flag("--random", arguments->inputs.random, "Draw the inputs that are not given");
  command->add_option("--seed", arguments->inputs.seed, "Seed of drawn inputs");
  command->add_option("--plan", arguments->plan, "Which plan of the artefact: main, or cpu");
  command->add_option("--seconds", arguments->seconds, "How long to run")
      ->check(CLI::NonNegativeNumber);
  arguments->flags = add_compile_flags(*command);
  command->callback([=, &action] {
    check_usage(*arguments->flags);
    action = [=] { return run_bench(*arguments); };
  });
}

}  // namespace tessera::tools
