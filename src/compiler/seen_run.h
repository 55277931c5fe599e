#pragma once

// What runs of a program show about the sizes that only a run decides.

#include <cstdint>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "runtime/executor.h"

namespace tessera::compiler {

// Of the calls of one instruction the one in the middle, as sizes may grow from trip to trip.
struct SeenCall {
  backends::InstanceDims dims;
  std::vector<RunValue> operands;  // its inputs, where the kernel decides sizes (option "late")
};

struct SeenRun {
  std::map<std::pair<std::uint32_t, std::uint32_t>, SeenCall> calls;  // by method and instruction
  std::map<std::string, Dims> dims;  // of tensors, by the name of the value
  SymbolBindings symbols;            // that a size of one of them is
  std::optional<Error> ended;        // why the run did not come to its end
};

struct SeeOptions {
  int threads = 1;
  bool all_bodies = false;  // also those that the run has no use for
  std::size_t max_instructions = 1'000'000;
  std::stop_token cancel = {};
};

// Runs the program's first method twice: once to count, once to look. `inputs` are those of the
// method, in order. A run that fails, or executes too many instructions, shows what came before.
// Errors: inputs that the method does not take, memory.
Result<SeenRun> see_run(const std::shared_ptr<const runtime::LoadedProgram>& program,
                        const std::vector<Tensor>& inputs, const SeeOptions& options);

}  // namespace tessera::compiler
