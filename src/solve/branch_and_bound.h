#pragma once

// Depth-first branch and bound over a network, with decomposition into connected components,
// dynamic programming on components of small width, and bounds by soft consistency.

#include <cstdint>
#include <functional>
#include <stop_token>
#include <vector>

#include "solve/network.h"
#include "solve/problem.h"

namespace tessera::solve {

struct SearchLimits {
  std::uint64_t nodes = 0;
  std::uint64_t work = 0;                 // table entries touched
  std::uint64_t elimination_entries = 0;  // of one combination of tables
  std::stop_token cancel;
  // Called every some nodes with the nodes so far.
  std::function<void(std::uint64_t nodes)> progress;
};

struct SearchResult {
  // No assignment costs less than this, or, where it is `top` or more, than `top`.
  Cost lower_bound = 0;
  // The best assignment found that costs less than `top`: by variable, as numbered by the problem.
  std::vector<std::uint32_t> choice;
  Cost cost = kForbidden;  // of `choice`; kForbidden where none was found
  std::uint64_t nodes = 0;
  std::uint64_t work = 0;
  ReductionCounts reductions;
};

// Searches for assignments that cost less than network.top. At each node: reductions; components,
// each with what the others' bounds leave of the budget; elimination where a component's width
// allows it; else sweeps, a decoded assignment, and a branch on every value of the variable with
// the most failures and costs per value (dom/wdeg: Boussemart et al., "Boosting systematic search
// by weighting constraints", 2004), the most promising value first. Deterministic.
SearchResult branch_and_bound(Network network, const SearchLimits& limits);

}  // namespace tessera::solve
