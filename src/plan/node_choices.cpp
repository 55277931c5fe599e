#include "plan/node_choices.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace tessera::plan {
namespace {

class Lister {
 public:
  Lister(const ir::Graph& graph, const Choices& choices, const Target& target)
      : graph_(graph), choices_(choices), target_(target) {
    for (std::size_t i = 0; i < choices.nodes.size(); ++i)
      position_[choices.nodes[i].item.nodes.front()->id] = i;
  }

  NodeChoices run() {
    result_.nodes.resize(choices_.nodes.size());
    result_.covers.resize(choices_.covers.size());
    for (std::size_t i = 0; i < choices_.nodes.size(); ++i) add_alone(i);
    for (std::size_t c = 0; c < choices_.covers.size(); ++c) add_cover(c);
    return std::move(result_);
  }

 private:
  // A part of a cover's option, before it has a number; equal parts are one choice.
  using Part = std::tuple<std::size_t, std::int64_t, std::uint32_t, std::uint32_t, std::int64_t,
                          std::map<ir::ValueId, Form>, std::map<ir::ValueId, Form>>;

  [[nodiscard]] Form form_of(const Option& option, const backends::TensorForm& tensor) const {
    return {target_.memory_of[option.device], tensor};
  }
  [[nodiscard]] std::string option_name(const Option& option) const {
    return fmt::format("{}:{}", target_.info(option.device).name, option.candidate.kernel);
  }
  [[nodiscard]] double weight_of(std::size_t i) const {
    return graph_.weight_of(choices_.nodes[i].item.nodes.front()->block);
  }

  void add_alone(std::size_t i) {
    const ItemOptions& entry = choices_.nodes[i];
    for (std::size_t o = 0; o < entry.options.size(); ++o) {
      const Option& option = entry.options[o];
      NodeChoice choice;
      choice.device = option.device;
      choice.option = static_cast<std::int32_t>(o);
      choice.cost_us = weight_of(i) * option.price.us + option.price.load_share_us;
      choice.name = option_name(option);
      for (std::size_t k = 0; k < entry.item.inputs.size(); ++k) add_read(choice, entry, option, k);
      for (std::size_t k = 0; k < entry.item.outputs.size(); ++k)
        choice.makes.emplace(entry.item.outputs[k], form_of(option, option.candidate.outputs[k]));
      result_.nodes[i].push_back(std::move(choice));
    }
  }

  void add_read(NodeChoice& choice, const ItemOptions& entry, const Option& option,
                std::size_t input) const {
    const ir::ValueId value = entry.item.inputs[input];
    const auto& tensor = option.candidate.inputs[input];
    if (tensor && graph_.value(value).kind != ir::ValueKind::kConstant)
      choice.reads.emplace(value, form_of(option, *tensor));
  }

  void add_cover(std::size_t c) {
    const ItemOptions& entry = choices_.cover_options[c];
    std::vector<std::size_t> nodes;
    for (const ir::NodeId id : choices_.covers[c].nodes) nodes.push_back(position_.at(id));
    std::vector<std::size_t> reader;  // per input of the item: which node of the cover reads it
    for (const ir::ValueId value : entry.item.inputs) reader.push_back(reader_of(value, nodes));
    for (std::size_t o = 0; o < entry.options.size(); ++o)
      result_.covers[c].push_back(add_chain(c, static_cast<std::int32_t>(o), nodes, reader));
  }

  // The first of the nodes that reads a value; the first of all where none does so itself (what a
  // re-assembly reads).
  [[nodiscard]] std::size_t reader_of(ir::ValueId value,
                                      const std::vector<std::size_t>& nodes) const {
    const auto found = std::ranges::find_if(nodes, [&](std::size_t i) {
      const auto& inputs = choices_.nodes[i].item.inputs;
      return std::ranges::find(inputs, value) != inputs.end();
    });
    return found == nodes.end() ? 0 : static_cast<std::size_t>(found - nodes.begin());
  }

  std::vector<std::uint32_t> add_chain(std::size_t c, std::int32_t o,
                                       const std::vector<std::size_t>& nodes,
                                       const std::vector<std::size_t>& reader) {
    const ItemOptions& entry = choices_.cover_options[c];
    const Option& option = entry.options[static_cast<std::size_t>(o)];
    std::vector<std::uint32_t> chain;
    for (std::size_t k = 0; k < nodes.size(); ++k) {
      NodeChoice choice;
      choice.device = option.device;
      if (k > 0) {
        choice.previous = static_cast<std::int64_t>(nodes[k - 1]);
        choice.previous_choice = chain.back();
      }
      for (std::size_t input = 0; input < reader.size(); ++input)
        if (reader[input] == k) add_read(choice, entry, option, input);
      const auto& outputs = choices_.nodes[nodes[k]].item.outputs;
      for (std::size_t output = 0; output < entry.item.outputs.size(); ++output)
        if (std::ranges::find(outputs, entry.item.outputs[output]) != outputs.end())
          choice.makes.emplace(entry.item.outputs[output],
                               form_of(option, option.candidate.outputs[output]));
      const auto& leader = *choices_.nodes[nodes.front()].item.nodes.front();
      if (k + 1 < nodes.size()) {
        choice.next = static_cast<std::int64_t>(nodes[k + 1]);
        choice.name =
            fmt::format("{}:cover from {}", target_.info(option.device).name, leader.name);
        chain.push_back(shared(nodes[k], std::move(choice)));
      } else {
        choice.option = o;
        choice.cover = static_cast<std::int32_t>(c);
        choice.cost_us = weight_of(nodes.front()) * option.price.us + option.price.load_share_us;
        choice.name = fmt::format("{}:cover{}", option_name(option), c);
        chain.push_back(append(nodes[k], std::move(choice)));
      }
    }
    return chain;
  }

  std::uint32_t append(std::size_t node, NodeChoice choice) {
    result_.nodes[node].push_back(std::move(choice));
    return static_cast<std::uint32_t>(result_.nodes[node].size() - 1);
  }

  // The choice of a part that is no end; options that agree up to it have it in common.
  std::uint32_t shared(std::size_t node, NodeChoice choice) {
    const Part part(node, choice.previous, choice.previous_choice, choice.device, choice.next,
                    choice.reads, choice.makes);
    const auto found = parts_.find(part);
    if (found != parts_.end()) return found->second;
    const std::uint32_t number = append(node, std::move(choice));
    parts_.emplace(part, number);
    return number;
  }

  const ir::Graph& graph_;
  const Choices& choices_;
  const Target& target_;
  std::map<ir::NodeId, std::size_t> position_;
  std::map<Part, std::uint32_t> parts_;
  NodeChoices result_;
};

}  // namespace

NodeChoices list_node_choices(const ir::Graph& graph, const Choices& choices,
                              const Target& target) {
  return Lister(graph, choices, target).run();
}

}  // namespace tessera::plan
