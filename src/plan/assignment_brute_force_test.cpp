// The assignment problem against an enumeration that knows nothing of it: every way to run the
// nodes one by one or in covers, with the forms that it needs made along the fixed paths of
// conversions.h.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "plan/assignment_problem.h"
#include "plan/legalize.h"
#include "plan/random_case_test.h"
#include "solve/solve.h"
#include "solve/validate.h"
#include "testing/random.h"

namespace tessera::plan {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class Enumeration {
 public:
  explicit Enumeration(RandomCase& random_case)
      : case_(random_case), graph_(random_case.graph()), target_(random_case.devices.target()) {
    alternatives_.resize(graph_.nodes().size());
    for (const ItemOptions& entry : case_.choices.nodes) add_alternatives(entry);
    for (const ItemOptions& entry : case_.choices.cover_options) add_alternatives(entry);
    device_of_.resize(graph_.nodes().size());
    taken_.assign(graph_.nodes().size(), false);
    root_.resize(graph_.value_count());
    wanted_.resize(graph_.value_count());
    routes_.resize(graph_.value_count());
  }

  // The cost of the cheapest plan; infinity where there is none.
  double run() {
    choose(0, 0);
    return best_us_;
  }

 private:
  struct Alternative {
    double time_us = 0;
    std::uint32_t device = 0;
    std::vector<std::size_t> nodes;
    std::vector<std::pair<ir::ValueId, std::size_t>> reads;  // value, number of the form
    std::vector<std::pair<ir::ValueId, std::size_t>> makes;
  };
  // From one produced form of a value to another form.
  struct Route {
    bool known = false;
    bool exists = false;
    std::uint64_t forms = 0;  // bits of the forms made on the way, the last one included
    double last_us = 0;
  };

  std::size_t number_of(const Form& form) {
    const auto found = std::ranges::find(forms_, form);
    if (found == forms_.end()) forms_.push_back(form);
    return static_cast<std::size_t>(std::ranges::find(forms_, form) - forms_.begin());
  }
  std::size_t interface_form() {
    return number_of({kHostMemory, {Layout::row_major(), DType::kFp32}});
  }

  void add_alternatives(const ItemOptions& entry) {
    for (const Option& option : entry.options) {
      Alternative alternative{option.price.us, option.device, {}, {}, {}};
      const std::uint32_t memory = target_.memory_of[option.device];
      for (const ir::Node* node : entry.item.nodes)
        alternative.nodes.push_back(graph_.position_of(node->id));
      for (std::size_t i = 0; i < entry.item.inputs.size(); ++i)
        if (option.candidate.inputs[i] &&
            graph_.value(entry.item.inputs[i]).kind != ir::ValueKind::kConstant)
          alternative.reads.emplace_back(entry.item.inputs[i],
                                         number_of({memory, *option.candidate.inputs[i]}));
      for (std::size_t i = 0; i < entry.item.outputs.size(); ++i)
        alternative.makes.emplace_back(entry.item.outputs[i],
                                       number_of({memory, option.candidate.outputs[i]}));
      alternatives_[alternative.nodes.front()].push_back(std::move(alternative));
    }
  }

  const Route& route(ir::ValueId value, std::size_t root, std::size_t form) {
    auto& routes = routes_[value];
    if (routes.empty()) routes.resize(64UL * 64);
    Route& found = routes[root * 64 + form];
    if (found.known) return found;
    found.known = true;
    if (const auto& path = case_.conversions->path(value, forms_[root], forms_[form])) {
      found.exists = true;
      for (const ConversionStep& step : *path)
        found.forms |= std::uint64_t{1} << number_of(step.to);
      found.last_us = path->empty() ? 0 : path->back().price.us;
    }
    return found;
  }

  // Nodes before `next` are taken; what takes `next` starts there.
  void choose(std::size_t next, double so_far_us) {
    if (so_far_us >= best_us_) return;
    while (next < taken_.size() && taken_[next]) ++next;
    if (next == taken_.size()) {
      best_us_ = std::min(best_us_, so_far_us + order_us() + forms_us());
      return;
    }
    for (const Alternative& alternative : alternatives_[next]) {
      if (std::ranges::any_of(alternative.nodes, [&](std::size_t node) { return taken_[node]; }))
        continue;
      for (const std::size_t node : alternative.nodes) {
        taken_[node] = true;
        device_of_[node] = alternative.device;
      }
      chosen_.push_back(&alternative);
      choose(next + 1, so_far_us + alternative.time_us);
      chosen_.pop_back();
      for (const std::size_t node : alternative.nodes) taken_[node] = false;
    }
  }

  double order_us() const {
    const auto rates = [&](std::size_t node) -> const backends::DeviceRates& {
      return target_.info(device_of_[node]).rates;
    };
    double total_us = rates(0).launch_us + rates(device_of_.size() - 1).sync_us;
    for (std::size_t i = 1; i < device_of_.size(); ++i)
      if (device_of_[i - 1] != device_of_[i]) total_us += rates(i - 1).sync_us + rates(i).launch_us;
    return total_us;
  }

  // The cheapest legal set of forms: those on the way to what somebody wants, each once. Infinite
  // where a way is missing, or where items wait for one another.
  double forms_us() {
    for (const ir::ValueId value : graph_.inputs) root_[value] = interface_form();
    std::ranges::fill(wanted_, 0);
    for (const ir::ValueId value : graph_.outputs)
      wanted_[value] |= std::uint64_t{1} << interface_form();
    for (const Alternative* item : chosen_) {
      for (const auto& [value, form] : item->reads) wanted_[value] |= std::uint64_t{1} << form;
      for (const auto& [value, form] : item->makes) root_[value] = form;
    }
    double total_us = 0;
    for (ir::ValueId value = 0; value < wanted_.size(); ++value) {
      std::uint64_t made = 0;
      for (std::uint64_t rest = wanted_[value]; rest != 0; rest &= rest - 1) {
        const Route& way =
            route(value, root_[value], static_cast<std::size_t>(std::countr_zero(rest)));
        if (!way.exists) return kInfinity;
        made |= way.forms;
      }
      for (; made != 0; made &= made - 1)
        total_us +=
            route(value, root_[value], static_cast<std::size_t>(std::countr_zero(made))).last_us;
    }
    return can_be_ordered() ? total_us : kInfinity;
  }

  bool can_be_ordered() const {
    std::vector<bool> made(graph_.value_count(), false);
    std::vector<const Alternative*> waiting = chosen_;
    while (!waiting.empty()) {
      const auto is_ready = [&](const Alternative* item) {
        return std::ranges::all_of(item->nodes, [&](std::size_t node) {
          return std::ranges::all_of(graph_.nodes()[node]->inputs, [&](ir::ValueId value) {
            const ir::Node* producer = graph_.producer(value);
            return producer == nullptr || made[value] ||
                   std::ranges::find(item->nodes, graph_.position_of(producer->id)) !=
                       item->nodes.end();
          });
        });
      };
      const auto ready = std::ranges::find_if(waiting, is_ready);
      if (ready == waiting.end()) return false;
      for (const auto& [value, form] : (*ready)->makes) made[value] = true;
      waiting.erase(ready);
    }
    return true;
  }

  RandomCase& case_;
  const ir::Graph& graph_;
  const Target& target_;
  std::vector<Form> forms_;
  std::vector<std::vector<Alternative>> alternatives_;  // by their first node
  std::vector<std::vector<Route>> routes_;              // per value, by root and form
  std::vector<const Alternative*> chosen_;
  std::vector<std::uint32_t> device_of_;
  std::vector<bool> taken_;
  std::vector<std::size_t> root_;
  std::vector<std::uint64_t> wanted_;
  double best_us_ = kInfinity;
};

double order_costs_us(const Target& target, const Assignment& assignment) {
  double total_us = 0;
  const auto rates = [&](std::size_t i) -> const backends::DeviceRates& {
    return target.info(assignment.nodes[i].device).rates;
  };
  for (std::size_t i = 0; i < assignment.nodes.size(); ++i) {
    if (i == 0 || assignment.nodes[i - 1].device != assignment.nodes[i].device)
      total_us += rates(i).launch_us;
    if (i + 1 == assignment.nodes.size() ||
        assignment.nodes[i + 1].device != assignment.nodes[i].device)
      total_us += rates(i).sync_us;
  }
  return total_us;
}

// Steps read what is there; every node runs once; prices and order costs sum to the cost of the
// assignment.
void check_lowered(const RandomCase& random_case, const Target& target,
                   const Assignment& assignment, double cost_us, const Lowered& lowered) {
  std::vector<bool> made(lowered.buffers.size(), false);
  for (std::size_t i = 0; i < made.size(); ++i)
    made[i] = lowered.buffers[i].kind == artefact::BufferKind::kInput ||
              lowered.buffers[i].kind == artefact::BufferKind::kConstant;
  std::vector<int> runs(random_case.graph().nodes().size(), 0);
  double total_us = order_costs_us(target, assignment);
  for (const LoweredStep& step : lowered.steps) {
    for (const std::uint32_t buffer : step.inputs) EXPECT_TRUE(made[buffer]) << step.label;
    for (const std::uint32_t buffer : step.outputs) {
      EXPECT_FALSE(made[buffer]) << step.label;
      made[buffer] = true;
    }
    for (const std::size_t node : step.nodes) ++runs[node];
    total_us += step.price_us;
  }
  for (const int count : runs) EXPECT_EQ(count, 1);
  ASSERT_EQ(lowered.output_buffers.size(), random_case.graph().outputs.size());
  for (const std::uint32_t buffer : lowered.output_buffers) {
    EXPECT_TRUE(made[buffer]);
    EXPECT_EQ(lowered.buffers[buffer].kind, artefact::BufferKind::kOutput);
  }
  EXPECT_NEAR(total_us, cost_us, 1e-9 * (1 + cost_us));
}

// What the assignment stage does: solve, and exclude covers that wait for one another.
struct Outcome {
  Result<solve::Solution> solution = fail(ErrorCode::kInternal, "not solved");
  Assignment assignment;
  bool exact = true;  // no cycle of three or more covers was met: those are excluded pair by pair
};

Outcome solve_case(RandomCase& random_case, AssignmentProblem& problem) {
  Outcome outcome;
  while (true) {
    outcome.solution = solve::solve(problem.problem);
    if (!outcome.solution) return outcome;
    outcome.assignment = decode(problem, outcome.solution->choice);
    const auto cyclic = cyclic_covers(random_case.graph(), random_case.choices, outcome.assignment);
    if (cyclic.empty()) return outcome;
    if (cyclic.size() > 2) outcome.exact = false;
    forbid_together(problem, cyclic);
  }
}

TEST(AssignmentProblem, EqualsTheEnumerationOfAllPlans) {
  int with_plan = 0;
  int with_covers_chosen = 0;
  int with_conversions = 0;
  for (const std::uint64_t seed : testing::seeds(1000)) {
    SCOPED_TRACE(testing::seed_text(seed));
    RandomCase random_case(seed);
    Target& target = random_case.devices.target();
    const double expected_us = Enumeration(random_case).run();
    AssignmentProblem problem = build_assignment_problem(random_case.graph(), random_case.choices,
                                                         target, *random_case.conversions);
    ASSERT_TRUE(solve::check_problem(problem.problem));
    const auto greedy =
        greedy_by_priority(random_case.graph(), random_case.choices, target, problem);
    const Outcome outcome = solve_case(random_case, problem);
    if (!std::isfinite(expected_us)) {
      EXPECT_FALSE(outcome.solution)
          << "no plan is legal, found one of cost " << outcome.solution->cost;
      continue;
    }
    if (!outcome.exact) continue;
    ASSERT_TRUE(outcome.solution) << outcome.solution.error().to_string();
    ++with_plan;
    const solve::Solution& solution = *outcome.solution;
    EXPECT_TRUE(solve::validate(problem.problem, solution));
    EXPECT_TRUE(solution.optimal);
    EXPECT_LE(solution.lower_bound, solution.cost);
    ASSERT_NEAR(solution.cost, expected_us, 1e-9 * (1 + expected_us));
    if (greedy) {
      EXPECT_GE(solve::assignment_cost(problem.problem, *greedy),
                solution.cost - 1e-9 * (1 + expected_us));
    }
    with_covers_chosen += std::ranges::any_of(outcome.assignment.cover_option,
                                              [](std::int32_t option) { return option >= 0; })
                              ? 1
                              : 0;
    with_conversions += outcome.assignment.made.empty() ? 0 : 1;
    const Lowered lowered = legalize(random_case.module.methods.front(), random_case.choices,
                                     outcome.assignment, target, *random_case.conversions)
                                .front();
    check_lowered(random_case, target, outcome.assignment, solution.cost, lowered);
    if (HasFailure()) return;  // one seed is enough to look at
  }
  if (testing::seeds(1000).size() < 1000) return;
  // The cases are worth something.
  EXPECT_GT(with_plan, 600);
  EXPECT_GT(with_covers_chosen, 100);
  EXPECT_GT(with_conversions, 300);
}

}  // namespace
}  // namespace tessera::plan
