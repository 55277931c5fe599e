// Control flow: bodies run node by node, in the order that ONNX gives.

#include <algorithm>

#include "ops/op_table.h"
#include "random_models/evaluate_node.h"

namespace tessera::random_models {
namespace {

constexpr std::int64_t kMostTrips = 12;

// One call of a control flow node.
struct Call {
  const Node& node;
  const Evaluation& around;
  std::size_t point = 0;
  std::uint64_t number = 0;

  [[nodiscard]] const Elements* input(std::size_t index) const {
    if (index >= node.inputs.size() || node.inputs[index] == kOmitted) return nullptr;
    return &around[static_cast<std::size_t>(node.inputs[index])][point];
  }
};

Elements known(const Tensor& tensor) {
  return {tensor, {tensor, tensor}, nullptr};
}

template <typename T>
Elements scalar(DType dtype, T value) {
  return known(Tensor::of<T>(dtype, {}, std::span(&value, 1)));
}

// The operator on tensors: once where no shaking has reached any of them, else in each way.
Result<Elements> apply(const char* op, const ops::Attributes& attributes,
                       const std::vector<Elements>& inputs) {
  const bool still = std::ranges::all_of(inputs, [](const Elements& input) {
    return std::ranges::all_of(
        input.shaken, [&](const Tensor& shaken) { return same_storage(shaken, input.nominal); });
  });
  Elements result;
  result.open_rank =
      std::ranges::any_of(inputs, [](const Elements& input) { return input.open_rank; });
  for (const Which which : kWhich) {
    if (still && which != Which::kNominal) {
      result.shaken[which == Which::kFirst ? 0 : 1] = result.nominal;
      continue;
    }
    std::vector<Tensor> tensors;
    for (const Elements& input : inputs) tensors.push_back(chosen(input, which));
    TESSERA_ASSIGN(const auto made,
                   ops::run_reference(*ops::find_op("", op), attributes, tensors, 1));
    (which == Which::kNominal ? result.nominal : result.shaken[which == Which::kFirst ? 0 : 1]) =
        made.front();
  }
  return result;
}

Result<Elements> slice(const Elements& from, std::int64_t axis, std::int64_t at) {
  ops::Attributes attributes;
  attributes.set("axis", axis);
  return apply("Gather", attributes, {from, scalar<std::int64_t>(DType::kInt64, at)});
}

Result<Elements> stacked(std::vector<Elements> slices, std::int64_t axis, bool reverse) {
  if (reverse) std::ranges::reverse(slices);
  const std::int64_t axes[] = {axis};
  const Elements at = known(Tensor::of<std::int64_t>(DType::kInt64, {1}, axes));
  for (Elements& one : slices) {
    TESSERA_ASSIGN(one, apply("Unsqueeze", {}, {one, at}));
  }
  ops::Attributes attributes;
  attributes.set("axis", axis);
  return apply("Concat", attributes, slices);
}

// What no iteration gave: as many dims as a slice has.
Result<Elements> empty_stack(const Elements& like, std::int64_t axis) {
  Dims dims = like.nominal.dims();
  dims.insert(dims.begin() + (axis < 0 ? axis + static_cast<std::int64_t>(dims.size()) + 1 : axis),
              0);
  TESSERA_ASSIGN(const Tensor empty, Tensor::zeros(like.nominal.dtype(), dims));
  return known(empty);
}

// A Loop in a body that stacked nothing: what it reads may have a rank that only the run decides.
bool stacked_nothing(const Node& node, const std::vector<Elements>& results) {
  return node.op->name == "Loop" && std::ranges::any_of(results, [](const Elements& result) {
           return !result.nominal.dims().empty() && result.nominal.dims().front() == 0;
         });
}

Result<std::vector<Elements>> run_body(const Call& call, const Body& body,
                                       const std::vector<Elements>& formals) {
  if (formals.size() != body.formals.size()) return unusable("its body takes other values");
  Evaluation values(body.graph.values.size());
  for (std::size_t id = 0; id < values.size(); ++id)
    if (body.graph.values[id].source == Source::kConstant)
      values[id] = known_elements(body.graph.values[id].elements);
  for (const auto& [inside, outside] : body.captures)
    values[static_cast<std::size_t>(inside)][call.point] =
        call.around[static_cast<std::size_t>(outside)][call.point];
  for (std::size_t i = 0; i < formals.size(); ++i)
    values[static_cast<std::size_t>(body.formals[i])][call.point] = formals[i];
  for (std::size_t i = 0; i < body.graph.nodes.size(); ++i) {
    const Node& node = body.graph.nodes[i];
    TESSERA_ASSIGN(std::vector<Elements> results,
                   run_at(node, values, call.point, call.number * 101 + i));
    if (stacked_nothing(node, results))
      return unusable("nothing tells the sizes of what a loop in it would give");
    for (std::size_t o = 0; o < node.outputs.size(); ++o)
      if (node.outputs[o] != kOmitted)
        values[static_cast<std::size_t>(node.outputs[o])][call.point] = std::move(results[o]);
  }
  std::vector<Elements> outputs;
  for (const ValueId id : body.graph.outputs)
    outputs.push_back(values[static_cast<std::size_t>(id)][call.point]);
  return outputs;
}

Result<bool> truth(const Elements& elements) {
  if (elements.nominal.dtype() != DType::kBool || elements.nominal.numel() != 1)
    return unusable("its condition is no truth");
  return *static_cast<const std::uint8_t*>(elements.nominal.data()) != 0;
}

Result<std::vector<Elements>> run_if(const Call& call) {
  if (call.input(0) == nullptr) return unusable("it has no condition");
  TESSERA_ASSIGN(const bool taken, truth(*call.input(0)));
  TESSERA_ASSIGN(std::vector<Elements> given, run_body(call, call.node.bodies[taken ? 0 : 1], {}));
  // The other branch tells only whether a type can know the ranks.
  const auto other = run_body(call, call.node.bodies[taken ? 1 : 0], {});
  for (std::size_t i = 0; i < given.size(); ++i)
    if (!other || (*other)[i].nominal.dims().size() != given[i].nominal.dims().size())
      given[i].open_rank = true;
  return given;
}

// The states, then each list of slices as one tensor.
Result<std::vector<Elements>> finished(const Call& call, std::vector<Elements> states,
                                       const std::vector<std::vector<Elements>>& slices,
                                       const std::vector<Elements>& probe) {
  const auto axes = call.node.attributes.get_ints("scan_output_axes");
  const auto directions = call.node.attributes.get_ints("scan_output_directions");
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const std::int64_t axis = i < axes.size() ? axes[i] : 0;
    const bool reverse = i < directions.size() && directions[i] != 0;
    TESSERA_ASSIGN(Elements all, slices[i].empty() ? empty_stack(probe[i], axis)
                                                   : stacked(slices[i], axis, reverse));
    states.push_back(std::move(all));
  }
  return states;
}

// Whether the sizes of all results follow from those of what the body gets, so that they are known
// where it never runs. Others are given as 0.
bool keeps_sizes(const Body& body) {
  return std::ranges::all_of(body.graph.nodes, [](const Node& node) {
    return node.op->structure == ops::Structure::kElementwise;
  });
}

Result<std::vector<Elements>> run_loop(const Call& call) {
  const Body& body = call.node.bodies.front();
  std::int64_t trips = kMostTrips + 1;
  bool goes_on = true;
  if (const Elements* count = call.input(0)) trips = to_int64_vector(count->nominal.view()).at(0);
  if (const Elements* condition = call.input(1)) {
    TESSERA_ASSIGN(goes_on, truth(*condition));
  }
  std::vector<Elements> states;
  for (std::size_t i = 2; i < call.node.inputs.size(); ++i) {
    if (call.input(i) == nullptr) return unusable("a state has no value");
    states.push_back(*call.input(i));
  }
  const std::size_t count = states.size();
  if (body.graph.outputs.size() < count + 1 ||
      body.graph.outputs.size() - 1 != call.node.outputs.size())
    return unusable("its body gives other values");
  const auto iterate = [&](std::int64_t trip) {
    std::vector<Elements> formals = {scalar<std::int64_t>(DType::kInt64, trip),
                                     scalar<bool>(DType::kBool, true)};
    formals.insert(formals.end(), states.begin(), states.end());
    return run_body(call, body, formals);
  };
  const auto first_slice = static_cast<std::ptrdiff_t>(count) + 1;
  std::vector<std::vector<Elements>> slices(body.graph.outputs.size() - 1 - count);
  for (std::int64_t trip = 0; goes_on && trip < trips; ++trip) {
    if (trip == kMostTrips) return unusable("it does not end soon");
    TESSERA_ASSIGN(const std::vector<Elements> given, iterate(trip));
    TESSERA_ASSIGN(goes_on, truth(given.front()));
    states.assign(given.begin() + 1, given.begin() + first_slice);
    for (std::size_t i = 0; i < slices.size(); ++i) slices[i].push_back(given[count + 1 + i]);
  }
  std::vector<Elements> probe;  // what an iteration would have given
  if (!slices.empty() && slices.front().empty()) {
    if (!keeps_sizes(body)) return unusable("nothing tells the sizes of what it would give");
    TESSERA_ASSIGN(const std::vector<Elements> given, iterate(0));
    for (std::size_t i = 0; i < count; ++i)
      if (given[i + 1].nominal.dims() != states[i].nominal.dims())
        return unusable("nothing tells the sizes of what it would give");
    probe.assign(given.begin() + first_slice, given.end());
    if (std::ranges::any_of(probe, &Elements::open_rank))
      return unusable("no type tells the rank of what it would give");
  }
  return finished(call, std::move(states), slices, probe);
}

Result<std::vector<Elements>> run_scan(const Call& call) {
  const Body& body = call.node.bodies.front();
  const auto scanned = static_cast<std::size_t>(call.node.attributes.get_int("num_scan_inputs", 0));
  if (scanned == 0 || scanned > call.node.inputs.size() ||
      body.graph.outputs.size() != call.node.outputs.size())
    return unusable("its body takes other values");
  if (std::ranges::count(call.node.inputs, kOmitted) > 0) return unusable("it lacks an input");
  const std::size_t count = call.node.inputs.size() - scanned;
  const auto axes = call.node.attributes.get_ints("scan_input_axes");
  const auto directions = call.node.attributes.get_ints("scan_input_directions");
  const auto axis_of = [&](std::size_t i) -> std::int64_t {
    const std::int64_t axis = i < axes.size() ? axes[i] : 0;
    const auto rank = static_cast<std::int64_t>(call.input(count + i)->nominal.dims().size());
    return axis < 0 ? axis + rank : axis;
  };
  std::vector<Elements> states;
  for (std::size_t i = 0; i < count; ++i) states.push_back(*call.input(i));
  for (std::size_t i = 0; i < scanned; ++i) {
    const auto rank = static_cast<std::int64_t>(call.input(count + i)->nominal.dims().size());
    if (axis_of(i) < 0 || axis_of(i) >= rank) return unusable("it scans along no axis");
  }
  const std::int64_t steps =
      call.input(count)->nominal.dims().at(static_cast<std::size_t>(axis_of(0)));
  if (steps == 0 || steps > kMostTrips) return unusable("it has no slice, or too many");
  std::vector<std::vector<Elements>> slices(body.graph.outputs.size() - count);
  for (std::int64_t step = 0; step < steps; ++step) {
    std::vector<Elements> formals = states;
    for (std::size_t i = 0; i < scanned; ++i) {
      const bool reverse = i < directions.size() && directions[i] != 0;
      TESSERA_ASSIGN(Elements one,
                     slice(*call.input(count + i), axis_of(i), reverse ? steps - 1 - step : step));
      formals.push_back(std::move(one));
    }
    TESSERA_ASSIGN(std::vector<Elements> given, run_body(call, body, formals));
    states.assign(given.begin(), given.begin() + static_cast<std::ptrdiff_t>(count));
    for (std::size_t i = 0; i < slices.size(); ++i) slices[i].push_back(given[count + i]);
  }
  return finished(call, std::move(states), slices, {});
}

Result<std::vector<Elements>> run_sequence_map(const Call& call) {
  const Body& body = call.node.bodies.front();
  if (call.input(0) == nullptr || std::ranges::count(call.node.inputs, kOmitted) > 0)
    return unusable("it lacks an input");
  std::vector<Held> results(call.node.outputs.size());
  for (std::size_t i = 0; i < results.size(); ++i) results[i].dtype = body.output_dtypes[i];
  const auto& first = call.input(0)->held;
  for (std::size_t at = 0; at < first->elements.size(); ++at) {
    std::vector<Elements> formals;
    for (std::size_t i = 0; i < call.node.inputs.size(); ++i) {
      const Elements& input = *call.input(i);
      if (input.held != nullptr && at >= input.held->elements.size())
        return unusable("its sequences differ in length");
      formals.push_back(input.held == nullptr ? input : input.held->elements[at]);
    }
    TESSERA_ASSIGN(const std::vector<Elements> given, run_body(call, body, formals));
    for (std::size_t i = 0; i < results.size(); ++i) results[i].elements.push_back(given[i]);
  }
  std::vector<Elements> values(results.size());
  for (std::size_t i = 0; i < results.size(); ++i)
    values[i].held = std::make_shared<const Held>(std::move(results[i]));
  return values;
}

}  // namespace

Result<std::vector<Elements>> run_bodies(const Node& node, const Evaluation& values,
                                         std::size_t point, std::uint64_t number) {
  const Call call{node, values, point, number};
  if (node.op->name == "If") return run_if(call);
  if (node.op->name == "Loop") return run_loop(call);
  if (node.op->name == "Scan") return run_scan(call);
  return run_sequence_map(call);
}

}  // namespace tessera::random_models
