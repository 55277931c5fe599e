#pragma once

// Folds a BatchNormalization into the Conv, ConvTranspose or Gemm before it, whose weights and bias
// take up scale and shift, computed in double and rounded once to the dtype of the weights.
//
// Declined, with a note: the result of the first node has other readers; weights or statistics are
// no constants; training mode; a folded weight or bias leaves the finite range of its dtype; a bias
// that was not zero becomes zero; a weight loses digits that count in its channel. Weights that
// other nodes share are copied, not changed.
//
// Last of the simplifications: it needs the statistics as constants, and the neighbours without
// Identity between them.

#include "passes/pass.h"

namespace tessera::passes {

Result<bool> fold_batch_normalization(PassContext& context, ir::Graph& graph);

}  // namespace tessera::passes
