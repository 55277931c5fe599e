#pragma once

// From a problem's floating-point costs to the solver's integers, and back.

#include <cstdint>
#include <optional>
#include <span>

#include "solve/network.h"
#include "solve/problem.h"

namespace tessera::solve {

// A problem as a network: cost = base + integer cost / 2^exponent, up to the rounding.
struct ScaledProblem {
  Network network;       // top: the cost of the incumbent, or above that of every assignment
  long double base = 0;  // the constant and the least cost of every variable and pair
  int exponent = 0;
  bool exact = true;        // no cost that can matter was rounded
  std::uint64_t terms = 0;  // costs in an assignment: variables and pairs
  std::uint64_t merged_pairs = 0;

  [[nodiscard]] double unscale(Cost cost) const;
  // A bound for the problem's own costs: less what rounding may have added.
  [[nodiscard]] double unscale_bound(Cost bound) const;
};

// Subtracts the least cost of every variable and pair, and multiplies what is left by the largest
// power of two with which costs up to the incumbent's fit: costs above that are forbidden, since no
// better assignment holds them. Without an incumbent, the largest sum of finite costs stands for
// its cost. The problem must be well-formed, and the incumbent's cost finite.
ScaledProblem scale(const Problem& problem,
                    std::optional<std::span<const std::uint32_t>> incumbent);

}  // namespace tessera::solve
