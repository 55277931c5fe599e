#pragma once

// What the variables of an assignment problem may still choose, while some are forced.

#include <cstdint>
#include <memory>
#include <vector>

#include "solve/problem.h"

namespace tessera::bench {

// One choice of one variable.
struct Forced {
  std::uint32_t variable = 0;
  std::uint32_t choice = 0;
  bool operator==(const Forced&) const = default;
};

// Begins with every choice of finite cost. What is taken away is propagated over pairs of infinite
// cost: a choice without a partner among those left of a neighbour goes too. So most forcings that
// no plan agrees with show at once; the rest only a solver finds.
class Domains {
 public:
  explicit Domains(const solve::Problem& problem);

  [[nodiscard]] const std::vector<std::uint32_t>& choices(std::uint32_t variable) const {
    return choices_[variable];
  }

  // False where some variable is left without a choice: these domains are of no use then.
  [[nodiscard]] bool forbid(const Forced& taken);
  [[nodiscard]] bool force(const Forced& kept);

  // Gives every choice that is gone an infinite cost, in the problem of the constructor or a copy.
  void restrict(solve::Problem& problem) const;

 private:
  // For each choice of the neighbour, whether each choice of the variable goes with it.
  struct HardPair {
    std::uint32_t neighbour = 0;
    std::vector<std::vector<bool>> allowed;
  };
  bool propagate(std::uint32_t changed);
  [[nodiscard]] bool has_partner(const std::vector<bool>& allowed, std::uint32_t variable) const;

  std::vector<std::vector<std::uint32_t>> choices_;
  std::shared_ptr<const std::vector<std::vector<HardPair>>> pairs_;  // per variable; of all copies
};

}  // namespace tessera::bench
