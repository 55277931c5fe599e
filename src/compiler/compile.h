#pragma once

// compile(): the whole chain, in one function.

#include <filesystem>

#include "artefact/read/program_image.h"
#include "base/error.h"
#include "compiler/options.h"
#include "plan/estimate_errors.h"
#include "report/report.h"

namespace tessera::compiler {

// What was measured for a compilation; all zero without --measure.
struct Measuring {
  std::size_t measured = 0;  // prices
  double spent_s = 0;
  double budget_s = 0;
};

struct Compiled {
  artefact::ProgramImage image;  // empty where the compilation stopped before emit
  report::Report report;         // without what was executed
  Measuring measuring;
  // The cost table's prices that this model asked for, beside what the roofline says, by key.
  std::map<std::string, plan::Estimate> estimates;
  double import_ms = 0;
  double total_ms = 0;
};

// Compiles a model. Errors name file, node, attribute, expected and found. The cost table's file is
// read, and written anew where something was measured, of a compilation that fails or is stopped
// too; nothing else is written.
Result<Compiled> compile(const std::filesystem::path& model, const CompileOptions& options);

}  // namespace tessera::compiler
