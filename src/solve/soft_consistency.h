#pragma once

// Lower bounds by shifting costs (soft arc consistency), and assignments read off the result.

#include <cstdint>
#include <vector>

#include "solve/network.h"

namespace tessera::solve {

// One forward and one backward sweep over the live variables by index. At each variable, the least
// of every row of its tables moves to its values and the least of its values to the constant; what
// remains is shared among the tables to the variables that follow in the sweep: sequential
// reweighted message passing (Kolmogorov, "A new look at reweighted message passing", 2015), here
// on integers, where rounding a share down loses nothing. The constant never falls and stays a
// lower bound; the costs of assignments below `top` do not change. Returns the table entries
// touched.
std::uint64_t sweep(Network& network);

// Sweeps until the constant rises by less than 1/256 of the remaining budget over `patience`
// sweeps, or reaches `top`, or `max_work` entries are touched. Returns the table entries touched.
std::uint64_t improve_bound(Network& network, unsigned patience, std::uint64_t max_work);

// A greedy assignment of the live variables, by index, each with the least cost given those before
// and the least that those after it add; then single changes while they help. Positions of values.
// Deterministic; the assignment may cost `top` or more. Adds the table entries touched to `work`.
std::vector<std::uint32_t> decode(const Network& network, std::uint64_t& work);

// The cost of an assignment by positions of values (of live variables), with the constant.
Cost cost_of(const Network& network, const std::vector<std::uint32_t>& positions);

}  // namespace tessera::solve
