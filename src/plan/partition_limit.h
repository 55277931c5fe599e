#pragma once

// A device that runs only so many partitions: which of those that an assignment makes are worth
// keeping.

#include "plan/assignment_problem.h"
#include "solve/solve.h"

namespace tessera::plan {

// Partitions of each device: the maximal runs of nodes on it, in execution order.
std::vector<std::vector<std::pair<std::size_t, std::size_t>>> partitions_of(
    const Assignment& assignment, std::size_t device_count);

// The cheapest solution found that keeps every device's limit: each choice of partitions (of the
// given solution) that a device may keep is solved anew, with the device taken from all other
// nodes; by gain one after the other where there are more choices than a few hundred. Its bound is
// that of the unlimited problem. The solution itself where it keeps the limits.
// Errors: those of solve::solve.
Result<solve::Solution> limit_partitions(const AssignmentProblem& problem, const Target& target,
                                         const solve::Solution& solution,
                                         const solve::SolveOptions& options);

}  // namespace tessera::plan
