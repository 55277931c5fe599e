#include <algorithm>
#include <cmath>
#include <set>

#include "plan/assignment_problem.h"
#include "solve/validate.h"

namespace tessera::plan {
namespace {

// Accelerators in the user's order, then the CPU, then the reference.
std::vector<std::uint32_t> priority(const Target& target) {
  std::vector<std::uint32_t> devices(target.device_count());
  for (std::uint32_t i = 0; i < devices.size(); ++i) devices[i] = i;
  std::ranges::stable_sort(devices, {}, [&](std::uint32_t device) {
    return target.memory_of[device] != kHostMemory      ? 0
           : target.info(device).backend == "reference" ? 2
                                                        : 1;
  });
  return devices;
}

// The cheapest option of an item on one device, or -1.
std::int32_t cheapest(const ItemOptions& entry, std::uint32_t device) {
  std::int32_t best = -1;
  for (std::size_t o = 0; o < entry.options.size(); ++o)
    if (entry.options[o].device == device &&
        (best < 0 ||
         entry.options[o].price.us < entry.options[static_cast<std::size_t>(best)].price.us))
      best = static_cast<std::int32_t>(o);
  return best;
}

class Greedy {
 public:
  Greedy(const ir::Graph& graph, const Choices& choices, const Target& target,
         const AssignmentProblem& problem)
      : graph_(graph),
        choices_(choices),
        target_(target),
        problem_(problem),
        claimed_(choices.nodes.size(), false) {
    solution_.assign(problem.problem.variables.size(), 0);
    for (std::size_t i = 0; i < choices.nodes.size(); ++i)
      position_[choices.nodes[i].item.nodes.front()->id] = i;
  }

  std::optional<std::vector<std::uint32_t>> run() {
    for (const std::uint32_t device : priority(target_)) claim(device);
    if (std::ranges::find(claimed_, false) != claimed_.end()) return std::nullopt;
    if (!make_forms() || !std::isfinite(solve::assignment_cost(problem_.problem, solution_)))
      return std::nullopt;
    return std::move(solution_);
  }

 private:
  void claim(std::uint32_t device);
  void note_item(const ItemOptions& entry, const Option& option);
  bool make_forms();
  bool make_form(ir::ValueId value, const Form& form);
  // Priced between producer and reader: it has no variables, and an impossible conversion costs
  // infinity.
  [[nodiscard]] bool is_direct(ir::ValueId value) const {
    return std::ranges::find(problem_.direct, value, &DirectValue::value) != problem_.direct.end();
  }

  const ir::Graph& graph_;
  const Choices& choices_;
  const Target& target_;
  const AssignmentProblem& problem_;
  std::vector<bool> claimed_;
  std::vector<std::uint32_t> solution_;
  std::map<ir::NodeId, std::size_t> position_;
  std::map<ir::ValueId, Form> made_;
  std::set<std::pair<ir::ValueId, Form>> needed_;
};

void Greedy::note_item(const ItemOptions& entry, const Option& option) {
  const std::uint32_t memory = target_.memory_of[option.device];
  for (std::size_t i = 0; i < entry.item.inputs.size(); ++i)
    if (option.candidate.inputs[i] &&
        graph_.value(entry.item.inputs[i]).kind != ir::ValueKind::kConstant)
      needed_.insert({entry.item.inputs[i], {memory, *option.candidate.inputs[i]}});
  for (std::size_t i = 0; i < entry.item.outputs.size(); ++i)
    made_[entry.item.outputs[i]] = {memory, option.candidate.outputs[i]};
}

// Everything that the device takes and nobody has: the largest covers first, then single nodes.
void Greedy::claim(std::uint32_t device) {
  std::vector<std::size_t> covers(choices_.covers.size());
  for (std::size_t c = 0; c < covers.size(); ++c) covers[c] = c;
  std::ranges::stable_sort(covers, std::greater<>(),
                           [&](std::size_t c) { return choices_.covers[c].nodes.size(); });
  for (const std::size_t c : covers) {
    const ItemOptions& entry = choices_.cover_options[c];
    const std::int32_t option = cheapest(entry, device);
    const auto is_claimed = [&](ir::NodeId id) { return claimed_[position_[id]]; };
    if (option < 0 || std::ranges::any_of(choices_.covers[c].nodes, is_claimed)) continue;
    const auto& chain = problem_.node_choices.covers[c][static_cast<std::size_t>(option)];
    for (std::size_t k = 0; k < chain.size(); ++k) {
      const std::size_t i = position_[choices_.covers[c].nodes[k]];
      claimed_[i] = true;
      solution_[problem_.node_variables[i]] = chain[k];
    }
    note_item(entry, entry.options[static_cast<std::size_t>(option)]);
  }
  for (std::size_t i = 0; i < choices_.nodes.size(); ++i) {
    const std::int32_t option = claimed_[i] ? -1 : cheapest(choices_.nodes[i], device);
    if (option < 0) continue;
    claimed_[i] = true;
    solution_[problem_.node_variables[i]] = static_cast<std::uint32_t>(option);
    note_item(choices_.nodes[i], choices_.nodes[i].options[static_cast<std::size_t>(option)]);
  }
}

// Sets the variable of a form, and of the steps before it. A form without a variable is what the
// producer makes anyway.
bool Greedy::make_form(ir::ValueId value, const Form& form) {
  const Form& root = made_.at(value);
  const auto found = problem_.form_index.find({value, form});
  if (found == problem_.form_index.end()) return root == form || is_direct(value);
  const FormVariable& variable = problem_.forms[found->second];
  const auto choice =
      static_cast<std::size_t>(std::ranges::find(variable.roots, root) - variable.roots.begin());
  if (choice == variable.roots.size()) return false;
  solution_[variable.variable] = static_cast<std::uint32_t>(choice) + 1;
  return variable.previous[choice] == root || make_form(value, variable.previous[choice]);
}

bool Greedy::make_forms() {
  const auto interface_form = [&](ir::ValueId value) {
    return Form{kHostMemory, {Layout::row_major(), graph_.value(value).type.dtype}};
  };
  for (const ir::ValueId value : graph_.inputs) made_[value] = interface_form(value);
  for (const ir::Block& block : graph_.blocks)
    for (const ir::ValueId value : block.arguments) made_[value] = interface_form(value);
  for (const ir::ValueId value : graph_.outputs)
    if (graph_.value(value).kind != ir::ValueKind::kConstant)
      needed_.insert({value, interface_form(value)});
  return std::ranges::all_of(
      needed_, [&](const auto& entry) { return make_form(entry.first, entry.second); });
}

}  // namespace

std::optional<std::vector<std::uint32_t>> greedy_by_priority(const ir::Graph& graph,
                                                             const Choices& choices,
                                                             const Target& target,
                                                             const AssignmentProblem& problem) {
  return Greedy(graph, choices, target, problem).run();
}

}  // namespace tessera::plan
