#pragma once

// Judges assignment problems and solutions; shares no code with the solver.

#include <cstdint>
#include <span>

#include "solve/problem.h"
#include "tessera/error.h"

namespace tessera::solve {

// Well-formed: at least one choice per variable; tables of the right size on two different
// variables that exist; no NaN and no -inf; a finite constant; names, usages as problem.h says.
// kInvalidArgument, naming the place.
Status check_problem(const Problem& problem);

// The cost of an assignment, with the constant, summed with compensation (Neumaier); +inf where a
// choice or pair is forbidden. The problem and the assignment must be well-formed.
double assignment_cost(const Problem& problem, std::span<const std::uint32_t> choice);

// The most usage at one time under an assignment (a sweep over the intervals).
std::int64_t peak_usage(const Problem& problem, std::span<const std::uint32_t> choice);

// The solution has one choice in range per variable, none of them forbidden, its cost is what it
// claims (to a relative 1e-9), its bound is not above its cost, gap and `optimal` agree with both,
// and the usage limit is kept. kInvalidArgument, naming what was expected and found.
Status validate(const Problem& problem, const Solution& solution);

}  // namespace tessera::solve
