#pragma once

#include "passes/pass.h"

namespace tessera::passes {

// A node in the body of a Loop or Scan that reads nothing which the loop changes moves in front of
// the loop, and the body captures its result. Only what cannot fail moves, since the loop may run
// zero times: elementwise operators (but integer division), reductions, products, Transpose, over
// tensors of known shape. Inner loops come first (the runner's order), so that an invariant can
// leave several of them.
Result<bool> hoist_loop_invariants(PassContext& context, ir::Graph& graph);

}  // namespace tessera::passes
