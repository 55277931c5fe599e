#pragma once

// The legalize and schedule stages: chosen covers, conversions and transfers made explicit, then
// put in an execution order with regions.

#include "plan/lowered.h"

namespace tessera::plan {

// Covers of one shortest cycle (each needs a result of the next); empty where the assignment can be
// ordered.
std::vector<std::uint32_t> cyclic_covers(const ir::Graph& graph, const Choices& choices,
                                         const Assignment& assignment);

// Steps in execution order: items by the place of their last node, conversions right before their
// first reader, in the body that makes the value. The first of the result is the graph itself; a
// body stands behind the one that runs it. TESSERA_CHECKs that the assignment can be ordered.
std::vector<Lowered> legalize(const ir::Method& method, const Choices& choices,
                              const Assignment& assignment, const Target& target,
                              Conversions& conversions);

// Numbers the regions: maximal runs on one device.
void form_regions(Lowered& lowered);

}  // namespace tessera::plan
