#include "compiler/plan_method.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "compiler/plan_text.h"
#include "plan/legalize.h"
#include "plan/memory.h"
#include "plan/partition_limit.h"
#include "solve/problem_text.h"
#include "solve/solve.h"
#include "solve/validate.h"

namespace tessera::compiler {
namespace {

backends::OfferOptions offer_options(const CompileOptions& options) {
  backends::OfferOptions offers;
  offers.threads = options.threads;
  offers.exact = options.exact;
  if (options.precision != DType::kFp32) offers.precisions.push_back(options.precision);
  return offers;
}

Status assign(const ir::Graph& graph, const plan::Target& target, const CompileOptions& options,
              Planned& planned) {
  solve::SolveOptions solve_options;
  solve_options.node_limit = options.node_limit;
  solve_options.cancel = options.cancel;
  solve_options.initial = plan::greedy_by_priority(graph, planned.choices, target, planned.problem);
  if (solve_options.initial) {
    const double greedy_us = assignment_cost_us(planned.problem.problem, *solve_options.initial);
    if (std::isfinite(greedy_us))
      planned.greedy_us = greedy_us;
    else
      solve_options.initial.reset();
  }
  TESSERA_ASSIGN(planned.solution, solve_in_order(graph, planned.choices, target, planned.problem,
                                                  std::move(solve_options)));
  planned.assignment = plan::decode(planned.problem, planned.solution.choice);
  return {};
}

// After prices, which were perhaps measured for long: an interrupt ends the compilation, a used-up
// budget does not.
Status check_prices(const plan::Pricer& pricer, const CompileOptions& options) {
  if (options.cancel.stop_requested()) return fail(ErrorCode::kCancelled, "stopped");
  if (!options.require_prices) return {};
  const auto misses = pricer.misses();
  if (misses.empty()) return {};
  return fail(ErrorCode::kFailedPrecondition,
              fmt::format("--require-prices: {} prices are not in the cost table; the first is {}",
                          misses.size(), misses.front().key));
}

}  // namespace

double assignment_cost_us(const solve::Problem& problem, const std::vector<std::uint32_t>& choice) {
  double total = problem.constant;
  for (std::size_t i = 0; i < problem.variables.size(); ++i)
    total += problem.variables[i].costs[choice[i]];
  for (const solve::PairCost& pair : problem.pairs)
    total += pair.costs[choice[pair.a] * problem.variables[pair.b].costs.size() + choice[pair.b]];
  return total;
}

Result<solve::Solution> solve_in_order(const ir::Graph& graph, const plan::Choices& choices,
                                       const plan::Target& target, plan::AssignmentProblem& problem,
                                       solve::SolveOptions options) {
  while (true) {
    TESSERA_ASSIGN(auto solution, solve::solve(problem.problem, options));
    TESSERA_ASSIGN(solution, plan::limit_partitions(problem, target, solution, options));
    TESSERA_TRY(solve::validate(problem.problem, solution));
    const auto cyclic = plan::cyclic_covers(graph, choices, plan::decode(problem, solution.choice));
    if (cyclic.empty()) return solution;
    plan::forbid_together(problem, cyclic);
    options.initial.reset();
  }
}

Result<std::vector<plan::Lowered>> lower_assignment(
    const ir::Method& method, const Planned& planned, const plan::Assignment& assignment,
    const plan::Target& target, const SymbolBindings& point, const CompileOptions& options) {
  auto graphs = plan::legalize(method, planned.choices, assignment, target, *planned.conversions);
  const auto done = [&](Stage stage, auto text) {
    if (options.dump) options.dump(stage, text(method.graph, graphs, target));
    return options.stop_after == stage;
  };
  if (done(Stage::kLegalize, lowered_text)) return graphs;
  for (plan::Lowered& graph : graphs) plan::form_regions(graph);
  if (done(Stage::kSchedule, lowered_text)) return graphs;
  for (plan::Lowered& graph : graphs)
    TESSERA_TRY(plan::plan_memory(method.graph, target, point, graph));
  TESSERA_TRY(plan::check_capacity(target, graphs));
  done(Stage::kAllocate, memory_text);
  return graphs;
}

Result<std::unique_ptr<Planned>> plan_method(const ir::Module& module, const ir::Method& method,
                                             std::vector<ir::Cover> covers, plan::Target& target,
                                             plan::Pricer& pricer, const CompileOptions& options,
                                             const std::vector<plan::Exclusion>& excluded) {
  auto planned = std::make_unique<Planned>();
  const auto done = [&](Stage stage, auto text) {
    if (options.dump) options.dump(stage, text());
    return options.stop_after == stage;
  };
  TESSERA_ASSIGN(planned->choices,
                 plan::enumerate_choices(module, method.graph, std::move(covers), target,
                                         options.rules, offer_options(options), pricer, excluded));
  if (done(Stage::kEnumerate, [&] { return choices_text(planned->choices, target, false); }))
    return planned;
  TESSERA_TRY(check_prices(pricer, options));
  if (done(Stage::kPrice, [&] { return choices_text(planned->choices, target, true); }))
    return planned;
  planned->conversions = std::make_unique<plan::Conversions>(method.graph, target, pricer);
  planned->problem =
      plan::build_assignment_problem(method.graph, planned->choices, target, *planned->conversions);
  TESSERA_TRY(check_prices(pricer, options));  // now with those of the conversions
  TESSERA_TRY(assign(method.graph, target, options, *planned));
  if (done(Stage::kAssign, [&] {
        return solve::print_problem(planned->problem.problem) + "\n" +
               solve::print_solution(planned->solution, 0) + "\n";
      }))
    return planned;
  TESSERA_ASSIGN(planned->lowered, lower_assignment(method, *planned, planned->assignment, target,
                                                    pricer.point(), options));
  return planned;
}

}  // namespace tessera::compiler
