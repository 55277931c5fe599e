#include "plan/assignment_problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

namespace tessera::plan {
namespace {

constexpr double kForbidden = std::numeric_limits<double>::infinity();

// Builds the problem in steps that each add variables or pairs; the order fixes their numbers.
class Builder {
 public:
  Builder(const ir::Graph& graph, const Choices& choices, const Target& target,
          Conversions& conversions)
      : graph_(graph), choices_(choices), target_(target), conversions_(conversions) {}

  AssignmentProblem build() {
    add_node_variables();
    collect_forms();
    add_direct_values();
    add_form_variables();
    add_cover_pairs();
    add_source_pairs();
    add_reader_pairs();
    add_conversion_pairs();
    add_order_costs();
    return std::move(result_);
  }

 private:
  std::uint32_t add_variable(std::string name, std::vector<double> costs,
                             std::vector<std::string> names) {
    result_.problem.variables.push_back(
        {std::move(name), std::move(costs), std::move(names), {}, {}});
    return static_cast<std::uint32_t>(result_.problem.variables.size() - 1);
  }

  // A table over two variables from a function of their choices; dropped where it is zero
  // throughout.
  template <typename Cost>
  void add_pair(std::uint32_t a, std::uint32_t b, Cost cost) {
    const std::size_t rows = result_.problem.variables[a].costs.size();
    const std::size_t columns = result_.problem.variables[b].costs.size();
    solve::PairCost pair{a, b, std::vector<double>(rows * columns)};
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j) pair.costs[i * columns + j] = cost(i, j);
    if (std::ranges::any_of(pair.costs, [](double entry) { return entry != 0; }))
      result_.problem.pairs.push_back(std::move(pair));
  }

  [[nodiscard]] bool is_constant(ir::ValueId value) const {
    return graph_.value(value).kind == ir::ValueKind::kConstant;
  }

  void add_node_variables();
  void collect_forms();
  void add_direct_values();
  void add_direct_costs(const DirectValue& direct);
  [[nodiscard]] double conversion_us(ir::ValueId value, const std::optional<Form>& root,
                                     const std::optional<Form>& need);
  [[nodiscard]] bool is_output(ir::ValueId value) const {
    return std::ranges::find(graph_.outputs, value) != graph_.outputs.end();
  }
  [[nodiscard]] Form interface_form(ir::ValueId value) const {
    return {kHostMemory, {Layout::row_major(), graph_.value(value).type.dtype}};
  }
  // Conversions stand where the value is made: outside of the loop for what a loop only reads.
  [[nodiscard]] double weight_of(ir::ValueId value) const {
    return graph_.weight_of(graph_.block_of(value));
  }
  void add_form_variables();
  void add_cover_pairs();
  void add_source_pairs();
  void add_reader_pairs();
  void add_conversion_pairs();
  void add_order_costs();

  const ir::Graph& graph_;
  const Choices& choices_;
  const Target& target_;
  Conversions& conversions_;
  AssignmentProblem result_;
  std::map<ir::NodeId, std::size_t> position_;
  std::map<ir::ValueId, std::set<Form>> wanted_;
  std::map<ir::ValueId, std::set<Form>> produced_;
  // Per value, per node that may read it, per choice: the form that it wants.
  std::map<ir::ValueId, std::map<std::size_t, std::vector<std::optional<Form>>>> needs_;
};

// The form of a value among those that a choice reads or makes; nothing where it is not there.
std::optional<Form> form_in(const std::map<ir::ValueId, Form>& forms, ir::ValueId value) {
  const auto found = forms.find(value);
  return found == forms.end() ? std::nullopt : std::optional(found->second);
}

void Builder::add_node_variables() {
  result_.node_choices = list_node_choices(graph_, choices_, target_);
  for (std::size_t i = 0; i < choices_.nodes.size(); ++i) {
    const ir::Node& node = *choices_.nodes[i].item.nodes.front();
    position_[node.id] = i;
    std::vector<double> costs;
    std::vector<std::string> names;
    for (const NodeChoice& choice : result_.node_choices.nodes[i]) {
      costs.push_back(choice.cost_us);
      names.push_back(choice.name);
    }
    result_.node_variables.push_back(add_variable(node.name, std::move(costs), std::move(names)));
  }
}

void Builder::collect_forms() {
  for (std::size_t i = 0; i < choices_.nodes.size(); ++i) {
    const auto& node_choices = result_.node_choices.nodes[i];
    for (std::size_t a = 0; a < node_choices.size(); ++a) {
      for (const auto& [value, form] : node_choices[a].makes) produced_[value].insert(form);
      for (const auto& [value, form] : node_choices[a].reads) {
        wanted_[value].insert(form);
        auto& needs = needs_[value][i];
        needs.resize(node_choices.size());
        needs[a] = form;
      }
    }
  }
  for (const ir::ValueId value : graph_.inputs) produced_[value].insert(interface_form(value));
  for (const ir::Block& block : graph_.blocks)
    for (const ir::ValueId value : block.arguments) produced_[value].insert(interface_form(value));
  for (const ir::ValueId value : graph_.outputs)
    if (!is_constant(value)) wanted_[value].insert(interface_form(value));
}

double Builder::conversion_us(ir::ValueId value, const std::optional<Form>& root,
                              const std::optional<Form>& need) {
  if (!need) return 0;
  if (!root) return kForbidden;
  const auto& path = conversions_.path(value, *root, *need);
  if (!path) return kForbidden;
  double total_us = 0;
  for (const ConversionStep& step : *path) total_us += step.price.us;
  return weight_of(value) * total_us;
}

void Builder::add_direct_values() {
  for (const auto& [value, forms] : wanted_) {
    const auto& readers = needs_[value];
    if (readers.size() + (is_output(value) ? 1 : 0) != 1) continue;
    DirectValue direct{value, -1, -1, {interface_form(value)}, {interface_form(value)}};
    if (graph_.value(value).kind == ir::ValueKind::kNodeOutput) {
      const std::size_t producer = position_.at(graph_.value(value).producer);
      direct.producer = static_cast<std::int64_t>(producer);
      direct.roots.clear();
      for (const NodeChoice& choice : result_.node_choices.nodes[producer])
        direct.roots.push_back(form_in(choice.makes, value));
    }
    if (!readers.empty()) {
      direct.reader = static_cast<std::int64_t>(readers.begin()->first);
      direct.needs = readers.begin()->second;
    }
    add_direct_costs(direct);
    result_.direct.push_back(std::move(direct));
  }
}

void Builder::add_direct_costs(const DirectValue& direct) {
  const auto cost = [&](std::size_t a, std::size_t b) {
    return conversion_us(direct.value, direct.roots[a], direct.needs[b]);
  };
  const auto variable = [&](std::int64_t position) {
    return result_.node_variables[static_cast<std::size_t>(position)];
  };
  if (direct.producer >= 0 && direct.reader >= 0)
    return add_pair(variable(direct.producer), variable(direct.reader), cost);
  if (direct.producer < 0 && direct.reader < 0)
    return;  // an input that is an output: copied, whatever is chosen
  auto& costs = result_.problem.variables[variable(std::max(direct.producer, direct.reader))].costs;
  for (std::size_t k = 0; k < costs.size(); ++k)
    costs[k] += direct.producer >= 0 ? cost(k, 0) : cost(0, k);
}

// One variable per wanted form and per form that a conversion to it passes through.
void Builder::add_form_variables() {
  std::set<ir::ValueId> direct;
  for (const DirectValue& entry : result_.direct) direct.insert(entry.value);
  for (const auto& [value, forms] : wanted_) {
    if (direct.contains(value)) continue;
    const auto& roots = produced_[value];
    std::map<Form, std::set<Form>> roots_of;  // which produced forms each variable can come from
    for (const Form& form : forms) {
      roots_of[form];
      for (const Form& root : roots) {
        const auto& path = conversions_.path(value, root, form);
        if (!path) continue;
        roots_of[form].insert(root);
        for (const ConversionStep& step : *path)
          if (step.from != root) roots_of[step.from].insert(root);
      }
    }
    for (const auto& [form, origins] : roots_of) {
      FormVariable variable{value, form, 0, {origins.begin(), origins.end()}, {}};
      const bool must_exist = is_output(value) && form == interface_form(value);
      std::vector<double> costs = {must_exist ? kForbidden : 0};
      std::vector<std::string> names = {"absent"};
      for (const Form& root : variable.roots) {
        const auto& path = conversions_.path(value, root, form);
        costs.push_back(path->empty() ? 0 : weight_of(value) * path->back().price.us);
        variable.previous.push_back(path->empty() ? root : path->back().from);
        names.push_back("from " + to_string(root, target_));
      }
      variable.variable =
          add_variable(fmt::format("{}:{}", graph_.value(value).name, to_string(form, target_)),
                       std::move(costs), std::move(names));
      result_.form_index[{value, form}] = result_.forms.size();
      result_.forms.push_back(std::move(variable));
    }
  }
}

// Neighbours in the chain of a cover: each names the other.
void Builder::add_cover_pairs() {
  const auto& nodes = result_.node_choices.nodes;
  std::set<std::pair<std::size_t, std::size_t>> links;
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (const NodeChoice& choice : nodes[i])
      if (choice.previous >= 0) links.emplace(choice.previous, i);
  for (const auto& [before, after] : links) {
    add_pair(result_.node_variables[before], result_.node_variables[after],
             [&, i = before, j = after](std::size_t a, std::size_t b) {
               const bool leads_here = nodes[i][a].next == static_cast<std::int64_t>(j);
               const bool comes_from = nodes[j][b].previous == static_cast<std::int64_t>(i);
               if (!leads_here && !comes_from) return 0.0;
               return leads_here && comes_from && nodes[j][b].previous_choice == a ? 0.0
                                                                                   : kForbidden;
             });
  }
}

// A form that is present comes from what the producer makes.
void Builder::add_source_pairs() {
  for (const FormVariable& form : result_.forms) {
    const ir::Value& value = graph_.value(form.value);
    if (value.kind != ir::ValueKind::kNodeOutput)
      continue;  // an input is always there, in its one form
    const std::size_t i = position_.at(value.producer);
    add_pair(result_.node_variables[i], form.variable, [&](std::size_t a, std::size_t b) {
      const auto& makes = result_.node_choices.nodes[i][a].makes;
      return b == 0 || form_in(makes, form.value) == form.roots[b - 1] ? 0.0 : kForbidden;
    });
  }
}

// The forms that a node's choice reads are present.
void Builder::add_reader_pairs() {
  for (const FormVariable& form : result_.forms)
    for (const auto& reader : needs_[form.value])
      add_pair(result_.node_variables[reader.first], form.variable,
               [&, &needs = reader.second](std::size_t a, std::size_t b) {
                 return b == 0 && needs[a] == form.form ? kForbidden : 0.0;
               });
}

// A converted form needs the step before it, from the same root.
void Builder::add_conversion_pairs() {
  for (const FormVariable& form : result_.forms) {
    std::set<Form> between;
    for (std::size_t k = 0; k < form.roots.size(); ++k)
      if (form.previous[k] != form.roots[k]) between.insert(form.previous[k]);
    for (const Form& step : between) {
      const FormVariable& before = result_.forms[result_.form_index.at({form.value, step})];
      add_pair(form.variable, before.variable, [&](std::size_t a, std::size_t b) {
        if (a == 0 || form.previous[a - 1] != step || form.roots[a - 1] == step) return 0.0;
        return b != 0 && before.roots[b - 1] == form.roots[a - 1] ? 0.0 : kForbidden;
      });
    }
  }
}

// Launch and synchronise between neighbours of the fixed order; the first node launches, the last
// one synchronises.
void Builder::add_order_costs() {
  auto& variables = result_.problem.variables;
  for (std::size_t i = 0; i < choices_.nodes.size(); ++i) {
    const auto& here = result_.node_choices.nodes[i];
    const auto rates = [&](const NodeChoice& choice) -> const backends::DeviceRates& {
      return target_.info(choice.device).rates;
    };
    const auto weight = [&](std::size_t node) {
      return graph_.weight_of(choices_.nodes[node].item.nodes.front()->block);
    };
    for (std::size_t a = 0; a < here.size(); ++a) {
      auto& costs = variables[result_.node_variables[i]].costs;
      if (i == 0) costs[a] += weight(i) * rates(here[a]).launch_us;
      if (i + 1 == choices_.nodes.size()) costs[a] += weight(i) * rates(here[a]).sync_us;
    }
    if (i + 1 == choices_.nodes.size()) continue;
    const auto& there = result_.node_choices.nodes[i + 1];
    const double crossing_weight = std::max(weight(i), weight(i + 1));
    add_pair(result_.node_variables[i], result_.node_variables[i + 1],
             [&](std::size_t a, std::size_t b) {
               return here[a].device == there[b].device
                          ? 0.0
                          : crossing_weight * (rates(here[a]).sync_us + rates(there[b]).launch_us);
             });
  }
}

}  // namespace

AssignmentProblem build_assignment_problem(const ir::Graph& graph, const Choices& choices,
                                           const Target& target, Conversions& conversions) {
  return Builder(graph, choices, target, conversions).build();
}

void forbid_together(AssignmentProblem& problem, const std::vector<std::uint32_t>& covers) {
  const auto& nodes = problem.node_choices.nodes;
  const auto end_of = [&](std::uint32_t cover) {  // the node where it ends
    return static_cast<std::size_t>(
        std::ranges::find_if(nodes,
                             [&](const auto& node_choices) {
                               return std::ranges::find(node_choices,
                                                        static_cast<std::int32_t>(cover),
                                                        &NodeChoice::cover) != node_choices.end();
                             }) -
        nodes.begin());
  };
  for (std::size_t i = 0; i < covers.size(); ++i) {
    for (std::size_t j = i + 1; j < covers.size(); ++j) {
      const std::size_t a = end_of(covers[i]);
      const std::size_t b = end_of(covers[j]);
      if (a == b) continue;  // one cover at most ends in a node
      solve::PairCost pair{problem.node_variables[a], problem.node_variables[b], {}};
      for (const NodeChoice& first : nodes[a])
        for (const NodeChoice& second : nodes[b])
          pair.costs.push_back(first.cover == static_cast<std::int32_t>(covers[i]) &&
                                       second.cover == static_cast<std::int32_t>(covers[j])
                                   ? kForbidden
                                   : 0);
      problem.problem.pairs.push_back(std::move(pair));
    }
  }
}

Assignment decode(const AssignmentProblem& problem, const std::vector<std::uint32_t>& solution) {
  Assignment assignment;
  assignment.cover_option.assign(problem.node_choices.covers.size(), -1);
  const auto choice_of = [&](std::size_t i) -> const NodeChoice& {
    return problem.node_choices.nodes[i][solution[problem.node_variables[i]]];
  };
  const std::size_t count = problem.node_variables.size();
  for (std::size_t i = 0; i < count; ++i) {
    const NodeChoice& choice = choice_of(i);
    assignment.nodes.push_back({choice.device, choice.cover < 0 ? choice.option : -1, -1});
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::int32_t cover = choice_of(i).cover;
    if (cover < 0) continue;
    assignment.cover_option[static_cast<std::size_t>(cover)] = choice_of(i).option;
    for (auto at = static_cast<std::int64_t>(i); at >= 0;
         at = choice_of(static_cast<std::size_t>(at)).previous)
      assignment.nodes[static_cast<std::size_t>(at)].cover = cover;
  }
  const auto chosen = [&](std::int64_t position) {
    return position < 0 ? 0 : solution[problem.node_variables[static_cast<std::size_t>(position)]];
  };
  for (const DirectValue& direct : problem.direct) {
    const auto& root = direct.roots[chosen(direct.producer)];
    const auto& need = direct.needs[chosen(direct.reader)];
    if (root && need && *root != *need) assignment.made.push_back({direct.value, *need, *root});
  }
  for (const FormVariable& form : problem.forms) {
    const std::uint32_t choice = solution[form.variable];
    if (choice == 0 || form.roots[choice - 1] == form.form) continue;
    assignment.made.push_back({form.value, form.form, form.roots[choice - 1]});
  }
  return assignment;
}

}  // namespace tessera::plan
