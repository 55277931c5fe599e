#pragma once

// Everything about a method that depends on the sizes of one call: dims of each buffer, places in
// the arenas, kernel instances. Made once per set of sizes and kept in a bounded cache of the
// session; making one runs no pass, no pricing and no assignment, and packs no weight.

#include <memory>
#include <vector>

#include "base/dims.h"
#include "runtime/loaded_program.h"

namespace tessera::runtime {

struct ShapePlan {
  SymbolBindings bindings;               // the sizes behind it
  std::vector<Dims> dims;                // of each buffer
  std::vector<std::int64_t> size_bytes;  // of each buffer, in its layout
  std::vector<std::int64_t>
      offset_bytes;  // temporaries: in the arena; aliases: within what they alias
  std::vector<std::int64_t> arena_bytes;  // per memory
  std::int64_t scratch_bytes = 0;         // the largest of any instance
  std::int64_t bounce_bytes =
      0;  // the largest transfer or write-back whose both ends are not host memory
  std::vector<std::unique_ptr<backends::KernelInstance>>
      instances;  // per instruction; null where it has no kernel
};

// Adds to `known` the symbols of the declared input shapes, bound to the given dims, and checks
// every size against them. `dims` has one entry per method input. In a body a size may be an
// expression over symbols that nobody around it knows: it is what it is. Errors name input,
// dimension, expected and found.
Result<SymbolBindings> bind_symbols(const artefact::MethodImage& method,
                                    const std::vector<Dims>& dims, SymbolBindings known,
                                    bool is_body);

// `loose` buffers, and instructions with one, are left out. Instances are made on `parallel`, each
// for `threads`. Errors: sizes that overflow or turn
// negative (which value), kernels that refuse the sizes.
Result<std::unique_ptr<ShapePlan>> make_shape_plan(const LoadedProgram& program,
                                                   const artefact::MethodImage& method,
                                                   const std::vector<Dims>& input_dims,
                                                   SymbolBindings bindings,
                                                   const std::vector<bool>& loose, int threads,
                                                   backends::Parallel& parallel);

}  // namespace tessera::runtime
