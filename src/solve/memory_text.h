#pragma once

// The text form of memory problems and solutions: minimalloc's CSV.

#include <optional>
#include <string>
#include <string_view>

#include "solve/memory_problem.h"
#include "tessera/error.h"

namespace tessera::solve {

struct MemoryTable {
  MemoryProblem problem;
  std::optional<MemorySolution> solution;  // where the table has an offset column
};

// A header line that names the columns, in any order: id, lower, upper, size, and optionally
// alignment, fixed (the fixed offset, may be empty) and offset; then one buffer a line. Fields may
// be quoted (RFC 4180). The problem is checked (check_memory_problem); the offsets are not:
// validate() judges them. kInvalidArgument names the line and the column.
Result<MemoryTable> parse_memory(std::string_view csv);

// `id,lower,upper,size[,alignment][,fixed][,offset]`: alignment where one is not 1, fixed where one
// is, offset with a solution.
std::string print_memory(const MemoryProblem& problem, const MemorySolution* solution = nullptr);

}  // namespace tessera::solve
