#pragma once

// One plan of the demo's artefact, run and accounted for.

#include <filesystem>
#include <string>
#include <vector>

#include "base/tensor.h"
#include "report/report.h"
#include "report/trace_file.h"

namespace tessera::demo {

struct PlanRun {
  Tensor output;                         // of the last run
  std::vector<report::TraceSpan> spans;  // of the last run
  double wall_us = 0;                    // of the last run
  report::Report report;                 // with what was executed
};

// Runs a plan of the artefact on `input` so often; the last run counts, those before it warm caches
// up. `report` is the plan's own, from its compilation. Errors: those of loading and running; a
// program that has not one input and one output.
Result<PlanRun> run_plan(const std::filesystem::path& artefact, const std::string& plan,
                         const Tensor& input, report::Report report, int threads, int runs);

// Writes PREFIXreport.txt, PREFIXreport.json and PREFIXtrace.json into `folder`.
Status write_evidence(const PlanRun& run, const std::filesystem::path& folder,
                      const std::string& prefix);

}  // namespace tessera::demo
