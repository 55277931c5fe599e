#pragma once

// A model or an artefact, ready to run; and the values that go in and come out.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "compile_flags.h"
#include "report/report.h"
#include "runtime/executor.h"
#include "values.h"

namespace tessera::tools {

struct Runnable {
  std::shared_ptr<const runtime::LoadedProgram> program;
  report::Report report;    // of the compilation
  bool from_model = false;  // compiled now
  double load_ms = 0;       // reading (or compiling) and loading
};

// Loads an artefact, or compiles a model in memory. `plan`: "" is the chosen one.
Result<Runnable> open_runnable(const std::string& path, const CompileFlags& flags,
                               const std::string& plan);

// Where inputs come from: files ("F.npz", "NAME=F.npy", "NAME=F.pb"), or drawn. Every input of the
// program must be there, and nothing else.
struct InputFlags {
  std::vector<std::string> files;
  bool random = false;
  std::uint64_t seed = 0;
};
Result<NamedValues> gather_inputs(const artefact::MethodImage& method, const InputFlags& flags);

Status bind_inputs(runtime::Executor& executor, const NamedValues& inputs);

// Copies of all outputs, in the order of the program.
Result<NamedValues> copy_outputs(const runtime::Executor& executor);

}  // namespace tessera::tools
