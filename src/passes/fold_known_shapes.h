#pragma once

// Puts constants in the place of values whose elements inference knows as numbers: shape arithmetic
// over sizes that are fixed, though the tensors themselves are not constant (Shape of an input, and
// what follows from it).
//
// After fold_constants, which needs no inference; its constants let other passes read axes, pads
// and target shapes.

#include "passes/pass.h"

namespace tessera::passes {

Result<bool> fold_known_shapes(PassContext& context, ir::Graph& graph);

}  // namespace tessera::passes
