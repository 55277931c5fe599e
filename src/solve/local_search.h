#pragma once

// Good assignments without proof: the solver's first incumbent, and the repair of usage limits.

#include <cstdint>
#include <optional>
#include <vector>

#include "solve/problem.h"

namespace tessera::solve {

// Chooses variable by variable in the problem's order, each with the least cost given those before
// and the least that those after add. The cost may be infinite. Deterministic.
std::vector<std::uint32_t> greedy_assignment(const Problem& problem);

// Single changes that lower the cost, over all variables in order, until none helps. Where the
// problem has a usage limit, first those that lower the usage above it at the least cost, then
// those that keep it. Deterministic. Nothing where the result has an infinite cost or breaks the
// limit.
std::optional<std::vector<std::uint32_t>> improve_assignment(const Problem& problem,
                                                             std::vector<std::uint32_t> choice);

}  // namespace tessera::solve
