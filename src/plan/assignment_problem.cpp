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
  Builder(const ir::Graph& graph, const Choices& choices, const Target& target, Conversions& conversions)
      : graph_(graph), choices_(choices), target_(target), conversions_(conversions) {}

  AssignmentProblem build() {
    add_node_variables();
    collect_forms();
    add_form_variables();
    add_cover_pairs();
    add_source_pairs();
    add_reader_pairs();
    add_conversion_pairs();
    add_order_costs();
    return std::move(result_);
  }

 private:
  std::uint32_t add_variable(std::string name, std::vector<double> costs, std::vector<std::string> names) {
    result_.problem.variables.push_back({std::move(name), std::move(costs), std::move(names), {}, {}});
    return static_cast<std::uint32_t>(result_.problem.variables.size() - 1);
  }

  // A table over two variables from a function of their choices; dropped where it is zero throughout.
  template <typename Cost>
  void add_pair(std::uint32_t a, std::uint32_t b, Cost cost) {
    const std::size_t rows = result_.problem.variables[a].costs.size();
    const std::size_t columns = result_.problem.variables[b].costs.size();
    solve::PairCost pair{a, b, std::vector<double>(rows * columns)};
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j) pair.costs[i * columns + j] = cost(i, j);
    if (std::ranges::any_of(pair.costs, [](double entry) { return entry != 0; })) result_.problem.pairs.push_back(std::move(pair));
  }

  [[nodiscard]] Form form_of(const Option& option, const backends::TensorForm& tensor) const {
    return {target_.memory_of[option.device], tensor};
  }
  [[nodiscard]] std::string option_name(const Option& option) const {
    return fmt::format("{}:{}", target_.info(option.device).name, option.candidate.kernel);
  }
  [[nodiscard]] bool is_constant(ir::ValueId value) const { return graph_.value(value).kind == ir::ValueKind::kConstant; }

  void add_node_variables();
  void collect_forms();
  void collect_item_forms(const ItemOptions& entry);
  void add_form_variables();
  void add_cover_pairs();
  struct Made {
    bool decided = false;
    std::optional<Form> form;
  };
  [[nodiscard]] Made made_by(std::size_t i, const NodeChoice& choice, ir::ValueId value) const;
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
};

void Builder::add_node_variables() {
  std::map<const ir::Node*, std::vector<std::size_t>> covers_of;
  for (std::size_t c = 0; c < choices_.covers.size(); ++c)
    if (!choices_.cover_options[c].options.empty())
      for (const ir::Node* node : choices_.cover_options[c].item.nodes) covers_of[node].push_back(c);
  for (std::size_t i = 0; i < choices_.nodes.size(); ++i) position_[choices_.nodes[i].item.nodes.front()->id] = i;
  for (const ir::Cover& cover : choices_.covers) result_.leaders.push_back(position_.at(cover.nodes.front()));
  for (std::size_t i = 0; i < choices_.nodes.size(); ++i) {
    const ItemOptions& entry = choices_.nodes[i];
    const ir::Node* node = entry.item.nodes.front();
    std::vector<NodeChoice> node_choices;
    std::vector<double> costs;
    std::vector<std::string> names;
    const auto add = [&](const NodeChoice& choice, double cost_us, std::string name) {
      node_choices.push_back(choice);
      costs.push_back(cost_us);
      names.push_back(std::move(name));
    };
    const auto add_options = [&](const std::vector<Option>& options, std::int32_t cover, const std::string& suffix) {
      for (std::size_t o = 0; o < options.size(); ++o)
        add({options[o].device, static_cast<std::int32_t>(o), cover}, options[o].price.us, option_name(options[o]) + suffix);
    };
    add_options(entry.options, -1, "");
    for (const std::size_t c : covers_of[node]) {
      const auto& options = choices_.cover_options[c].options;
      if (result_.leaders[c] == i) {
        add_options(options, static_cast<std::int32_t>(c), fmt::format(":cover{}", c));
        continue;
      }
      std::set<std::uint32_t> devices;
      for (const Option& option : options) devices.insert(option.device);
      for (const std::uint32_t device : devices)
        add({device, -1, static_cast<std::int32_t>(c)}, 0, fmt::format("{}:inside{}", target_.info(device).name, c));
    }
    result_.node_variables.push_back(add_variable(node->name, std::move(costs), std::move(names)));
    result_.node_choices.push_back(std::move(node_choices));
  }
}

void Builder::collect_item_forms(const ItemOptions& entry) {
  for (const Option& option : entry.options) {
    for (std::size_t i = 0; i < entry.item.inputs.size(); ++i)
      if (option.candidate.inputs[i] && !is_constant(entry.item.inputs[i]))
        wanted_[entry.item.inputs[i]].insert(form_of(option, *option.candidate.inputs[i]));
    for (std::size_t i = 0; i < entry.item.outputs.size(); ++i)
      produced_[entry.item.outputs[i]].insert(form_of(option, option.candidate.outputs[i]));
  }
}

void Builder::collect_forms() {
  const auto interface_form = [&](ir::ValueId value) { return Form{kHostMemory, {Layout::row_major(), graph_.value(value).type.dtype}}; };
  for (const ItemOptions& entry : choices_.nodes) collect_item_forms(entry);
  for (const ItemOptions& entry : choices_.cover_options) collect_item_forms(entry);
  for (const ir::ValueId value : graph_.inputs) produced_[value].insert(interface_form(value));
  for (const ir::ValueId value : graph_.outputs)
    if (!is_constant(value)) wanted_[value].insert(interface_form(value));
}

// One variable per wanted form and per form that a conversion to it passes through.
void Builder::add_form_variables() {
  for (const auto& [value, forms] : wanted_) {
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
    const bool is_output = std::ranges::find(graph_.outputs, value) != graph_.outputs.end();
    for (const auto& [form, origins] : roots_of) {
      FormVariable variable{value, form, 0, {origins.begin(), origins.end()}, {}};
      const bool must_exist = is_output && form == Form{kHostMemory, {Layout::row_major(), graph_.value(value).type.dtype}};
      std::vector<double> costs = {must_exist ? kForbidden : 0};
      std::vector<std::string> names = {"absent"};
      for (const Form& root : variable.roots) {
        const auto& path = conversions_.path(value, root, form);
        costs.push_back(path->empty() ? 0 : path->back().price.us);
        variable.previous.push_back(path->empty() ? root : path->back().from);
        names.push_back("from " + to_string(root, target_));
      }
      variable.variable = add_variable(fmt::format("{}:{}", graph_.value(value).name, to_string(form, target_)), std::move(costs), std::move(names));
      result_.form_index[{value, form}] = result_.forms.size();
      result_.forms.push_back(std::move(variable));
    }
  }
}

// A node is inside cover c on device d exactly where the leader has chosen c on d.
void Builder::add_cover_pairs() {
  // One table for each pair of leader and member: for all covers that they share.
  std::map<std::pair<std::size_t, std::size_t>, std::set<std::int32_t>> shared;
  for (std::size_t c = 0; c < choices_.covers.size(); ++c)
    for (const ir::Node* node : choices_.cover_options[c].item.nodes)
      if (const std::size_t member = position_[node->id]; !choices_.cover_options[c].options.empty() && member != result_.leaders[c])
        shared[{result_.leaders[c], member}].insert(static_cast<std::int32_t>(c));
  for (const auto& [nodes, covers] : shared) {
    const auto& leader = result_.node_choices[nodes.first];
    const auto& member = result_.node_choices[nodes.second];
    add_pair(result_.node_variables[nodes.first], result_.node_variables[nodes.second], [&](std::size_t a, std::size_t b) {
      const bool leads = covers.contains(leader[a].cover);
      const bool inside = covers.contains(member[b].cover) && member[b].option < 0;
      if (!leads && !inside) return 0.0;
      return leads && inside && leader[a].cover == member[b].cover && leader[a].device == member[b].device ? 0.0 : kForbidden;
    });
  }
}

// What the choice of node `i` makes of a value: the node alone, or the cover that it leads. Nothing where the choice does not say:
// the node is inside of a cover, or its cover does not contain the producer. An internal value of a chosen cover is in no form.
Builder::Made Builder::made_by(std::size_t i, const NodeChoice& choice, ir::ValueId value) const {
  if (choice.option < 0) return {};
  const ItemOptions& entry = choice.cover < 0 ? choices_.nodes[i] : choices_.cover_options[static_cast<std::size_t>(choice.cover)];
  const ir::NodeId producer = graph_.value(value).producer;
  if (std::ranges::none_of(entry.item.nodes, [&](const ir::Node* node) { return node->id == producer; })) return {};
  const Option& option = entry.options[static_cast<std::size_t>(choice.option)];
  const auto output = std::ranges::find(entry.item.outputs, value);
  if (output == entry.item.outputs.end()) return {true, std::nullopt};
  return {true, form_of(option, option.candidate.outputs[static_cast<std::size_t>(output - entry.item.outputs.begin())])};
}

// A form that is present comes from what the producer, or the leader of the cover that holds it, makes.
void Builder::add_source_pairs() {
  for (const FormVariable& form : result_.forms) {
    const ir::Value& value = graph_.value(form.value);
    if (value.kind != ir::ValueKind::kNodeOutput) continue;  // an input is always there, in its one form
    std::set<std::size_t> makers = {position_.at(value.producer)};
    for (std::size_t c = 0; c < choices_.covers.size(); ++c)
      if (!choices_.cover_options[c].options.empty() && std::ranges::find(choices_.covers[c].nodes, value.producer) != choices_.covers[c].nodes.end())
        makers.insert(result_.leaders[c]);
    for (const std::size_t i : makers) {
      add_pair(result_.node_variables[i], form.variable, [&](std::size_t a, std::size_t b) {
        const Made made = made_by(i, result_.node_choices[i][a], form.value);
        return b == 0 || !made.decided || made.form == form.roots[b - 1] ? 0.0 : kForbidden;
      });
    }
  }
}

// The forms that a node's choice reads: its own, or those of the cover that it leads.
void Builder::add_reader_pairs() {
  for (std::size_t i = 0; i < choices_.nodes.size(); ++i) {
    const auto& node_choices = result_.node_choices[i];
    std::map<std::pair<ir::ValueId, Form>, std::set<std::size_t>> readers;  // which choices need what
    for (std::size_t a = 0; a < node_choices.size(); ++a) {
      if (node_choices[a].option < 0) continue;
      const ItemOptions& entry = node_choices[a].cover < 0 ? choices_.nodes[i] : choices_.cover_options[static_cast<std::size_t>(node_choices[a].cover)];
      const Option& option = entry.options[static_cast<std::size_t>(node_choices[a].option)];
      for (std::size_t k = 0; k < entry.item.inputs.size(); ++k)
        if (option.candidate.inputs[k] && !is_constant(entry.item.inputs[k]))
          readers[{entry.item.inputs[k], form_of(option, *option.candidate.inputs[k])}].insert(a);
    }
    for (const auto& [need, choosers] : readers)
      add_pair(result_.node_variables[i], result_.forms[result_.form_index.at(need)].variable,
               [&](std::size_t a, std::size_t b) { return b == 0 && choosers.contains(a) ? kForbidden : 0.0; });
  }
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

// Launch and synchronise between neighbours of the fixed order; the first node launches, the last one synchronises.
void Builder::add_order_costs() {
  auto& variables = result_.problem.variables;
  for (std::size_t i = 0; i < choices_.nodes.size(); ++i) {
    const auto& here = result_.node_choices[i];
    const auto rates = [&](const NodeChoice& choice) -> const backends::DeviceRates& { return target_.info(choice.device).rates; };
    for (std::size_t a = 0; a < here.size(); ++a) {
      if (i == 0) variables[result_.node_variables[i]].costs[a] += rates(here[a]).launch_us;
      if (i + 1 == choices_.nodes.size()) variables[result_.node_variables[i]].costs[a] += rates(here[a]).sync_us;
    }
    if (i + 1 == choices_.nodes.size()) continue;
    const auto& there = result_.node_choices[i + 1];
    add_pair(result_.node_variables[i], result_.node_variables[i + 1], [&](std::size_t a, std::size_t b) {
      return here[a].device == there[b].device ? 0.0 : rates(here[a]).sync_us + rates(there[b]).launch_us;
    });
  }
}

}  // namespace

AssignmentProblem build_assignment_problem(const ir::Graph& graph, const Choices& choices, const Target& target, Conversions& conversions) {
  return Builder(graph, choices, target, conversions).build();
}

void forbid_together(AssignmentProblem& problem, const std::vector<std::uint32_t>& covers) {
  for (std::size_t i = 0; i < covers.size(); ++i) {
    for (std::size_t j = i + 1; j < covers.size(); ++j) {
      const std::size_t a = problem.leaders[covers[i]];
      const std::size_t b = problem.leaders[covers[j]];
      if (a == b) continue;  // one node leads at most one of its covers
      solve::PairCost pair{problem.node_variables[a], problem.node_variables[b], {}};
      for (const NodeChoice& first : problem.node_choices[a])
        for (const NodeChoice& second : problem.node_choices[b])
          pair.costs.push_back(first.cover == static_cast<std::int32_t>(covers[i]) && second.cover == static_cast<std::int32_t>(covers[j]) ? kForbidden : 0);
      problem.problem.pairs.push_back(std::move(pair));
    }
  }
}

Assignment decode(const AssignmentProblem& problem, const std::vector<std::uint32_t>& solution) {
  Assignment assignment;
  assignment.cover_option.assign(problem.leaders.size(), -1);
  for (std::size_t i = 0; i < problem.node_variables.size(); ++i) {
    NodeChoice choice = problem.node_choices[i][solution[problem.node_variables[i]]];
    if (choice.cover >= 0 && choice.option >= 0) {
      assignment.cover_option[static_cast<std::size_t>(choice.cover)] = choice.option;
      choice.option = -1;
    }
    assignment.nodes.push_back(choice);
  }
  for (const FormVariable& form : problem.forms) {
    const std::uint32_t choice = solution[form.variable];
    if (choice == 0 || form.roots[choice - 1] == form.form) continue;
    assignment.made.push_back({form.value, form.form, form.roots[choice - 1]});
  }
  return assignment;
}

}  // namespace tessera::plan
