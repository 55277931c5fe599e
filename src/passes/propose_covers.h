#pragma once

// The fuse stage: which nodes one kernel could run together. It proposes only; the assignment
// decides, a node at a time.
//
// Patterns:
//   anchor_epilogue    Conv, ConvTranspose, Gemm or MatMul, and the elementwise float nodes that
//   follow its result: activations,
//                      arithmetic with constants (of one element or one per channel), and Add, Sub,
//                      Mul with a tensor of the same shape that is there before the anchor (a
//                      residual sum). Every prefix of the chain is a cover of its own. A result may
//                      be read several times inside (x * sigmoid(x)).
//   qdq                An operator between DequantizeLinear and QuantizeLinear: qdq_covers.h.
//   elementwise_group  Elementwise float nodes of one shape that end in one result, as many as
//   there are; and what is left of such
//                      a group beside each anchor_epilogue that takes its first nodes.
//   LayerNormalization, Attention, ...  the pieces that one operator is spelled in
//   (reassemble/reassemble.h).
//
// Every value inside of a cover is read inside only and is no output of the graph, so a cover has
// one output and is convex: no path leaves it and comes back. (Attention with its cache has the
// cache as outputs too, which nobody else reads.) Covers overlap. Their order depends on the order
// of the nodes alone.

#include <vector>

#include "ir/cover.h"
#include "passes/pass.h"

namespace tessera::passes {

// In a flattened graph no cover reaches across the border of a body. Shapes must be inferred; a
// node whose shape is unknown is in no cover. The graph gets values and constants that re-assembled
// operators read; its nodes stay. `notes` gets the elementwise node that ended a chain, where it
// looked as if it could join, and what looked like an operator in pieces, with the reason.
std::vector<ir::Cover> propose_covers(ir::Module& module, ir::Graph& graph,
                                      std::vector<Note>& notes);

}  // namespace tessera::passes
