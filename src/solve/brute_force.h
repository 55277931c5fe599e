#pragma once

// Exact enumeration, for tests and small problems.

#include <cstdint>

#include "solve/problem.h"
#include "tessera/error.h"

namespace tessera::solve {

// The first (in lexicographic order) of the cheapest assignments that keep the usage limit.
// kOutOfRange where there are more than `limit` assignments; kFailedPrecondition where none is
// finite and keeps the limit; kInvalidArgument for a malformed problem.
Result<Solution> brute_force(const Problem& problem, std::uint64_t limit = 10'000'000);

}  // namespace tessera::solve
