#pragma once

// Which caches hold what a model touches: in which state its kernels run, and are priced.

#include <cstdint>
#include <span>

#include "base/dim_expr.h"
#include "base/machine_facts.h"
#include "ir/ir.h"
#include "plan/cost_table.h"

namespace tessera::compiler {

// At least so many bytes does a run touch: those of the constants that nodes read, and of the node
// with the largest other operands. Values without a size at `point` count nothing.
std::int64_t touched_bytes(const ir::Graph& graph, const SymbolBindings& point);

// `caches`: smallest first, as data_caches() gives them; where none is known, nothing stays.
plan::CacheState cache_state(std::int64_t touched_bytes, std::span<const CacheLevel> caches);

}  // namespace tessera::compiler
