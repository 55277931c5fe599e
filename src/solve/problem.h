#pragma once

// The assignment problem: a pairwise cost function network. One choice per variable, a cost per
// choice, a cost table per pair of variables; the sum is minimised. Knows no graph.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tessera::solve {

// When a variable's choice occupies memory: half-open, [lower, upper).
struct Interval {
  std::int64_t lower = 0;
  std::int64_t upper = 0;
  bool operator==(const Interval&) const = default;
};

struct Variable {
  std::string name;                       // may be empty
  std::vector<double> costs;              // one per choice, at least one; +inf forbids the choice
  std::vector<std::string> choice_names;  // empty, or one per choice
  std::vector<std::int64_t> usages;       // empty (all zero), or one per choice, not negative
  Interval interval;                      // when `usages` count against Problem::usage_limit
  bool operator==(const Variable&) const = default;
};

// Costs of the choices of two different variables together. Several tables on one pair add up.
struct PairCost {
  std::uint32_t a = 0;  // indices into Problem::variables
  std::uint32_t b = 0;
  std::vector<double> costs;  // row-major, |choices of a| x |choices of b|; +inf forbids the pair
  bool operator==(const PairCost&) const = default;
};

struct Problem {
  std::string name;
  std::vector<Variable> variables;
  std::vector<PairCost> pairs;
  double constant = 0;  // added to every assignment's cost
  // At every time, the usages of the chosen choices whose interval holds it sum to at most this.
  std::optional<std::int64_t> usage_limit;
  bool operator==(const Problem&) const = default;
};

// How many variables and choices each exact rule removed before and during the search.
struct ReductionCounts {
  std::uint64_t forbidden_choices = 0;  // cost reaches infinity, or what is already known
  std::uint64_t dominated_choices = 0;  // another choice is never worse
  std::uint64_t single_choice = 0;      // variables left with one choice
  std::uint64_t degree0 = 0;            // variables without a pair
  std::uint64_t degree1 = 0;            // variables folded into their one neighbour
  std::uint64_t degree2 = 0;            // variables folded into a pair of their two neighbours
  std::uint64_t dropped_pairs = 0;      // tables that split into a sum of costs of single choices
  std::uint64_t merged_pairs = 0;       // tables added to another one on the same two variables
  std::uint64_t bucket_eliminated = 0;  // variables solved by dynamic programming over the core
  bool operator==(const ReductionCounts&) const = default;
};

struct Solution {
  std::vector<std::uint32_t> choice;  // one per variable
  double cost = 0;                    // of `choice`, with the constant
  double lower_bound = 0;             // no assignment costs less (see solve.h on rounding)
  double gap = 0;                     // (cost - lower_bound) / max(|cost|, |lower_bound|)
  bool optimal = false;               // lower_bound == cost, proven
  std::uint64_t search_nodes = 0;     // nodes of the branch and bound; 0: reductions sufficed
  ReductionCounts reductions;
};

}  // namespace tessera::solve
