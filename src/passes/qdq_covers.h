#pragma once

// Covers of pattern "qdq", a part of propose_covers: an operator with the DequantizeLinear nodes of
// its operands, what follows it element by element, and the QuantizeLinear of the result.
//
//   Conv, Gemm, MatMul   both operands dequantised; a bias constant or dequantised from constants;
//                        without QuantizeLinear behind it, the result is fp32.
//   elementwise nodes    operands dequantised, or constants.
//   pooling, movement    (MaxPool, AveragePool, the global ones; Reshape, Transpose, Concat, ...)
//
// Scales and zero points are constants. Further ones that a backend needs (per channel along the
// right axis, 8 bits) it checks itself, since others may need less.

#include "passes/cover_builder.h"
#include "passes/pass.h"

namespace tessera::passes {

// `notes` gets every group that looked like one and is none, with the reason.
void propose_qdq_covers(const CoverGraph& graph, CoverList& covers, std::vector<Note>& notes);

}  // namespace tessera::passes
