#pragma once

#include "passes/pass.h"

namespace tessera::passes {

// An If whose condition is a constant goes; the nodes of the branch that it takes stand in its
// place, with the origins of the If added to theirs. Needs: captures as explicit inputs. Exporters
// leave such branches behind questions about shapes that folding answers.
Result<bool> inline_constant_branches(PassContext& context, ir::Graph& graph);

}  // namespace tessera::passes
