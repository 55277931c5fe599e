#pragma once

// Removes attributes that say what holds without them: keepdims=1 of a reduction, allowzero=0 of a
// Reshape, group=1 of a convolution. Only integers whose default belongs to the name and holds for
// every operator that has it.
//
// Before eliminate_common_subexpressions, which compares attributes: an exporter that writes
// defaults and one that leaves them out mean the same.

#include "passes/pass.h"

namespace tessera::passes {

Result<bool> canonicalize_attributes(PassContext& context, ir::Graph& graph);

}  // namespace tessera::passes
