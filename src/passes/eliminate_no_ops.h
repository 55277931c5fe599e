#pragma once

// Removes nodes that pass their input through: Identity, Dropout without a mask, Cast to the dtype
// that is there, Sum, Min, Max, Mean and Concat of one operand, Expand to the shape that is there,
// Pad by zeros.
//
// Before the passes that look at neighbours: they need not see through these.

#include "passes/pass.h"

namespace tessera::passes {

Result<bool> eliminate_no_ops(PassContext& context, ir::Graph& graph);

}  // namespace tessera::passes
