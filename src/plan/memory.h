#pragma once

// The allocate stage: lifetimes, views and in-place results, offsets in one arena per memory.

#include "plan/lowered.h"

namespace tessera::plan {

// Fills alias_of, above, sizes, offsets and the figures. Offsets come from the memory solver at the
// price point and are checked by its validator; `above` carries their order to every other size.
// Errors: sizes that overflow.
Status plan_memory(const ir::Graph& graph, const Target& target, const SymbolBindings& point,
                   Lowered& lowered);

// Arenas, weights and states of a graph and all its bodies within each device's memory; the error
// names device, needed and available.
Status check_capacity(const Target& target, const std::vector<Lowered>& graphs);

}  // namespace tessera::plan
