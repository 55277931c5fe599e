#pragma once

// Removes what nothing reads: nodes, optional outputs, captures of bodies; frees the elements of
// unread constants.
//
// Last in each round: the other passes leave behind what they replaced.

#include "passes/pass.h"

namespace tessera::passes {

Result<bool> eliminate_dead_code(PassContext& context, ir::Graph& graph);

}  // namespace tessera::passes
