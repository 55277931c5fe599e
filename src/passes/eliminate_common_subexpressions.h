#pragma once

// Makes one of nodes that compute the same, and of constants that hold the same: equal operator,
// attributes (tensors by content), inputs (omitted ones too; the first two of a commutative
// operator in any order). Never merged: random operators, operators with bodies, and two outputs of
// the graph, which must both be produced.
//
// After the folds, which make equal constants out of equal shape arithmetic.

#include "passes/pass.h"

namespace tessera::passes {

Result<bool> eliminate_common_subexpressions(PassContext& context, ir::Graph& graph);

}  // namespace tessera::passes
