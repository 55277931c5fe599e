#include "demo/plan_run.h"

#include <fmt/format.h>

#include "artefact/read/reader.h"
#include "backends/registry_run/registry_run.h"
#include "base/error.h"
#include "base/file.h"
#include "runtime/executor.h"
#include "trace_spans.h"

namespace tessera::demo {

Result<PlanRun> run_plan(const std::filesystem::path& artefact, const std::string& plan,
                         const Tensor& input, report::Report report, int threads, int runs) {
  TESSERA_ASSIGN(auto image, artefact::read_program(artefact));
  TESSERA_ASSIGN(const auto program, runtime::LoadedProgram::create(std::move(image), plan,
                                                                    &backends::make_run_device));
  const auto& method = program->method();
  if (method.inputs.size() != 1 || method.outputs.size() != 1)
    return fail(
        ErrorCode::kInvalidArgument,
        fmt::format("{}: expected a detector with one input and one output, found {} and {}",
                    artefact.string(), method.inputs.size(), method.outputs.size()));
  TESSERA_ASSIGN(const auto executor,
                 runtime::Executor::create(program, {.threads = threads, .trace = true}));
  TESSERA_TRY(
      executor->bind_input(method.inputs.front().name, input.dtype(), input.dims(), input.data()));
  for (int i = 0; i < runs; ++i) TESSERA_TRY(executor->run());
  TESSERA_ASSIGN(const TensorView output, executor->output(method.outputs.front().name));
  PlanRun run;
  run.output = Tensor::copy_of(output);
  run.spans = tools::trace_spans(*executor);
  run.wall_us = static_cast<double>(executor->trace().total_ns) / 1000;
  run.report = std::move(report);
  report::add_execution(run.report, run.spans, run.wall_us);
  return run;
}

Status write_evidence(const PlanRun& run, const std::filesystem::path& folder,
                      const std::string& prefix) {
  constexpr int kFileWidth = 200;  // wide enough for every column
  TESSERA_TRY(write_file_atomically(folder / (prefix + "report.txt"),
                                    report::to_text(run.report, /*verbose=*/true, kFileWidth)));
  TESSERA_TRY(
      write_file_atomically(folder / (prefix + "report.json"), report::to_json(run.report) + "\n"));
  return write_file_atomically(folder / (prefix + "trace.json"),
                               report::to_chrome_json(run.spans, run.wall_us));
}

}  // namespace tessera::demo
