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

// The cost of a complete assignment: the sum of the chosen entries.
double assignment_cost_us(const solve::Problem& problem, const std::vector<std::uint32_t>& choice);

}  // namespace tessera::compiler
