#pragma once

// The sizes that a model with dynamic dims is priced at.

#include <map>
#include <set>
#include <string>

#include "base/dim_expr.h"
#include "base/dims.h"
#include "ir/ir.h"

namespace tessera::compiler {

// Every symbol of the inputs gets a value: from `shapes` where the user states the input's sizes;
// else 1 for a first dimension (the batch), 224 for the spatial dimensions of rank 4 and 5, 128 for
// others, kept within the symbol's range; where some size of the graph cannot be then, or is 0, the
// smallest power of two times these (up to 1792 and 32768) at which all can be and none is, and
// 1 for all where no multiple can be. Symbols that only the run decides get what it showed
// (`seen`, see assumed_sizes.h), else 16; where the sizes beside them contradict that, 1, and at
// last what was seen is left aside. Errors: no such input; rank or size disagree with the model, or
// the size lies outside of its range (input, dimension, expected, found).
Result<SymbolBindings> price_point(const ir::Module& module, const ir::Graph& graph,
                                   const std::map<std::string, Dims>& shapes,
                                   const SymbolBindings& seen = {});

// The symbols of the graph's sizes that no input determines.
std::set<std::string> late_symbols(const ir::Graph& graph);

}  // namespace tessera::compiler
