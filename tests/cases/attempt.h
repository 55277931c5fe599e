#pragma once

// One case, compiled and run in one way: what came out, and all that the judges look at.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cases/case_file.h"
#include "compiler/compile.h"
#include "io/npz.h"
#include "runtime/executor.h"

namespace tessera::testing {

// What a plan is asked for. A case without devices of its own is run on the reference, on the CPU,
// and split with a simulated device.
struct Way {
  std::string name;
  std::vector<std::string> devices;  // as compile() takes them
  bool dear = false;                 // crossings cost what they do on a phone; else nearly nothing
};

// The ways of a case; profiles of simulated devices are written below `folder`.
std::vector<Way> ways_of(const Case& tested, const TempDir& folder);

// A model that is compiled and loaded.
struct Loaded {
  compiler::Compiled compiled;  // its image was moved into `program`
  std::shared_ptr<const runtime::LoadedProgram> program;
};

// Compiles the model of a step, from memory where the case asks for that.
Result<Loaded> load_step(const Case& tested, const CaseStep& step, const Way& way);
// The same for a compiled image.
Result<std::shared_ptr<const runtime::LoadedProgram>> load_image(artefact::ProgramImage image,
                                                                 const std::string& plan);

// The feeds of a step; none where there is no such file.
Result<io::NamedTensors> read_feeds(const CaseStep& step);

Result<std::unique_ptr<runtime::Executor>> open_session(
    const std::shared_ptr<const runtime::LoadedProgram>& program);
Status bind_feeds(runtime::Executor& executor, const io::NamedTensors& feeds);
// Copies of all outputs of the last run.
Result<io::NamedTensors> outputs_of(const runtime::Executor& executor);

struct StepRun {
  std::shared_ptr<const runtime::LoadedProgram> program;
  io::NamedTensors feeds;
  io::NamedTensors feeds_before;  // copies from before the run
  io::NamedTensors outputs;       // copies from right after the run
  std::string shared_memory;      // an output that lies in a feed or a constant: which
};

struct Attempt {
  std::optional<Error> failure;  // of the first step that failed
  bool failed_at_run = false;    // else while it was compiled or loaded
  std::size_t failed_step = 0;
  std::optional<Loaded> loaded;                 // of the last step that loaded
  std::vector<StepRun> steps;                   // those that ran
  std::shared_ptr<runtime::Executor> executor;  // of the last step
  bool same_session = true;                     // all steps ran in one session

  // "step 2: m.onnx: ...".
  [[nodiscard]] std::string failure_text() const;
};

// Runs the steps one after the other: in one session, or with a new compilation for each step where
// the model or a file of it changes between them.
Attempt attempt(const Case& tested, const Way& way);

}  // namespace tessera::testing
