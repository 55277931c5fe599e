// Recipes of control flow: bodies are drafts of their own, which read the graph around them.

#include <algorithm>

#include "ops/op_table.h"
#include "random_models/recipes.h"

namespace tessera::random_models {
namespace {

// A condition: known to the compiler, an input of the model, or computed.
ValueId truth(Draft& draft) {
  if (draft.random().chance(0.25))
    return draft.scalar(DType::kBool, static_cast<double>(flag(draft)));
  return draft.operand(DType::kBool, {0, 0});
}

AtPoints<Elements> sample(const Tensor& tensor) {
  return known_elements({tensor, tensor});
}

// Values that a body may give as they are: results, formals now and then, none of them twice.
std::optional<ValueId> as_output(Draft& body, ValueId id, const std::vector<ValueId>& taken) {
  const bool own = body.source(id) == Source::kNode ||
                   (body.source(id) == Source::kInput && body.random().chance(0.5));
  if (own && std::ranges::count(taken, id) == 0) return id;
  return helper(body, "Identity", {id});
}

bool give(Draft& body, ValueId id, std::vector<ValueId>& outputs) {
  const auto output = as_output(body, id, outputs);
  if (output) outputs.push_back(*output);
  return output.has_value();
}

DType other_dtype(Draft& draft, DType dtype) {
  return draft.random().chance(0.5) ? dtype
                                    : one_of(draft, {DType::kFp32, DType::kInt64, DType::kBool});
}

// The dtype of the first output is `dtype`; sizes and ranks of the branches may differ.
bool branch(Draft& draft, DType dtype, Node& node) {
  node.inputs = {truth(draft)};
  std::vector<DType> dtypes = {dtype};
  while (dtypes.size() < 3 && draft.random().chance(0.35))
    dtypes.push_back(other_dtype(draft, dtype));
  for (const char* name : {"then_branch", "else_branch"}) {
    Draft body(&draft);
    grow(body, dtype, draft.random().integer(0, 3));
    std::vector<ValueId> outputs;
    for (const DType wanted : dtypes)
      if (!give(body, body.operand(wanted), outputs)) return false;
    node.bodies.push_back(body.finish_body(name, outputs));
  }
  node.outputs.assign(dtypes.size(), 0);
  return true;
}

// What a state becomes: mostly of the same sizes, now and then a longer one or any other.
std::optional<ValueId> next_state(Draft& body, ValueId state) {
  const DType dtype = body.dtype(state);
  if (body.rank(state) > 0 && body.random().chance(0.1)) {
    ops::Attributes attributes;
    attributes.set("axis", std::int64_t{0});
    return helper(body, "Concat",
                  {state, body.operand(dtype, {body.rank(state), body.rank(state)})},
                  std::move(attributes));
  }
  for (int attempt = 0; attempt < 6; ++attempt) {
    const ValueId id = body.operand(dtype);
    if (id != state && body.sizes(id) == body.sizes(state)) return id;
  }
  if (has_numbers(dtype) && bits_of(dtype) >= 8 && body.random().chance(0.6)) {
    const auto other = body.partner(state, dtype);
    if (other) {
      const auto made = helper(body, body.random().chance(0.5) ? "Min" : "Max", {state, *other});
      if (made) return made;
    }
  }
  return body.random().chance(0.8) ? state : body.operand(dtype);
}

struct States {
  std::vector<ValueId> outside, inside;
};

// Values of the graph around that the body gets and gives anew in each round.
void add_state(Draft& draft, Draft& body, States& states, DType dtype, Ranks ranks) {
  states.outside.push_back(draft.operand(dtype, ranks));
  states.inside.push_back(body.formal(draft.elements(states.outside.back())));
}

bool give_states(Draft& body, const States& states, std::vector<ValueId>& outputs) {
  return std::ranges::all_of(states.inside, [&](ValueId state) {
    const auto next = next_state(body, state);
    return next && give(body, *next, outputs);
  });
}

bool give_slices(Draft& body, DType dtype, std::int64_t count, std::vector<ValueId>& outputs) {
  for (std::int64_t i = 0; i < count; ++i) {
    const DType wanted = i == 0 ? dtype : other_dtype(body, dtype);
    if (!give(body, body.operand(wanted, {0, 3}), outputs)) return false;
  }
  return true;
}

// Whether another round follows: always, or until one that is counted.
bool give_condition(Draft& body, ValueId trip, ValueId condition, bool stops,
                    std::vector<ValueId>& outputs) {
  if (!stops) return give(body, condition, outputs);
  const auto last = static_cast<double>(body.random().integer(0, 3));
  const auto more = helper(body, "Less", {trip, body.scalar(DType::kInt64, last)});
  return more && give(body, *more, outputs);
}

ValueId trip_count(Draft& draft) {
  const auto trips =
      static_cast<double>(draft.random().chance(0.15) ? 0 : draft.random().integer(1, 4));
  if (draft.random().chance(0.5)) return draft.scalar(DType::kInt64, trips);
  return draft.input(constant_tensor(DType::kInt64, {}, {trips}));
}

bool loop(Draft& draft, DType dtype, Node& node) {
  const bool counted = draft.random().chance(0.85);
  node.inputs = {counted ? trip_count(draft) : kOmitted, kOmitted};
  if (draft.random().chance(0.4)) node.inputs[1] = truth(draft);
  Draft body(&draft);
  const ValueId trip = body.formal(sample(constant_tensor(DType::kInt64, {}, {0})));
  const ValueId condition = body.formal(sample(constant_tensor(DType::kBool, {}, {1})));
  States states;
  for (std::int64_t more = draft.random().integer(0, 2); more > 0; --more)
    add_state(draft, body, states, states.outside.empty() ? dtype : other_dtype(draft, dtype), {});
  grow(body, dtype, draft.random().integer(0, 3));
  std::vector<ValueId> outputs;
  const bool stops = !counted || draft.random().chance(0.3);
  const std::int64_t slices = states.inside.empty() ? 1 : draft.random().integer(0, 2);
  if (!give_condition(body, trip, condition, stops, outputs) ||
      !give_states(body, states, outputs) || !give_slices(body, dtype, slices, outputs))
    return false;
  node.inputs.insert(node.inputs.end(), states.outside.begin(), states.outside.end());
  while (!node.inputs.empty() && node.inputs.back() == kOmitted) node.inputs.pop_back();
  node.outputs.assign(outputs.size() - 1, 0);
  node.bodies.push_back(body.finish_body("body", outputs));
  return true;
}

// The first slice along an axis, as a sample of what the body gets.
std::optional<AtPoints<Elements>> first_slice(Draft& draft, ValueId x, std::int64_t axis) {
  AtPoints<Tensor> slices;
  ops::Attributes attributes;
  attributes.set("axis", axis);
  for (std::size_t point = 0; point < kPoints; ++point) {
    const std::vector<Tensor> inputs = {draft.tensor(x, point),
                                        constant_tensor(DType::kInt64, {}, {0})};
    const auto made = ops::run_reference(*ops::find_op("", "Gather"), attributes, inputs, 1);
    if (!made) return std::nullopt;
    slices[point] = made->front();
  }
  return known_elements(slices);
}

struct Scanned {
  std::vector<ValueId> values;
  std::vector<std::int64_t> axes, directions;
};

bool add_scanned(Draft& draft, Draft& body, Scanned& scanned, ValueId x, std::int64_t axis) {
  const auto slice = first_slice(draft, x, axis);
  if (!slice) return false;
  scanned.values.push_back(x);
  scanned.axes.push_back(axis);
  scanned.directions.push_back(flag(draft));
  (void)body.formal(*slice);
  return true;
}

bool scan(Draft& draft, DType dtype, Node& node) {
  Draft body(&draft);
  States states;
  if (draft.random().chance(0.6)) add_state(draft, body, states, dtype, {0, 3});
  Scanned scanned;
  const ValueId x = draft.operand(dtype, {1, 4});
  const std::int64_t axis = any_axis(draft, draft.rank(x));
  const Size steps = draft.size(x, from_front(axis, draft.rank(x)));
  if (!add_scanned(draft, body, scanned, x, axis)) return false;
  if (draft.can_be_input({steps}) && draft.random().chance(0.4)) {
    const ValueId y = draft.fresh(other_dtype(draft, dtype), {steps, number(2)});
    if (!add_scanned(draft, body, scanned, y, draft.random().chance(0.5) ? 0 : -2)) return false;
  }
  grow(body, dtype, draft.random().integer(0, 3));
  std::vector<ValueId> outputs;
  const std::int64_t slices = draft.random().integer(1, 2);
  if (!give_states(body, states, outputs) || !give_slices(body, dtype, slices, outputs))
    return false;
  node.attributes.set("num_scan_inputs", static_cast<std::int64_t>(scanned.values.size()));
  const bool first_axes = std::ranges::all_of(scanned.axes, [](auto at) { return at == 0; });
  if (!first_axes || draft.random().chance(0.3))
    node.attributes.set("scan_input_axes", scanned.axes);
  maybe(draft, node, "scan_input_directions", scanned.directions, 0.4);
  std::vector<std::int64_t> axes;
  std::vector<std::int64_t> directions;
  for (std::size_t i = states.inside.size(); i < outputs.size(); ++i) {
    axes.push_back(any_axis(draft, body.rank(outputs[i]) + 1));
    directions.push_back(flag(draft));
  }
  maybe(draft, node, "scan_output_axes", axes, 0.4);
  maybe(draft, node, "scan_output_directions", directions, 0.4);
  node.inputs = states.outside;
  node.inputs.insert(node.inputs.end(), scanned.values.begin(), scanned.values.end());
  node.outputs.assign(outputs.size(), 0);
  node.bodies.push_back(body.finish_body("body", outputs));
  return true;
}

bool sequence_map(Draft& draft, DType dtype, Node& node) {
  auto sequence = draft.holder(ValueType::Kind::kSequence, dtype);
  if (!sequence || draft.random().chance(0.3)) {
    std::vector<ValueId> elements;
    for (std::int64_t more = draft.random().integer(1, 3); more > 0; --more)
      elements.push_back(draft.operand(dtype, {0, 3}));
    sequence = helper(draft, "SequenceConstruct", elements);
  }
  if (!sequence) return false;
  Draft body(&draft);
  AtPoints<Elements> element;
  for (std::size_t point = 0; point < kPoints; ++point) {
    const auto& held = *draft.elements(*sequence)[point].held;
    if (held.elements.empty() || held.elements.front().held != nullptr) return false;
    element[point] = held.elements.front();
  }
  (void)body.formal(element);
  node.inputs = {*sequence};
  if (draft.random().chance(0.4)) {
    node.inputs.push_back(draft.operand(other_dtype(draft, dtype), {0, 3}));
    (void)body.formal(draft.elements(node.inputs.back()));
  }
  grow(body, dtype, draft.random().integer(1, 3));
  std::vector<ValueId> outputs;
  if (!give_slices(body, dtype, draft.random().integer(1, 2), outputs)) return false;
  node.outputs.assign(outputs.size(), 0);
  node.bodies.push_back(body.finish_body("body", outputs));
  return true;
}

constexpr Recipe kRecipes[] = {
    {"If", branch, -1},
    {"Loop", loop, -1},
    {"Scan", scan, -1},
    {"SequenceMap", sequence_map, 0},
};

}  // namespace

std::span<const Recipe> body_recipes() {
  return kRecipes;
}

}  // namespace tessera::random_models
