#pragma once

// Sessions on the devices of this build. For tests that link tessera_runtime.

#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "backends/registry_run/registry_run.h"
#include "runtime/executor.h"

namespace tessera::testing {

inline Result<std::shared_ptr<const runtime::LoadedProgram>> try_load(artefact::ProgramImage image,
                                                                      std::string_view plan = "") {
  return runtime::LoadedProgram::create(std::move(image), plan, &backends::make_run_device);
}

// A session; a failure of the test, and null, where there is none.
inline std::unique_ptr<runtime::Executor> session_of(artefact::ProgramImage image,
                                                     const runtime::ExecutorOptions& options = {}) {
  auto program = try_load(std::move(image));
  if (!program) {
    ADD_FAILURE() << program.error().to_string();
    return nullptr;
  }
  auto executor = runtime::Executor::create(*std::move(program), options);
  if (executor) return *std::move(executor);
  ADD_FAILURE() << executor.error().to_string();
  return nullptr;
}

// The text of a failure, or "no error".
template <typename T>
std::string error_text(const Result<T>& result) {
  return result ? "no error" : result.error().to_string();
}

}  // namespace tessera::testing
