#include "solve/brute_force.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "solve/validate.h"

namespace tessera::solve {
namespace {

Result<std::uint64_t> count_assignments(const Problem& problem, std::uint64_t limit) {
  std::uint64_t count = 1;
  for (const Variable& variable : problem.variables) {
    if (__builtin_mul_overflow(count, variable.costs.size(), &count) || count > limit) {
      return fail(ErrorCode::kOutOfRange,
                  fmt::format("more than {} assignments to enumerate", limit));
    }
  }
  return count;
}

// The next assignment in lexicographic order; false after the last one.
bool advance(const Problem& problem, std::vector<std::uint32_t>& choice) {
  for (std::size_t i = choice.size(); i-- > 0;) {
    if (++choice[i] < problem.variables[i].costs.size()) return true;
    choice[i] = 0;
  }
  return false;
}

}  // namespace

Result<Solution> brute_force(const Problem& problem, std::uint64_t limit) {
  TESSERA_TRY(check_problem(problem));
  TESSERA_ASSIGN(const std::uint64_t count, count_assignments(problem, limit));
  std::vector<std::uint32_t> choice(problem.variables.size(), 0);
  Solution best;
  best.cost = std::numeric_limits<double>::infinity();
  do {
    const double cost = assignment_cost(problem, choice);
    if (cost >= best.cost) continue;
    if (problem.usage_limit && peak_usage(problem, choice) > *problem.usage_limit) continue;
    best.cost = cost;
    best.choice = choice;
  } while (advance(problem, choice));
  if (std::isinf(best.cost)) {
    return fail(ErrorCode::kFailedPrecondition,
                fmt::format("none of the {} assignments is allowed", count));
  }
  best.lower_bound = best.cost;
  best.optimal = true;
  return best;
}

}  // namespace tessera::solve
