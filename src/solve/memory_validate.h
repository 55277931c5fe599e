#pragma once

// Judges memory problems and solutions; shares no code with what makes them.

#include <cstdint>

#include "solve/memory_problem.h"
#include "tessera/error.h"

namespace tessera::solve {

// The most bytes alive at one step: a sweep over the lifespans. The problem must be well-formed.
std::int64_t peak_live_bytes(const MemoryProblem& problem);

// Well-formed: sizes not negative, alignments positive, lower <= upper, fixed offsets not negative
// aligned and without overlap, ids (if not empty) used once, and the sum of all sizes and
// alignments in 63 bits. kInvalidArgument, naming the buffer.
Status check_memory_problem(const MemoryProblem& problem);

// One offset per buffer, not negative, aligned, as fixed; no two buffers that are alive at the same
// step overlap in space; the arena and the peak are what the offsets say; the capacity is kept.
// kInvalidArgument, naming what was expected and found.
Status validate(const MemoryProblem& problem, const MemorySolution& solution);

}  // namespace tessera::solve
