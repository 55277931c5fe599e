#pragma once

// The text form of assignment problems and solutions: the JSON of the IOPDDL contest (ASPLOS 2025)
// plus names.

#include <string>
#include <string_view>

#include "solve/problem.h"
#include "tessera/error.h"

namespace tessera::solve {

// {"problem": {"name":, "constant":, "nodes": {"intervals": [[lower, upper]...], "costs":
// [[...]...], "usages": [[...]...], "names": [...], "choices": [[...]...]}, "edges": {"nodes": [[a,
// b]...], "costs": [[row-major]...]}, "usage_limit":}}. Only nodes.costs is required; the outer
// "problem" may be left out; unknown keys are ignored. A forbidden choice or pair is null or "inf";
// IOPDDL's own files use large integers, which stay the numbers they are. kInvalidArgument names
// the place: "edges.costs[3]: expected 6 values (2 x 3), found 5".
Result<Problem> parse_problem(std::string_view json);

// The same form; parse_problem gives back an equal problem, except that a variable without usages
// gets zeros where another one has some. Keys that hold only defaults are left out.
std::string print_problem(const Problem& problem);

// {"cost":, "lower_bound":, "gap":, "seconds":, "solution": [choice per node]}, on one line.
std::string print_solution(const Solution& solution, double seconds);

// Reads print_solution's form; `solution` is required, the rest optional. Also a bare array.
Result<Solution> parse_solution(std::string_view json);

}  // namespace tessera::solve
