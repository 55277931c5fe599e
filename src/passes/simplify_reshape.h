#pragma once

// Stacked views (Reshape, Flatten, Squeeze, Unsqueeze) become one Reshape from the first input; a
// view that changes no shape goes.
//
// After simplify_transpose, which makes Reshapes. A view that others read stays for them.

#include "passes/pass.h"

namespace tessera::passes {

Result<bool> simplify_reshape(PassContext& context, ir::Graph& graph);

}  // namespace tessera::passes
