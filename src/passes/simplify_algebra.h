#pragma once

// Arithmetic with a constant that does nothing or something simpler:
//   x * 1, x / 1, x + 0, x - 0, x ^ 1    the operand itself, where broadcasting the constant does
//   not widen it x ^ 2                                x * x x ^ 0.5 sqrt(x) x / c x * (1 / c) for
//   floats
//   LayerNormalization with a bias of zeros   the same without
// x + 0 makes no difference but the sign of a zero. A reciprocal that is not exact moves the result
// by at most one more unit in the last place, and sqrt differs from pow at -0 and -infinity: both
// are left alone under PassOptions::exact. Reciprocals in fp16 and bf16 are taken only where they
// are exact, and none that is not a normal number.
//
// After eliminate_no_ops; before the passes that match Mul and Add.

#include "passes/pass.h"

namespace tessera::passes {

Result<bool> simplify_algebra(PassContext& context, ir::Graph& graph);

}  // namespace tessera::passes
