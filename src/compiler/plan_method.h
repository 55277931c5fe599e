#pragma once

// The planning stages of one method on one set of devices: enumerate, price, assign, legalize,
// schedule, allocate.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/options.h"
#include "ir/cover.h"
#include "plan/assignment_problem.h"
#include "plan/choices.h"
#include "plan/lowered.h"
#include "plan/target.h"
#include "solve/problem.h"
#include "solve/solve.h"

namespace tessera::compiler {

// What planning found, kept together since later parts point into earlier ones.
struct Planned {
  plan::Choices choices;
  std::unique_ptr<plan::Conversions> conversions;
  plan::AssignmentProblem problem;
  solve::Solution solution;
  plan::Assignment assignment;
  std::optional<double> greedy_us;     // nothing where greedy finds no legal plan
  std::vector<plan::Lowered> lowered;  // the graph, then its bodies
};

// Errors: see enumerate_choices, solve::solve and plan_memory.
Result<std::unique_ptr<Planned>> plan_method(const ir::Module& module, const ir::Method& method,
                                             std::vector<ir::Cover> covers, plan::Target& target,
                                             plan::Pricer& pricer, const CompileOptions& options,
                                             const std::vector<plan::Exclusion>& excluded = {});

// The cheapest assignment that can be ordered and keeps the devices' limits of partitions. Two
// covers are each convex, and may still need a result of each other; such pairs are rare, so they
// are excluded when they are met, in `problem`. Errors: see solve::solve.
Result<solve::Solution> solve_in_order(const ir::Graph& graph, const plan::Choices& choices,
                                       const plan::Target& target, plan::AssignmentProblem& problem,
                                       solve::SolveOptions options);

// Legalize, schedule and allocate, for any assignment that can be ordered; ends where `options`
// say, and prints what they ask for. Errors: see plan_memory and check_capacity.
Result<std::vector<plan::Lowered>> lower_assignment(
    const ir::Method& method, const Planned& planned, const plan::Assignment& assignment,
    const plan::Target& target, const SymbolBindings& point, const CompileOptions& options);

// The cost of a complete assignment: the sum of the chosen entries.
double assignment_cost_us(const solve::Problem& problem, const std::vector<std::uint32_t>& choice);

}  // namespace tessera::compiler
