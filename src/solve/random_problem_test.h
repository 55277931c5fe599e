#pragma once

// Problems for the tests, equal on every machine for equal seeds.

#include <cstdint>

#include "solve/problem.h"

namespace tessera::solve {

// 2 to 10 variables of 1 to 4 choices, few enough to enumerate; a tree, a cycle or denser, with
// infinities, negative and fractional costs, parallel pairs. May be infeasible.
Problem random_problem(unsigned seed);

// Integer costs, every choice allowed, three of four pairs of variables with a table.
Problem random_dense_problem(unsigned seed, std::uint32_t variables, std::uint32_t choices);

// Pairs between variables at most `width` apart: treewidth `width`.
Problem random_band_problem(unsigned seed, std::uint32_t variables, std::uint32_t choices,
                            std::uint32_t width);

Problem random_grid_problem(unsigned seed, std::uint32_t rows, std::uint32_t columns,
                            std::uint32_t choices);

}  // namespace tessera::solve
