#pragma once

// The exact solver of the assignment problem: reductions, dynamic programming, branch and bound.

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <vector>

#include "solve/problem.h"
#include "tessera/error.h"

namespace tessera::solve {

struct SolveProgress {
  std::uint64_t search_nodes = 0;
  double best_cost = 0;  // of the best assignment known when the search began; +inf if none
};

struct SolveOptions {
  // Both limits count work, never seconds, so that equal problems give equal answers on every
  // machine. When one is used up, the best assignment so far and a proven bound are returned.
  std::uint64_t node_limit = 200'000;             // nodes of the branch and bound
  std::uint64_t work_limit = 10'000'000'000;      // table entries touched while bounding
  std::uint64_t elimination_entries = 4'000'000;  // entries of one dynamic programming table
  // A known assignment (a greedy baseline): the answer is never worse. One choice per variable.
  std::optional<std::vector<std::uint32_t>> initial;
  std::stop_token cancel;                              // a stop request ends with kCancelled
  std::function<void(const SolveProgress&)> progress;  // called now and then, on this thread
};

// Minimises the problem's cost. Deterministic.
//
// The search runs on 64-bit integers: costs are multiplied by a power of two (as large as the
// range of the costs allows) and rounded, so that shifting costs between tables is exact. Costs
// that are integers, or multiples of that step, lose nothing; otherwise "optimal" and the bound
// hold up to half a step per cost of an assignment: about 2^-58 of the range of total costs.
//
// A usage limit is not part of the exact search. Where the optimum without it keeps it, that is
// the answer; else a local search repairs it and the bound stays that of the relaxed problem.
//
// Errors: kInvalidArgument for a malformed problem or initial assignment (see check_problem);
// kFailedPrecondition where no assignment has a finite cost; kResourceExhausted where none was
// found within the limits, or none that keeps the usage limit; kCancelled.
Result<Solution> solve(const Problem& problem, const SolveOptions& options = {});

}  // namespace tessera::solve
