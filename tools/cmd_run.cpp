#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <filesystem>

#include "artefact/read/reader.h"
#include "base/file.h"
#include "commands.h"
#include "compare.h"
#include "compile_flags.h"
#include "console.h"
#include "io/npy.h"
#include "io/npz.h"
#include "io/tensor_proto.h"
#include "report/report.h"
#include "report/trace_file.h"
#include "runnable.h"
#include "trace_spans.h"
#include "values.h"

namespace tessera::tools {
namespace {

constexpr double kCompareRtol = 1e-3;
constexpr double kCompareAtol = 1e-4;  // of the largest expected element

struct RunArguments {
  std::string path;
  InputFlags inputs;
  std::string outputs;
  std::string output_dir;
  std::string output_format = "npz";
  std::string trace;
  std::string compare;
  std::string plan;
  double rtol = kCompareRtol;
  double atol = kCompareAtol;
  int repeat = 1;
  std::shared_ptr<CompileFlags> flags;
};

Status write_output(const RunArguments& arguments, const std::filesystem::path& folder,
                    std::size_t index, const NamedValues::value_type& output,
                    const ValueType& type) {
  const auto& [name, value] = output;
  if (arguments.output_format == "pb")
    return io::write_value_pb(folder / fmt::format("output_{}.pb", index), value, type, name);
  io::NamedTensors tensors;
  append_tensors(fmt::format("output_{}", index), value, tensors);
  for (const auto& [file, tensor] : tensors)
    TESSERA_TRY(io::write_npy(folder / (file + ".npy"), tensor));
  return {};
}

Status write_outputs(const RunArguments& arguments, const artefact::MethodImage& method,
                     const NamedValues& outputs) {
  if (!arguments.outputs.empty())
    TESSERA_TRY(io::write_npz(arguments.outputs, tensors_of(outputs)));
  if (arguments.output_dir.empty()) return {};
  const std::filesystem::path folder = arguments.output_dir;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return fail(ErrorCode::kFailedPrecondition,
                fmt::format("{}: {}", folder.string(), error.message()));
  if (arguments.output_format == "npz")
    return io::write_npz(folder / "outputs.npz", tensors_of(outputs));
  for (std::size_t i = 0; i < outputs.size(); ++i)
    TESSERA_TRY(write_output(arguments, folder, i, outputs[i], method.outputs[i].type));
  return {};
}

// Runs the model on the reference alone and compares every element.
Status compare_with_reference(const RunArguments& arguments, const NamedValues& inputs,
                              const NamedValues& values) {
  CompileFlags flags = *arguments.flags;
  flags.devices = "reference";
  flags.precision = "fp32";
  flags.measure = "off";
  flags.cost_table.clear();
  flags.permits = flags.forbids = flags.pins = flags.requirements = {};
  TESSERA_ASSIGN(const Runnable reference, open_runnable(arguments.path, flags, ""));
  if (!reference.from_model)
    return fail(
        ErrorCode::kInvalidArgument,
        "--compare reference: expected a model; an artefact holds no plan for the reference");
  TESSERA_ASSIGN(const auto executor, runtime::Executor::create(reference.program, {.threads = 2}));
  TESSERA_TRY(bind_inputs(*executor, inputs));
  TESSERA_TRY(executor->run());
  TESSERA_ASSIGN(const auto expected_values, copy_outputs(*executor));
  const io::NamedTensors expected = tensors_of(expected_values);
  const io::NamedTensors outputs = tensors_of(values);
  if (expected.size() != outputs.size())
    return fail(
        ErrorCode::kInternal,
        fmt::format("the outputs disagree with the reference: expected {} tensors, found {}",
                    expected.size(), outputs.size()));
  std::string wrong;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Difference difference =
        compare(expected[i].second, outputs[i].second, arguments.rtol, arguments.atol);
    const auto line = difference.problem.empty()
                          ? fmt::format(
                                "output '{}': largest difference {:.3g} (largest element {:.3g}), "
                                "{} elements outside rtol {:g}, atol {:g}",
                                outputs[i].first, difference.max_abs, difference.max_expected,
                                difference.outside, arguments.rtol, arguments.atol)
                          : fmt::format("output '{}': {}", outputs[i].first, difference.problem);
    say(line);
    if (!difference.problem.empty() || difference.outside > 0) wrong += "\n  " + line;
  }
  if (!wrong.empty())
    return fail(ErrorCode::kInternal, "the outputs disagree with the reference:" + wrong);
  return {};
}

Status finish_trace(const RunArguments& arguments, const runtime::Executor& executor,
                    report::Report& report) {
  const auto spans = trace_spans(executor);
  report::add_execution(report, spans, static_cast<double>(executor.trace().total_ns) / 1000);
  if (!arguments.trace.empty())
    TESSERA_TRY(write_file_atomically(
        arguments.trace,
        report::to_chrome_json(spans, static_cast<double>(executor.trace().total_ns) / 1000)));
  if (!arguments.flags->strict) return {};
  for (const report::NodeEntry& node : report.nodes) {
    if (!node.executed && !node.body.empty()) continue;  // a branch that was not taken
    if (!node.executed || node.executed->device != node.selected.device)
      return fail(
          ErrorCode::kFailedPrecondition,
          fmt::format("--strict: node '{}' ({}): selected {}, executed {}", node.name, node.op,
                      node.selected.device, node.executed ? node.executed->device : "nowhere"));
  }
  return {};
}

Status run_run(const RunArguments& arguments) {
  TESSERA_ASSIGN(auto runnable, open_runnable(arguments.path, *arguments.flags, arguments.plan));
  const bool traced = !arguments.trace.empty() || arguments.flags->strict;
  TESSERA_ASSIGN(const auto options, to_options(*arguments.flags));
  TESSERA_ASSIGN(
      const auto executor,
      runtime::Executor::create(runnable.program, {.threads = options.threads, .trace = traced}));
  TESSERA_ASSIGN(const auto inputs, gather_inputs(runnable.program->method(), arguments.inputs));
  TESSERA_TRY(bind_inputs(*executor, inputs));
  std::vector<double> times_us;
  for (int i = 0; i < arguments.repeat; ++i) {
    const auto start = std::chrono::steady_clock::now();
    TESSERA_TRY(executor->run());
    times_us.push_back(
        std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
            .count());
    if (options.cancel.stop_requested()) return fail(ErrorCode::kCancelled, "stopped");
  }
  TESSERA_ASSIGN(const auto outputs, copy_outputs(*executor));
  TESSERA_TRY(write_outputs(arguments, runnable.program->method(), outputs));
  if (traced) TESSERA_TRY(finish_trace(arguments, *executor, runnable.report));
  if (!arguments.compare.empty()) TESSERA_TRY(compare_with_reference(arguments, inputs, outputs));
  if (arguments.flags->json) {
    answer(report::to_json(runnable.report) + "\n");
    return {};
  }
  if (arguments.flags->quiet) return {};
  for (const auto& [name, value] : outputs)
    say(fmt::format("output '{}': {}", name, describe(value)));
  std::ranges::sort(times_us);
  say(fmt::format("tessera: ran {} time{}, median {:.1f} us", times_us.size(),
                  times_us.size() == 1 ? "" : "s", times_us[times_us.size() / 2]));
  return {};
}

struct ReportArguments {
  std::string path;
  std::string trace;
  std::string why;
  bool json = false;
  bool verbose = false;
};

Status run_report(const ReportArguments& arguments) {
  TESSERA_ASSIGN(const auto image, artefact::read_program(arguments.path));
  TESSERA_ASSIGN(auto report, report::from_json(image.evidence));
  if (!arguments.trace.empty()) {
    TESSERA_ASSIGN(const std::string text, read_file(arguments.trace));
    auto spans = report::parse_chrome_json(text);
    if (!spans) return tl::unexpected(in_context(std::move(spans).error(), arguments.trace));
    report::add_execution(report, spans->spans, spans->total_us);
  }
  if (!arguments.why.empty())
    answer(report::explain(report, arguments.why));
  else
    answer(arguments.json ? report::to_json(report) + "\n"
                          : report::to_text(report, arguments.verbose, terminal_width()));
  return {};
}

}  // namespace

void add_run(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("run", "Run a model or an artefact");
  auto arguments = std::make_shared<RunArguments>();
  command->add_option("MODEL", arguments->path, "ONNX file or artefact")->required();
  command->add_option("--inputs,--input", arguments->inputs.files,
                      "F.npz, NAME=F.npy or NAME=F.pb");
  command->add_flag("--random", arguments->inputs.random, "Draw the inputs that are not given");
  command->add_option("--seed", arguments->inputs.seed, "Seed of --random");
  command->add_option("--outputs", arguments->outputs, "Write all outputs to F.npz");
  command->add_option("--output-dir", arguments->output_dir, "Write outputs into a folder");
  command->add_option("--output-format", arguments->output_format, "npz, npy or pb")
      ->check(CLI::IsMember({"npz", "npy", "pb"}));
  command->add_option("--trace", arguments->trace, "Write a trace (Chrome, Perfetto)");
  command
      ->add_option("--compare", arguments->compare,
                   "reference: compare every element with the reference backend")
      ->check(CLI::IsMember({"reference"}));
  command->add_option("--rtol", arguments->rtol, "Relative tolerance of --compare");
  command->add_option("--atol", arguments->atol,
                      "Absolute tolerance of --compare, in units of the largest element");
  command->add_option("--plan", arguments->plan, "Which plan of the artefact: main, or cpu");
  command->add_option("--repeat", arguments->repeat, "Run so many times")
      ->check(CLI::PositiveNumber);
  arguments->flags = add_compile_flags(*command);
  command->callback([=, &action] {
    check_usage(*arguments->flags);
    action = [=] { return run_run(*arguments); };
  });
}

void add_report(CLI::App& app, Action& action) {
  auto* command = app.add_subcommand("report", "The evidence that an artefact carries");
  auto arguments = std::make_shared<ReportArguments>();
  command->add_option("FILE", arguments->path, "Artefact")->required();
  command->add_option("--trace", arguments->trace, "A trace of `run --trace`: what was executed");
  command->add_option("--why", arguments->why, "Why a node runs where it runs: a name or glob");
  command->add_flag("--json", arguments->json, "One line of JSON");
  command->add_flag("-v,--verbose", arguments->verbose, "Every node on its own line");
  command->callback([=, &action] { action = [=] { return run_report(*arguments); }; });
}

}  // namespace tessera::tools
