#pragma once

// Runs nodes whose inputs are all constants through their reference kernels, and puts the results
// in their place.
//
// First in the order: what becomes a constant here lets the other passes see scalars, axes and
// weights. A result larger than PassOptions::fold_limit_bytes, or both large and much larger than
// what it is made of (Expand, Tile), stays a node: artefacts carry constants. Weights of products
// and convolutions may be up to PassOptions::fold_weights_limit_bytes. Random operators and
// graph outputs stay too, and the DequantizeLinear of weights in a quantised group. A kernel that
// fails leaves its node, with a note: the failure belongs to the run, and the node may never run.

#include "passes/pass.h"

namespace tessera::passes {

Result<bool> fold_constants(PassContext& context, ir::Graph& graph);

}  // namespace tessera::passes
