#pragma once

// Greedy placement of buffers in an arena.

#include "solve/memory_problem.h"
#include "tessera/error.h"

namespace tessera::solve {

// Places every buffer at its lowest aligned offset that collides with none placed before, in
// several fixed orders (size, size x lifespan, lifespan: descending; ties by lower, then index),
// and keeps the smallest arena; the earliest order wins a tie (greedy by size: Pisarchyk and Lee,
// "Efficient Memory Management for Deep Neural Net Inference", 2020). Buffers with a fixed offset
// are placed first. Deterministic. Each buffer scans those placed below its offset: at worst n^2 /
// 2 steps.
//
// Errors: kInvalidArgument for a malformed problem (see check_memory_problem); kResourceExhausted
// where the smallest arena found is above the capacity (a smaller one may exist: this is a
// heuristic).
Result<MemorySolution> allocate_greedy(const MemoryProblem& problem);

}  // namespace tessera::solve
