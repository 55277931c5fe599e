#pragma once

// Exact reductions of a network, and how a solution of what remains becomes one of the whole.
//
// Values: a value whose cost, with the least that its tables and neighbours add, reaches the budget
// is forbidden (this is arc consistency where costs are infinite); a value is dominated where
// another one is never worse, whatever the neighbours choose (dead-end elimination, Goldstein
// 1994). Tables: what every entry of a row or column costs moves to that value, what every value
// costs to the constant (Cooper and Schiex, "Arc consistency for soft constraints", 2004); a table
// of zeros is dropped. Variables: with one value, or of degree 0, 1 or 2, they are solved for every
// choice of their neighbours (Bertele and Brioschi, "Nonserial Dynamic Programming", 1972).

#include <cstdint>
#include <memory>
#include <vector>

#include "solve/network.h"
#include "solve/problem.h"

namespace tessera::solve {

// One eliminated variable: given its neighbours' choices, its best value is found again.
struct Elimination {
  struct Neighbour {
    std::uint32_t var = 0;
    std::vector<std::uint32_t> values;  // as they were then: the rows or columns of the table
    std::shared_ptr<const Network::Table> table;
    bool by_row = false;  // rows are the eliminated variable's values
  };
  std::uint32_t var = 0;
  std::vector<std::uint32_t> values;
  Network::Table unary;
  std::vector<Neighbour> neighbours;
};

// Sets the choice of every eliminated variable, last eliminated first. `choice` holds the problem's
// choices by variable of the network; those of the live variables must be set.
void restore(const std::vector<Elimination>& eliminations, std::vector<std::uint32_t>& choice);

// Removes a variable with the record of its values and tables.
void eliminate(Network& network, std::uint32_t var, std::vector<Elimination>& eliminations);

// What the reductions did, and the work they took.
struct ReduceResult {
  std::vector<Elimination> eliminations;
  std::uint64_t work = 0;  // table entries touched
};

// Reduces until no rule applies, starting at the variables of `seeds` (all live ones, if empty).
// Every assignment that costs less than `top` has one that costs no more among what remains. If
// there is none, the network may become infeasible(); then its variables no longer matter.
ReduceResult reduce(Network& network, ReductionCounts& counts,
                    const std::vector<std::uint32_t>& seeds = {});

}  // namespace tessera::solve
