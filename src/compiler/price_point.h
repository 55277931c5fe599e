#pragma once

// The sizes that a model with dynamic dims is priced at.

#include <map>
#include <string>

#include "base/dim_expr.h"
#include "base/dims.h"
#include "ir/ir.h"

namespace tessera::compiler {

// Every symbol of the inputs gets a value: from `shapes` where the user states the input's sizes;
// else 1 for a first dimension (the batch), 224 for the spatial dimensions of rank 4 and 5, 128 for
// others, kept within the symbol's range. Errors: no such input; rank or size disagree with the
// model, or the size lies outside of its range (input, dimension, expected, found).
Result<SymbolBindings> price_point(const ir::Module& module, const ir::Graph& graph,
                                   const std::map<std::string, Dims>& shapes);

}  // namespace tessera::compiler
