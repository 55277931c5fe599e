#pragma once

// Gives each reader of a dequantised tensor a DequantizeLinear of its own, and moves Transposes of
// dequantised constants in front, onto the quantised elements, where folding takes them.
//
// A cover may hold a node only if all its readers are inside: with a DequantizeLinear for each
// reader, every operator with its own makes a group. What no group takes runs the same operator
// once more for each reader, which costs little. Stands behind the elimination of common
// subexpressions, which leaves such nodes apart.

#include "passes/pass.h"

namespace tessera::passes {

Result<bool> separate_dequantize(PassContext& context, ir::Graph& graph);

}  // namespace tessera::passes
