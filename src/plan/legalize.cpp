#include "plan/legalize.h"

#include <algorithm>
#include <set>

namespace tessera::plan {
namespace {

using artefact::BufferKind;
using artefact::Opcode;

// A node alone or a chosen cover, about to become one step.
struct ChosenItem {
  const ItemOptions* entry = nullptr;
  const Option* option = nullptr;
  std::vector<std::size_t> nodes;  // positions in the graph
  std::int32_t cover = -1;
};

std::vector<ChosenItem> chosen_items(const ir::Graph& graph, const Choices& choices,
                                     const Assignment& assignment) {
  std::map<ir::NodeId, std::size_t> position;
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) position[graph.nodes()[i]->id] = i;
  std::vector<ChosenItem> items;
  for (std::size_t i = 0; i < choices.nodes.size(); ++i) {
    const NodeChoice& choice = assignment.nodes[i];
    if (choice.option >= 0)
      items.push_back({&choices.nodes[i],
                       &choices.nodes[i].options[static_cast<std::size_t>(choice.option)],
                       {i},
                       -1});
  }
  for (std::size_t c = 0; c < choices.covers.size(); ++c) {
    if (assignment.cover_option[c] < 0) continue;
    const ItemOptions& entry = choices.cover_options[c];
    ChosenItem item{&entry,
                    &entry.options[static_cast<std::size_t>(assignment.cover_option[c])],
                    {},
                    static_cast<std::int32_t>(c)};
    for (const ir::NodeId id : choices.covers[c].nodes) item.nodes.push_back(position[id]);
    items.push_back(std::move(item));
  }
  return items;
}

// Per item those that read a result of it, each once.
std::vector<std::vector<std::size_t>> readers_of(const std::vector<ChosenItem>& items) {
  std::map<ir::ValueId, std::size_t> maker;
  for (std::size_t i = 0; i < items.size(); ++i)
    for (const ir::ValueId value : items[i].entry->item.outputs) maker[value] = i;
  std::vector<std::vector<std::size_t>> readers(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    std::set<std::size_t> sources;
    for (const ir::ValueId value : items[i].entry->item.inputs)
      if (const auto source = maker.find(value); source != maker.end())
        sources.insert(source->second);
    for (const std::size_t source : sources) readers[source].push_back(i);
  }
  return readers;
}

// A shortest cycle through one item, found breadth first; empty where there is none.
std::vector<std::size_t> cycle_through(const std::vector<std::vector<std::size_t>>& readers,
                                       std::size_t start) {
  std::vector<std::size_t> from(readers.size(), SIZE_MAX);
  std::vector<std::size_t> queue = {start};
  for (std::size_t next = 0; next < queue.size(); ++next) {
    for (const std::size_t reader : readers[queue[next]]) {
      if (from[reader] != SIZE_MAX) continue;
      from[reader] = queue[next];
      queue.push_back(reader);
    }
  }
  std::vector<std::size_t> cycle;
  if (from[start] == SIZE_MAX) return cycle;
  for (std::size_t item = from[start]; item != start; item = from[item]) cycle.push_back(item);
  cycle.push_back(start);
  return cycle;
}

// Stable topological order: among the items that are ready, the one whose last node stands first.
// Fewer items than given: the rest wait for one another.
std::vector<std::size_t> order_items(const std::vector<ChosenItem>& items) {
  const auto readers = readers_of(items);
  std::vector<std::size_t> waiting(items.size(), 0);
  for (const auto& list : readers)
    for (const std::size_t reader : list) ++waiting[reader];
  std::set<std::pair<std::size_t, std::size_t>> ready;  // (place of the last node, item)
  const auto place = [&](std::size_t i) { return std::ranges::max(items[i].nodes); };
  for (std::size_t i = 0; i < items.size(); ++i)
    if (waiting[i] == 0) ready.insert({place(i), i});
  std::vector<std::size_t> order;
  while (!ready.empty()) {
    const std::size_t next = ready.begin()->second;
    ready.erase(ready.begin());
    order.push_back(next);
    for (const std::size_t reader : readers[next])
      if (--waiting[reader] == 0) ready.insert({place(reader), reader});
  }
  return order;
}

class Legalizer {
 public:
  Legalizer(const ir::Method& method, const Assignment& assignment, const Target& target,
            Conversions& conversions)
      : method_(method), graph_(method.graph), target_(target), conversions_(conversions) {
    for (const auto& made : assignment.made) roots_.insert({{made.value, made.form}, made.root});
  }

  Lowered run(const std::vector<ChosenItem>& items, const std::vector<std::size_t>& order) {
    add_inputs();
    for (const std::size_t i : order) add_call(items[i]);
    add_outputs();
    return std::move(lowered_);
  }

 private:
  [[nodiscard]] Form interface_form(ir::ValueId value) const {
    return {kHostMemory, {Layout::row_major(), graph_.value(value).type.dtype}};
  }
  [[nodiscard]] const ir::StatePair* state_with(std::string ir::StatePair::*member,
                                                std::string_view name) const {
    const auto found = std::ranges::find_if(
        method_.states, [&](const ir::StatePair& state) { return state.*member == name; });
    return found == method_.states.end() ? nullptr : &*found;
  }
  [[nodiscard]] bool is_plain_output(ir::ValueId value) const {
    return std::ranges::find(graph_.outputs, value) != graph_.outputs.end() &&
           state_with(&ir::StatePair::output, graph_.value(value).name) == nullptr;
  }

  std::uint32_t add_buffer(ir::ValueId value, const Form& form, BufferKind kind) {
    lowered_.buffers.push_back(
        {.value = value, .form = form, .kind = kind, .constant = {}, .above = {}});
    const auto number = static_cast<std::uint32_t>(lowered_.buffers.size() - 1);
    buffers_.emplace(std::pair(value, form), number);
    return number;
  }

  // The buffer that a step writes a value's form to: the caller's memory where the form is what the
  // interface shows.
  std::uint32_t add_result(ir::ValueId value, const Form& form) {
    return add_buffer(value, form,
                      is_plain_output(value) && form == interface_form(value)
                          ? BufferKind::kOutput
                          : BufferKind::kTemporary);
  }

  // A second buffer of a value in the form of the interface.
  std::uint32_t add_unnamed(ir::ValueId value, BufferKind kind) {
    lowered_.buffers.push_back(
        {.value = value, .form = interface_form(value), .kind = kind, .constant = {}, .above = {}});
    return static_cast<std::uint32_t>(lowered_.buffers.size() - 1);
  }

  void add_inputs();
  std::uint32_t constant_buffer(ir::ValueId value, const Form& form);
  std::uint32_t ensure(ir::ValueId value, const Form& form);
  std::uint32_t convert(ir::ValueId value, const Form& root, const Form& form);
  void add_call(const ChosenItem& item);
  void add_copy(Opcode opcode, std::uint32_t from, std::uint32_t to, std::string label);
  void add_outputs();
  void write_back_states();

  const ir::Method& method_;
  const ir::Graph& graph_;
  const Target& target_;
  Conversions& conversions_;
  std::map<std::pair<ir::ValueId, Form>, Form> roots_;
  std::map<std::pair<ir::ValueId, Form>, std::uint32_t> buffers_;
  Lowered lowered_;
};

void Legalizer::add_inputs() {
  for (const ir::ValueId value : graph_.inputs) {
    const bool is_state = state_with(&ir::StatePair::input, graph_.value(value).name) != nullptr;
    lowered_.input_buffers.push_back(add_buffer(
        value, interface_form(value), is_state ? BufferKind::kState : BufferKind::kInput));
  }
}

std::uint32_t Legalizer::constant_buffer(ir::ValueId value, const Form& form) {
  if (const auto known = buffers_.find({value, form}); known != buffers_.end())
    return known->second;
  const std::uint32_t buffer = add_buffer(value, form, BufferKind::kConstant);
  lowered_.buffers[buffer].constant = graph_.value(value).constant;
  return buffer;
}

// The buffer of a value in a form, with the conversion to it placed here where it is the first
// reader.
std::uint32_t Legalizer::ensure(ir::ValueId value, const Form& form) {
  if (graph_.value(value).kind == ir::ValueKind::kConstant) return constant_buffer(value, form);
  if (const auto known = buffers_.find({value, form}); known != buffers_.end())
    return known->second;
  return convert(value, roots_.at({value, form}), form);
}

// The last step of the path from what the producer made; the steps before it may be there already.
std::uint32_t Legalizer::convert(ir::ValueId value, const Form& root, const Form& form) {
  if (const auto known = buffers_.find({value, form}); known != buffers_.end())
    return known->second;
  const auto& path = conversions_.path(value, root, form);
  TESSERA_CHECK(path && !path->empty());
  const ConversionStep& step = path->back();
  LoweredStep lowered;
  lowered.opcode = step.transfer ? Opcode::kTransfer : Opcode::kConvert;
  lowered.device = step.device;
  lowered.conversion = step;
  lowered.value = value;
  lowered.inputs = {convert(value, root, step.from)};
  lowered.outputs = {add_result(value, form)};
  lowered.label = graph_.value(value).name;
  lowered.price_us = step.price.us;
  lowered_.steps.push_back(std::move(lowered));
  return lowered_.steps.back().outputs.front();
}

void Legalizer::add_call(const ChosenItem& item) {
  const auto& work = item.entry->item;
  const std::uint32_t memory = target_.memory_of[item.option->device];
  LoweredStep step;
  step.device = item.option->device;
  step.item = item.entry;
  step.option = item.option;
  step.nodes = item.nodes;
  step.label = work.nodes.front()->name;
  step.price_us = item.option->price.us;
  for (std::size_t i = 0; i < work.inputs.size(); ++i)
    if (const auto& form = item.option->candidate.inputs[i])
      step.inputs.push_back(ensure(work.inputs[i], {memory, *form}));
  for (std::size_t i = 0; i < work.outputs.size(); ++i)
    step.outputs.push_back(
        add_result(work.outputs[i], {memory, item.option->candidate.outputs[i]}));
  lowered_.steps.push_back(std::move(step));
}

void Legalizer::add_copy(Opcode opcode, std::uint32_t from, std::uint32_t to, std::string label) {
  LoweredStep step;
  step.opcode = opcode;
  // Between buffers in host memory, so it is the host's own work.
  step.device = static_cast<std::uint32_t>(std::ranges::find(target_.memory_of, kHostMemory) -
                                           target_.memory_of.begin());
  step.conversion = {
      lowered_.buffers[from].form, lowered_.buffers[to].form, true, step.device, {}, {}};
  step.value = lowered_.buffers[from].value;
  step.inputs = {from};
  step.outputs = {to};
  step.label = std::move(label);
  lowered_.steps.push_back(std::move(step));
}

// Every output lies in memory of the caller's: what is an input, a constant or another output too
// is copied. New states are written over the old ones last, when nobody reads those any more.
void Legalizer::add_outputs() {
  std::set<std::uint32_t> taken;
  for (const ir::ValueId value : graph_.outputs) {
    const std::string& name = graph_.value(value).name;
    std::uint32_t buffer = ensure(value, interface_form(value));
    if (state_with(&ir::StatePair::output, name) == nullptr &&
        (lowered_.buffers[buffer].kind != BufferKind::kOutput || taken.contains(buffer))) {
      const std::uint32_t copy = add_unnamed(value, BufferKind::kOutput);
      add_copy(Opcode::kTransfer, buffer, copy, name);
      buffer = copy;
    }
    taken.insert(buffer);
    lowered_.output_buffers.push_back(buffer);
  }
  write_back_states();
}

// A state whose new value is another state's old one is put aside first, since that one may be
// written before it is read.
void Legalizer::write_back_states() {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> moves;  // from, to
  for (std::size_t i = 0; i < graph_.outputs.size(); ++i) {
    const ir::ValueId value = graph_.outputs[i];
    const auto* state = state_with(&ir::StatePair::output, graph_.value(value).name);
    if (state == nullptr) continue;
    const auto input = std::ranges::find_if(
        graph_.inputs, [&](ir::ValueId id) { return graph_.value(id).name == state->input; });
    const std::uint32_t old =
        lowered_.input_buffers[static_cast<std::size_t>(input - graph_.inputs.begin())];
    std::uint32_t buffer = lowered_.output_buffers[i];
    if (buffer == old) continue;
    if (lowered_.buffers[buffer].kind == BufferKind::kState) {
      const std::uint32_t aside = add_unnamed(value, BufferKind::kTemporary);
      add_copy(Opcode::kTransfer, buffer, aside, graph_.value(value).name);
      buffer = aside;
    }
    moves.emplace_back(buffer, old);
  }
  for (const auto& [from, to] : moves)
    add_copy(Opcode::kWriteBack, from, to, graph_.value(lowered_.buffers[from].value).name);
}

}  // namespace

std::vector<std::uint32_t> cyclic_covers(const ir::Graph& graph, const Choices& choices,
                                         const Assignment& assignment) {
  const auto items = chosen_items(graph, choices, assignment);
  if (order_items(items).size() == items.size()) return {};
  const auto readers = readers_of(items);
  std::vector<std::size_t> shortest;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto cycle = cycle_through(readers, i);
    if (!cycle.empty() && (shortest.empty() || cycle.size() < shortest.size())) shortest = cycle;
  }
  std::vector<std::uint32_t> covers;
  for (const std::size_t i : shortest)
    if (items[i].cover >= 0) covers.push_back(static_cast<std::uint32_t>(items[i].cover));
  std::ranges::sort(covers);
  return covers;
}

Lowered legalize(const ir::Method& method, const Choices& choices, const Assignment& assignment,
                 const Target& target, Conversions& conversions) {
  const auto items = chosen_items(method.graph, choices, assignment);
  const auto order = order_items(items);
  TESSERA_CHECK(order.size() == items.size());
  return Legalizer(method, assignment, target, conversions).run(items, order);
}

void form_regions(Lowered& lowered) {
  lowered.regions.clear();
  for (std::size_t i = 0; i < lowered.steps.size(); ++i) {
    LoweredStep& step = lowered.steps[i];
    if (step.opcode != Opcode::kCall && step.opcode != Opcode::kConvert) continue;
    if (lowered.regions.empty() || lowered.regions.back().device != step.device)
      lowered.regions.push_back({step.device, {}, 0});
    step.region = static_cast<std::uint32_t>(lowered.regions.size() - 1);
    lowered.regions.back().steps.push_back(i);
    if (step.opcode == Opcode::kCall) lowered.regions.back().compute_us += step.price_us;
  }
}

}  // namespace tessera::plan
