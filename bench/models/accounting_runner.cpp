// The worker of `./dev bench accounting`: measures anew what the kernels of an artefact cost, and
// runs it, in turn, so that both meet the same clock and the same neighbours. Prices are taken by
// the protocol of the cost table (docs/measuring.md), in the state of the caches that the plan was
// priced in.
//
//   --model F.tsr --inputs F.npz --threads N --rounds N --runs N --seconds S
//
// In each round every kernel gets the samples of one round, then the artefact runs so often and so
// long at least; the first run does not count. The answer, the last line:
//   {"version":, "caches": "resident", "shared" or "streamed", "total_us": [of each run],
//   "parts_us":
//   {"compute":
//    [of each run], "layout":, "copy":, "sync":}, "instructions": [{"label":, "category":,
//    "device":, "kernel": "" or its name, "method": of the plan, "region": of the method,
//    "plan_us": the price that it was planned with, "price_us": measured now, null where it cannot
//    be, "busy": others used a core meanwhile, "calls": in a run, "span_us": of all calls of a run,
//    median over the runs}, ...]}

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "artefact/read/reader.h"
#include "backends/registry_run/registry_run.h"
#include "base/statistics.h"
#include "compiler/seen_run.h"
#include "compiler/timed_kernel.h"
#include "runnable.h"
#include "runtime/executor.h"
#include "runtime/trace.h"
#include "trace_spans.h"

namespace tessera {
namespace {

using Json = nlohmann::ordered_json;
using Place = std::pair<std::uint32_t, std::uint32_t>;  // method, instruction

struct Options {
  std::string model;
  std::string inputs;
  int threads = 2;
  int rounds = 5;
  int runs = 5;
  double seconds = 0.3;
};

// Every instruction that runs a kernel, at the sizes that a run has.
class Prices {
 public:
  Prices(const runtime::LoadedProgram& program, const compiler::SeenRun& seen, int threads,
         plan::CacheState caches)
      : surroundings_(threads, caches) {
    for (const auto& [place, call] : seen.calls) {
      const auto& method = program.plan().methods[place.first];
      const auto& instruction = method.instructions[place.second];
      if (instruction.kernel == UINT32_MAX) continue;
      const artefact::KernelSpec& spec = program.image().kernels[instruction.kernel];
      std::vector<std::span<const std::byte>> constants;
      for (const std::uint32_t segment : spec.constant_segments)
        constants.push_back(program.segment(segment));
      const bool is_loose = std::ranges::any_of(instruction.outputs, [&](std::uint32_t buffer) {
        return method.buffers[buffer].is_dynamic;
      });
      // Calls of one kernel are alike where sizes are known before the run.
      const Place key = is_loose ? place : Place{UINT32_MAX, instruction.kernel};
      keys_[place] = key;
      if (kernels_.contains(key)) continue;
      auto timed = compiler::TimedKernel::create(
          program.device(instruction.device), *program.kernel(instruction.kernel), spec,
          std::move(constants), {call.dims, call.operands, is_loose}, surroundings_);
      // One that does not run on drawn data has none.
      kernels_[key] = timed ? *std::move(timed) : nullptr;
    }
  }

  void take_round() {
    for (const auto& [key, kernel] : kernels_)
      if (kernel != nullptr && !kernel->is_done()) kernel->take_samples();
  }

  Result<std::map<Place, plan::CostEntry>> entries() {
    std::map<Place, plan::CostEntry> entries;
    std::map<Place, plan::CostEntry> of_kernels;
    for (const auto& [key, kernel] : kernels_) {
      if (kernel == nullptr) continue;
      TESSERA_ASSIGN(of_kernels[key], kernel->entry());
    }
    for (const auto& [place, key] : keys_)
      if (const auto found = of_kernels.find(key); found != of_kernels.end())
        entries[place] = found->second;
    return entries;
  }

 private:
  compiler::Surroundings surroundings_;
  std::map<Place, Place> keys_;  // of instructions, in `kernels_`
  std::map<Place, std::unique_ptr<compiler::TimedKernel>> kernels_;
};

// What the traces of all runs say.
class Runs {
 public:
  explicit Runs(runtime::Executor& executor) : executor_(executor) {}

  Status take_round(const Options& options) {
    TESSERA_TRY(executor_.run());
    const std::int64_t begin_ns = runtime::now_ns();
    const auto budget_ns = static_cast<std::int64_t>(options.seconds * 1e9);
    for (int run = 0; run < options.runs || runtime::now_ns() - begin_ns < budget_ns; ++run) {
      TESSERA_TRY(executor_.run());
      add();
    }
    return {};
  }

  [[nodiscard]] const std::vector<double>& total_us() const { return total_us_; }
  [[nodiscard]] const auto& parts_us() const { return parts_us_; }

  // One for each instruction that ran, without its price.
  [[nodiscard]] std::map<Place, Json> instructions() const {
    std::map<Place, Json> found;
    for (const auto& [place, spans_us] : spans_us_) {
      const auto& span = words_.at(place);
      const double count = static_cast<double>(total_us_.size());
      found[place] = {
          {"label", span.name},           {"category", span.category},
          {"device", span.device},        {"kernel", span.kernel},
          {"plan_us", span.predicted_us}, {"calls", static_cast<double>(calls_.at(place)) / count},
          {"span_us", median(spans_us)}};
    }
    return found;
  }

 private:
  void add() {
    const auto& events = executor_.trace().events;
    const auto spans = tools::trace_spans(executor_);
    std::map<std::string, double> parts_us = {
        {"compute", 0}, {"layout", 0}, {"copy", 0}, {"sync", 0}};
    std::map<Place, double> sums_us;
    for (std::size_t i = 0; i < events.size(); ++i) {
      const Place place = {events[i].method, events[i].instruction};
      parts_us[spans[i].category] += spans[i].duration_us;
      sums_us[place] += spans[i].duration_us;
      ++calls_[place];
      words_.try_emplace(place, spans[i]);
    }
    total_us_.push_back(static_cast<double>(executor_.trace().total_ns) / 1000);
    for (const auto& [part, us] : parts_us) parts_us_[part].push_back(us);
    for (const auto& [place, us] : sums_us) spans_us_[place].push_back(us);
  }

  runtime::Executor& executor_;
  std::vector<double> total_us_;
  std::map<std::string, std::vector<double>> parts_us_;
  std::map<Place, std::vector<double>> spans_us_;
  std::map<Place, std::size_t> calls_;
  std::map<Place, report::TraceSpan> words_;
};

Result<Json> work(const Options& options) {
  TESSERA_ASSIGN(auto image, artefact::read_program(options.model));
  TESSERA_ASSIGN(const auto program,
                 runtime::LoadedProgram::create(std::move(image), "", backends::make_run_device));
  TESSERA_ASSIGN(const auto inputs,
                 tools::gather_inputs(program->method(), {.files = {options.inputs}}));
  TESSERA_ASSIGN(const auto executor,
                 runtime::Executor::create(program, {.threads = options.threads, .trace = true}));
  TESSERA_TRY(tools::bind_inputs(*executor, inputs));
  const std::string& caches = program->image().manifest.at("option.caches");
  const auto state = plan::find_cache_state(caches);
  if (!state)
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("caches: expected a state that prices know, found '{}'", caches));
  std::vector<Tensor> values;
  for (const auto& decl : program->method().inputs) {
    const auto given =
        std::ranges::find_if(inputs, [&](const auto& entry) { return entry.first == decl.name; });
    if (given == inputs.end())
      return fail(ErrorCode::kFailedPrecondition, fmt::format("input '{}' is missing", decl.name));
    values.push_back(given->second.tensor);
  }
  TESSERA_ASSIGN(const auto seen, compiler::see_run(program, values, {.threads = options.threads}));
  if (seen.ended) return tl::unexpected(*seen.ended);
  Prices prices(*program, seen, options.threads, *state);
  Runs runs(*executor);
  for (int round = 0; round < options.rounds; ++round) {
    prices.take_round();
    TESSERA_TRY(runs.take_round(options));
  }
  TESSERA_ASSIGN(const auto entries, prices.entries());
  Json json = {{"version", TESSERA_VERSION},
               {"caches", caches},
               {"total_us", runs.total_us()},
               {"parts_us", runs.parts_us()},
               {"instructions", Json::array()}};
  for (auto& [place, instruction] : runs.instructions()) {
    const auto& planned = program->plan().methods[place.first].instructions[place.second];
    const auto entry = entries.find(place);
    instruction["method"] = place.first;
    instruction["region"] = planned.region;
    instruction["price_us"] = entry == entries.end() ? Json() : Json(entry->second.time_us);
    instruction["busy"] = entry != entries.end() && entry->second.busy;
    json["instructions"].push_back(instruction);
  }
  return json;
}

}  // namespace
}  // namespace tessera

int main(int count, char** words) {
  CLI::App app("Prices and runs of an artefact, in turn");
  tessera::Options options;
  app.add_option("--model", options.model)->required();
  app.add_option("--inputs", options.inputs)->required();
  app.add_option("--threads", options.threads)->check(CLI::PositiveNumber);
  app.add_option("--rounds", options.rounds)->check(CLI::PositiveNumber);
  app.add_option("--runs", options.runs)->check(CLI::PositiveNumber);
  app.add_option("--seconds", options.seconds)->check(CLI::NonNegativeNumber);
  CLI11_PARSE(app, count, words);
  const auto json = tessera::work(options);
  if (!json) {
    fmt::print(stderr, "tessera_accounting_runner: {}\n", json.error().to_string());
    return 1;
  }
  fmt::print("ready\n{}\n", json->dump());
  return 0;
}
