#pragma once

// Sizes that only a run decides, as prices assume them: those that a run at the price point shows.

#include <map>
#include <memory>
#include <stop_token>
#include <string>

#include "ir/ir.h"
#include "runtime/loaded_program.h"

namespace tessera::compiler {

struct AssumedSizes {
  SymbolBindings symbols;                    // of sizes, all above 0
  std::map<ir::ValueId, Dims> dims;          // of values whose types tell no rank
  std::map<ir::ValueId, RunValue> operands;  // that nodes read which decide sizes
  std::string gap;                           // why not all was seen; empty where it was
};

// Runs `program`, the flattened `graph` compiled for any devices, on inputs that are drawn at the
// price point that it carries: integers and booleans are all 1, and where such a run fails, all 0.
// Branches run whether they are taken or not. An empty tensor says nothing about its size: data
// that is drawn is found by no search. Deterministic for one kind of processor.
AssumedSizes assume_sizes(const ir::Graph& graph,
                          const std::shared_ptr<const runtime::LoadedProgram>& program, int threads,
                          const std::stop_token& cancel);

}  // namespace tessera::compiler
