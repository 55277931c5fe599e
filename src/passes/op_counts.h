#pragma once

// How many nodes of each operator a graph holds: what a stage added and removed.

#include <cstdint>
#include <map>
#include <string>

#include "ir/ir.h"

namespace tessera::passes {

using OpCounts = std::map<std::string, std::int64_t>;  // by qualified name

// Of all methods, bodies included.
OpCounts count_ops(const ir::Module& module);

// Of the model's own nodes, as its file spells them.
OpCounts count_source_ops(const ir::Module& module);

// Adds to `added` what `after` holds more than `before`, to `removed` what it holds less.
void add_difference(const OpCounts& before, const OpCounts& after, OpCounts& added,
                    OpCounts& removed);

}  // namespace tessera::passes
