#pragma once

// Dynamic programming over the core that the pairwise reductions leave.

#include <cstdint>
#include <optional>
#include <vector>

#include "solve/network.h"

namespace tessera::solve {

// An order of elimination of the live variables, and what it takes.
struct EliminationOrder {
  std::vector<std::uint32_t> vars;
  std::uint64_t largest_table = 0;  // entries of the largest combination of a variable's tables
  std::uint64_t work = 0;           // entries of all of them
};

// The order that eliminates next the variable whose neighbours' tables combine to the fewest
// entries (ties: the lowest index). Nothing where some combination has more than `max_entries`, or
// all of them more than 8 times that.
std::optional<EliminationOrder> elimination_order(const Network& network,
                                                  std::uint64_t max_entries);

// The best positions of the live variables' values, exactly (bucket elimination, Dechter 1999), and
// their cost with the constant; kForbidden where there is none.
struct EliminationResult {
  std::vector<std::uint32_t> positions;
  Cost cost = kForbidden;
};
EliminationResult eliminate_buckets(const Network& network, const EliminationOrder& order);

}  // namespace tessera::solve
