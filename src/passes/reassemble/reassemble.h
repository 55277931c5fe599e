#pragma once

// Operators that exporters spell in pieces, as covers that bear them: normalisations, activations,
// attention, rotary embedding, softmax, batch normalisation, bias in convolutions and products.
//
// Only proposals, as all covers are: the pieces stay the alternative. What has the structure of an
// operator but breaks one of its conditions becomes a note that names the pattern, the nodes and
// the condition.

#include <vector>

#include "passes/cover_builder.h"
#include "passes/pass.h"

namespace tessera::passes {

// Adds to `covers`, whose graph is `graph`. Values and constants of the operators' operands are
// added to the graph; its nodes stay as they are. Shapes must be inferred.
void reassemble_covers(ir::Module& module, ir::Graph& graph, CoverList& covers,
                       std::vector<Note>& notes);

}  // namespace tessera::passes
