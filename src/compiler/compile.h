#pragma once

// compile(): the whole chain, in one function.

#include <filesystem>

#include "artefact/read/program_image.h"
#include "base/error.h"
#include "compiler/options.h"
#include "report/report.h"

namespace tessera::compiler {

struct Compiled {
  artefact::ProgramImage image;  // empty where the compilation stopped before emit
  report::Report report;         // without what was executed
  double import_ms = 0;
  double total_ms = 0;
};

// Compiles a model. Errors name file, node, attribute, expected and found. The cost table's file is
// read, and written anew where something was measured; nothing else is written.
Result<Compiled> compile(const std::filesystem::path& model, const CompileOptions& options);

}  // namespace tessera::compiler
