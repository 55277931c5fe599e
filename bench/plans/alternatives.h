#pragma once

// Other plans than the chosen one, from the same assignment problem: some choices are forced, the
// solver completes them at the least cost.

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "compiler/plan_space.h"
#include "plans/domains.h"

namespace tessera::bench {

struct Alternative {
  std::vector<std::uint32_t> choice;  // per variable of the problem
  double predicted_us = 0;
};

// Plans of one kind. No two are the same, and none is the chosen one.
struct Group {
  std::string name;
  std::vector<Alternative> plans;
  double tried = 0;          // forcings
  double impossible = 0;     // of those: no plan agrees with them
  std::size_t repeated = 0;  // of those: the chosen plan, or one that the group has already
};

// How one node differs between two plans, in words: its kernel with forms and predicted time.
struct NodeDifference {
  std::string node;
  std::string chosen;
  std::string other;
};

class Alternatives {
 public:
  // The device of last resort is left out of a node that another device takes where it is predicted
  // to run longer than `last_resort_us`; out of random plans for any time.
  Alternatives(const compiler::PlanSpace& space, double last_resort_us);

  // Nodes whose names match one of the globs. Errors: a glob that matches none; more than
  // kMaxSubgraph nodes.
  [[nodiscard]] Result<std::vector<std::size_t>> find_nodes(
      const std::vector<std::string>& globs) const;
  static constexpr std::size_t kMaxSubgraph = 10;

  // Every combination of choices of `nodes`. Errors: more than `limit` that are not impossible at
  // sight.
  [[nodiscard]] Result<Group> combinations(const std::vector<std::size_t>& nodes,
                                           std::size_t limit) const;

  // Plans with random choices forced on a random part of the nodes; how large a part is drawn
  // anew for each, from one node to all, small ones as often as large ones (uniform in the
  // logarithm). Fewer than `count` where a hundred draws on end give none that is new.
  [[nodiscard]] Result<Group> random_plans(std::size_t count, std::uint64_t seed) const;

  // Plans with one choice of one node changed, drawn from all such changes; fewer than `count`
  // where there are no more.
  [[nodiscard]] Result<Group> neighbours(std::size_t count, std::uint64_t seed) const;

  [[nodiscard]] std::vector<NodeDifference> differences(const Alternative& plan) const;

 private:
  using Nodes =
      std::vector<std::uint32_t>;  // the choices of the nodes alone: what tells plans apart

  [[nodiscard]] Domains domains(double last_resort_us) const;
  [[nodiscard]] Nodes nodes_of(const std::vector<std::uint32_t>& choice) const;
  Status add(const Domains& left, std::set<Nodes>& seen, Group& group) const;

  const compiler::PlanSpace& space_;
  const plan::AssignmentProblem& problem_;
  const std::vector<std::uint32_t>& chosen_;
  double last_resort_us_;
};

}  // namespace tessera::bench
