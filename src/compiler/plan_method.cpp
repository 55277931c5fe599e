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

// Solves, and forbids covers that wait for one another together until the answer can be ordered.
// Two covers are each convex, and may still need a result of each other; such pairs are rare, so
// they are excluded when they are met.
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
  while (true) {
    TESSERA_ASSIGN(planned.solution, solve::solve(planned.problem.problem, solve_options));
    TESSERA_ASSIGN(planned.solution, plan::limit_partitions(planned.problem, target,
                                                            planned.solution, solve_options));
    TESSERA_TRY(solve::validate(planned.problem.problem, planned.solution));
    planned.assignment = plan::decode(planned.problem, planned.solution.choice);
    const auto cyclic = plan::cyclic_covers(graph, planned.choices, planned.assignment);
    if (cyclic.empty()) return {};
    plan::forbid_together(planned.problem, cyclic);
    solve_options.initial.reset();
  }
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
  planned->lowered =
      plan::legalize(method, planned->choices, planned->assignment, target, *planned->conversions);
  if (done(Stage::kLegalize, [&] { return lowered_text(method.graph, planned->lowered, target); }))
    return planned;
  for (plan::Lowered& graph : planned->lowered) plan::form_regions(graph);
  if (done(Stage::kSchedule, [&] { return lowered_text(method.graph, planned->lowered, target); }))
    return planned;
  for (plan::Lowered& graph : planned->lowered)
    TESSERA_TRY(plan::plan_memory(method.graph, target, pricer.point(), graph));
  TESSERA_TRY(plan::check_capacity(target, planned->lowered));
  done(Stage::kAllocate, [&] { return memory_text(method.graph, planned->lowered, target); });
  return planned;
}

}  // namespace tessera::compiler
