#include "plans/alternatives.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/glob.h"
#include "compiler/plan_text.h"

namespace tessera::bench {
namespace {

using Random = std::mt19937_64;

constexpr std::string_view kLastResort = "reference";
constexpr int kFruitlessDraws = 100;

// In [0, 1).
double draw_share(Random& random) {
  constexpr int kBits = 53;
  return std::ldexp(static_cast<double>(random() >> (64 - kBits)), -kBits);
}

std::uint32_t pick(const std::vector<std::uint32_t>& choices, Random& random) {
  return choices[random() % choices.size()];
}

// Every way to choose for variables[depth...] that propagation lets pass; false where there are
// more than `limit`.
bool combine(const Domains& left, const std::vector<std::uint32_t>& variables, std::size_t depth,
             std::size_t limit, std::vector<Domains>& found) {
  if (depth == variables.size()) {
    found.push_back(left);
    return found.size() <= limit;
  }
  return std::ranges::all_of(left.choices(variables[depth]), [&](std::uint32_t choice) {
    Domains forced = left;
    return !forced.force({variables[depth], choice}) ||
           combine(forced, variables, depth + 1, limit, found);
  });
}

// Forces a choice on each variable with the probability `share`, on one at least; what contradicts
// those before it is left free.
void force_random(Domains& left, std::vector<std::uint32_t> variables, double share,
                  Random& random) {
  std::ranges::shuffle(variables, random);
  bool any = false;
  for (const std::uint32_t variable : variables) {
    if (left.choices(variable).size() < 2) continue;
    if (any && draw_share(random) >= share) continue;
    Domains forced = left;
    if (!forced.force({variable, pick(left.choices(variable), random)})) continue;
    left = std::move(forced);
    any = true;
  }
}

// What an assignment does with a node, in words; a cover is named by its nodes.
std::string describe(const compiler::PlanSpace& space, const plan::Assignment& assignment,
                     std::size_t node) {
  const plan::Choices& choices = space.planned().choices;
  const plan::ChosenNode& chosen = assignment.nodes[node];
  const auto text = [&](const plan::ItemOptions& item, std::int32_t option) {
    return compiler::option_text(item.options[static_cast<std::size_t>(option)], space.target(),
                                 true);
  };
  if (chosen.cover < 0) return text(choices.nodes[node], chosen.option);
  const auto cover = static_cast<std::size_t>(chosen.cover);
  std::string names;
  for (const ir::NodeId id : choices.covers[cover].nodes)
    names += (names.empty() ? "" : " + ") + space.graph().find_node(id)->name;
  return text(choices.cover_options[cover], assignment.cover_option[cover]) + " for " + names;
}

}  // namespace

Alternatives::Alternatives(const compiler::PlanSpace& space, double last_resort_us)
    : space_(space),
      problem_(space.planned().problem),
      chosen_(space.planned().solution.choice),
      last_resort_us_(last_resort_us) {}

Result<std::vector<std::size_t>> Alternatives::find_nodes(
    const std::vector<std::string>& globs) const {
  const auto& nodes = space_.graph().nodes();
  std::set<std::size_t> found;
  for (const std::string& glob : globs) {
    bool any = false;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (!glob_matches(glob, nodes[i]->name)) continue;
      any = true;
      found.insert(i);
    }
    if (!any)
      return fail(ErrorCode::kNotFound, fmt::format("no node of the plan matches '{}'", glob));
  }
  if (found.size() > kMaxSubgraph)
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("expected at most {} nodes, found {}", kMaxSubgraph, found.size()));
  return std::vector<std::size_t>(found.begin(), found.end());
}

Domains Alternatives::domains(double last_resort_us) const {
  Domains left(problem_.problem);
  const plan::Target& target = space_.target();
  const auto is_last_resort = [&](const plan::NodeChoice& choice) {
    return target.info(choice.device).name == kLastResort;
  };
  for (std::size_t i = 0; i < problem_.node_variables.size(); ++i) {
    const auto& choices = problem_.node_choices.nodes[i];
    for (std::uint32_t k = 0; k < choices.size(); ++k) {
      if (!is_last_resort(choices[k]) || choices[k].cost_us <= last_resort_us) continue;
      Domains without = left;
      if (without.forbid({problem_.node_variables[i], k})) left = std::move(without);
    }
  }
  return left;
}

Alternatives::Nodes Alternatives::nodes_of(const std::vector<std::uint32_t>& choice) const {
  Nodes nodes;
  for (const std::uint32_t variable : problem_.node_variables) nodes.push_back(choice[variable]);
  return nodes;
}

Status Alternatives::add(const Domains& left, std::set<Nodes>& seen, Group& group) const {
  plan::AssignmentProblem problem = problem_;
  left.restrict(problem.problem);
  auto solution = space_.solve(std::move(problem));
  if (!solution && solution.error().code == ErrorCode::kFailedPrecondition) {
    ++group.impossible;
    return {};
  }
  if (!solution) return tl::unexpected(std::move(solution).error());
  if (seen.insert(nodes_of(solution->choice)).second)
    group.plans.push_back({std::move(solution->choice), solution->cost});
  else
    ++group.repeated;
  return {};
}

Result<Group> Alternatives::combinations(const std::vector<std::size_t>& nodes,
                                         std::size_t limit) const {
  const Domains left = domains(last_resort_us_);
  Group group;
  group.name = "subgraph";
  group.tried = 1;
  std::vector<std::uint32_t> variables;
  for (const std::size_t node : nodes) {
    variables.push_back(problem_.node_variables[node]);
    group.tried *= static_cast<double>(left.choices(variables.back()).size());
  }
  std::vector<Domains> found;
  if (!combine(left, variables, 0, limit, found))
    return fail(ErrorCode::kResourceExhausted,
                fmt::format("{} nodes have more than {} possible combinations of choices: name "
                            "fewer nodes, so that all can be measured",
                            nodes.size(), limit));
  group.impossible = group.tried - static_cast<double>(found.size());
  std::set<Nodes> seen = {nodes_of(chosen_)};
  for (const Domains& forced : found) TESSERA_TRY(add(forced, seen, group));
  return group;
}

Result<Group> Alternatives::random_plans(std::size_t count, std::uint64_t seed) const {
  const Domains left = domains(0);
  Group group;
  group.name = "random";
  Random random(seed);
  std::set<Nodes> seen = {nodes_of(chosen_)};
  const auto& variables = problem_.node_variables;
  for (int fruitless = 0; group.plans.size() < count && fruitless < kFruitlessDraws; ++fruitless) {
    Domains forced = left;
    const double share = std::pow(static_cast<double>(variables.size()), -draw_share(random));
    force_random(forced, variables, share, random);
    ++group.tried;
    const std::size_t before = group.plans.size();
    TESSERA_TRY(add(forced, seen, group));
    if (group.plans.size() > before) fruitless = 0;
  }
  return group;
}

Result<Group> Alternatives::neighbours(std::size_t count, std::uint64_t seed) const {
  const Domains left = domains(last_resort_us_);
  Group group;
  group.name = "one-step";
  std::vector<Forced> changes;
  for (const std::uint32_t variable : problem_.node_variables)
    for (const std::uint32_t choice : left.choices(variable))
      if (choice != chosen_[variable]) changes.push_back({variable, choice});
  Random random(seed);
  std::ranges::shuffle(changes, random);
  std::set<Nodes> seen = {nodes_of(chosen_)};
  for (const Forced& change : changes) {
    if (group.plans.size() == count) break;
    ++group.tried;
    Domains forced = left;
    if (!forced.force(change)) {
      ++group.impossible;
      continue;
    }
    TESSERA_TRY(add(forced, seen, group));
  }
  return group;
}

std::vector<NodeDifference> Alternatives::differences(const Alternative& plan) const {
  const plan::Assignment chosen = plan::decode(problem_, chosen_);
  const plan::Assignment other = plan::decode(problem_, plan.choice);
  std::vector<NodeDifference> result;
  for (std::size_t i = 0; i < problem_.node_variables.size(); ++i) {
    const std::uint32_t variable = problem_.node_variables[i];
    if (plan.choice[variable] == chosen_[variable]) continue;
    result.push_back(
        {space_.graph().nodes()[i]->name, describe(space_, chosen, i), describe(space_, other, i)});
  }
  return result;
}

}  // namespace tessera::bench
