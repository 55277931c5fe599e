#include "plan/legalize.h"

#include <algorithm>
#include <set>

#include "ir/flatten.h"
#include "ir/late_sizes.h"

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
    const ChosenNode& choice = assignment.nodes[i];
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

// What the legalizers of a graph and of its bodies share.
struct Legalization {
  const ir::Method& method;
  const Target& target;
  Conversions& conversions;
  ir::LateSizes late;
  std::vector<std::vector<ChosenItem>> items;  // per block, in execution order
  std::map<std::pair<ir::ValueId, Form>, Form> roots;
  std::vector<Lowered> lowered;
};

class Legalizer {
 public:
  Legalizer(Legalization& shared, std::uint32_t block, Legalizer* parent)
      : shared_(shared),
        method_(shared.method),
        graph_(shared.method.graph),
        block_(block),
        parent_(parent),
        number_(static_cast<std::uint32_t>(shared.lowered.size())) {
    shared.lowered.emplace_back();
    lowered_.block = block;
  }

  void run() {
    add_inputs();
    for (const ChosenItem& item : shared_.items[block_]) {
      if (item.entry->item.nodes.front()->op->structure == ops::Structure::kControlFlow)
        add_control(item);
      else
        add_call(item);
    }
    add_outputs();
    shared_.lowered[number_] = std::move(lowered_);
  }
  [[nodiscard]] std::uint32_t number() const { return number_; }
  // Buffers of the parent, for the inputs behind the arguments.
  [[nodiscard]] const std::vector<std::uint32_t>& captures() const { return captures_; }

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
  [[nodiscard]] const std::vector<ir::ValueId>& results() const {
    return block_ == 0 ? graph_.outputs : graph_.blocks[block_].results;
  }
  [[nodiscard]] bool is_plain_output(ir::ValueId value) const {
    if (block_ != 0) return std::ranges::find(results(), value) != results().end();
    return std::ranges::find(graph_.outputs, value) != graph_.outputs.end() &&
           state_with(&ir::StatePair::output, graph_.value(value).name) == nullptr;
  }

  // Results of a body are kept by whoever runs it, so they are allocated anew each time.
  [[nodiscard]] bool is_dynamic(ir::ValueId value, BufferKind kind) const {
    if (kind == BufferKind::kOutput && block_ != 0) return true;
    return (kind == BufferKind::kOutput || kind == BufferKind::kTemporary) &&
           shared_.late.values.contains(value);
  }
  std::uint32_t add_buffer(ir::ValueId value, const Form& form, BufferKind kind) {
    lowered_.buffers.push_back({.value = value,
                                .form = form,
                                .kind = kind,
                                .constant = {},
                                .above = {},
                                .is_dynamic = is_dynamic(value, kind)});
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
    lowered_.buffers.push_back({.value = value,
                                .form = interface_form(value),
                                .kind = kind,
                                .constant = {},
                                .above = {},
                                .is_dynamic = is_dynamic(value, kind)});
    return static_cast<std::uint32_t>(lowered_.buffers.size() - 1);
  }

  void add_inputs();
  std::uint32_t constant_buffer(ir::ValueId value, const Form& form);
  std::uint32_t ensure(ir::ValueId value, const Form& form);
  std::uint32_t capture(ir::ValueId value, const Form& form);
  std::uint32_t convert(ir::ValueId value, const Form& root, const Form& form);
  void add_call(const ChosenItem& item);
  void add_control(const ChosenItem& item);
  void add_copy(Opcode opcode, std::uint32_t from, std::uint32_t to, std::string label);
  void add_outputs();
  void write_back_states();

  Legalization& shared_;
  const ir::Method& method_;
  const ir::Graph& graph_;
  std::uint32_t block_;
  Legalizer* parent_;  // null for the graph itself
  std::uint32_t number_;
  std::map<std::pair<ir::ValueId, Form>, std::uint32_t> buffers_;
  std::vector<std::uint32_t> captures_;
  Lowered lowered_;
};

void Legalizer::add_inputs() {
  for (const ir::ValueId value : block_ == 0 ? graph_.inputs : graph_.blocks[block_].arguments) {
    const bool is_state =
        block_ == 0 && state_with(&ir::StatePair::input, graph_.value(value).name) != nullptr;
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
  if (graph_.block_of(value) != block_) return capture(value, form);
  return convert(value, shared_.roots.at({value, form}), form);
}

// A value of a surrounding graph comes in the form that is read here: what is converted is
// converted there, once.
std::uint32_t Legalizer::capture(ir::ValueId value, const Form& form) {
  TESSERA_CHECK(parent_ != nullptr);
  captures_.push_back(parent_->ensure(value, form));
  const std::uint32_t buffer = add_buffer(value, form, BufferKind::kInput);
  lowered_.input_buffers.push_back(buffer);
  return buffer;
}

// The last step of the path from what the producer made; the steps before it may be there already.
std::uint32_t Legalizer::convert(ir::ValueId value, const Form& root, const Form& form) {
  if (const auto known = buffers_.find({value, form}); known != buffers_.end())
    return known->second;
  const auto& path = shared_.conversions.path(value, root, form);
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
  const std::uint32_t memory = shared_.target.memory_of[item.option->device];
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

std::vector<artefact::ScanAxis> scan_axes(const ops::Attributes& attributes, std::string_view axes,
                                          std::string_view directions, std::size_t count) {
  std::vector<artefact::ScanAxis> result(count);
  const auto listed = attributes.get_ints(axes);
  const auto reversed = attributes.get_ints(directions);
  for (std::size_t i = 0; i < count; ++i) {
    if (i < listed.size()) result[i].axis = listed[i];
    result[i].reverse = i < reversed.size() && reversed[i] != 0;
  }
  return result;
}

// How a control node of a flattened graph uses its operands.
artefact::ControlDecl control_of(const ir::Graph& graph, const ir::Node& node) {
  artefact::ControlDecl control;
  const std::size_t own = ir::own_input_count(graph, node);
  if (node.op->name == "Loop") {
    control.has_trips = node.inputs[0] != ir::kNoValue;
    control.has_condition = node.inputs[1] != ir::kNoValue;
    control.carried = static_cast<std::uint32_t>(own - 2);
    control.scan_outputs.resize(node.inputs.size() - own - 1 - control.carried);
  } else if (node.op->name == "Scan") {
    control.is_scan = true;
    const auto scanned = static_cast<std::size_t>(node.attributes.get_int("num_scan_inputs", 0));
    control.carried = static_cast<std::uint32_t>(own - scanned);
    control.scan_inputs =
        scan_axes(node.attributes, "scan_input_axes", "scan_input_directions", scanned);
    control.scan_outputs = scan_axes(node.attributes, "scan_output_axes", "scan_output_directions",
                                     node.inputs.size() - own - control.carried);
  }
  for (std::uint32_t i = 0; i < node.outputs.size(); ++i)
    if (node.outputs[i] != ir::kNoValue) control.kept.push_back(i);
  return control;
}

void Legalizer::add_control(const ChosenItem& item) {
  const ir::Node& node = *item.entry->item.nodes.front();
  LoweredStep step;
  step.opcode = node.op->name == "If" ? Opcode::kBranch : Opcode::kLoop;
  step.device = item.option->device;
  step.item = item.entry;
  step.option = item.option;
  step.nodes = item.nodes;
  step.label = node.name;
  step.control = control_of(graph_, node);
  const std::size_t own = ir::own_input_count(graph_, node);
  for (std::size_t i = 0; i < own; ++i)
    if (node.inputs[i] != ir::kNoValue)
      step.inputs.push_back(ensure(node.inputs[i], interface_form(node.inputs[i])));
  for (const std::uint32_t block : ir::blocks_of(graph_, node.id)) {
    Legalizer body(shared_, block, this);
    body.run();
    step.bodies.push_back(body.number());
    step.inputs.insert(step.inputs.end(), body.captures().begin(), body.captures().end());
  }
  for (const ir::ValueId value : node.outputs)
    if (value != ir::kNoValue) step.outputs.push_back(add_result(value, interface_form(value)));
  lowered_.steps.push_back(std::move(step));
}

void Legalizer::add_copy(Opcode opcode, std::uint32_t from, std::uint32_t to, std::string label) {
  LoweredStep step;
  step.opcode = opcode;
  step.device = host_device(shared_.target);  // between buffers in host memory
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
  for (const ir::ValueId value : results()) {
    const std::string& name = graph_.value(value).name;
    std::uint32_t buffer = ensure(value, interface_form(value));
    if ((block_ != 0 || state_with(&ir::StatePair::output, name) == nullptr) &&
        (lowered_.buffers[buffer].kind != BufferKind::kOutput || taken.contains(buffer))) {
      const std::uint32_t copy = add_unnamed(value, BufferKind::kOutput);
      add_copy(Opcode::kTransfer, buffer, copy, name);
      buffer = copy;
    }
    taken.insert(buffer);
    lowered_.output_buffers.push_back(buffer);
  }
  if (block_ == 0) write_back_states();
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

std::vector<Lowered> legalize(const ir::Method& method, const Choices& choices,
                              const Assignment& assignment, const Target& target,
                              Conversions& conversions) {
  const auto items = chosen_items(method.graph, choices, assignment);
  const auto order = order_items(items);
  TESSERA_CHECK(order.size() == items.size());
  Legalization shared{method, target, conversions, ir::find_late_sizes(method.graph), {}, {}, {}};
  shared.items.resize(std::max<std::size_t>(method.graph.blocks.size(), 1));
  for (const std::size_t i : order)
    shared.items[method.graph.nodes()[items[i].nodes.front()]->block].push_back(items[i]);
  for (const auto& made : assignment.made)
    shared.roots.insert({{made.value, made.form}, made.root});
  Legalizer(shared, 0, nullptr).run();
  return std::move(shared.lowered);
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
