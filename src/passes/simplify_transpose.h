#pragma once

// Transpose of Transpose becomes one, or none where they undo each other; a Transpose that moves
// only sizes of 1 becomes a Reshape, which moves no bytes.
//
// Before simplify_reshape, which joins the Reshapes that come out of it.

#include "passes/pass.h"

namespace tessera::passes {

Result<bool> simplify_transpose(PassContext& context, ir::Graph& graph);

}  // namespace tessera::passes
