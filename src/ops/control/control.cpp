// If, Loop and Scan: operators that run bodies. They have no kernel here; the runtime runs the
// bodies. SequenceMap: import makes a Loop of it.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

bool same_kind(const ValueType& a, const ValueType& b) {
  if (a.kind != b.kind || a.dtype != b.dtype) return false;
  return a.is_tensor() || same_kind(*a.element, *b.element);
}

Status check_kind(const ValueType& a, const ValueType& b, const std::string& what) {
  if (same_kind(a, b)) return {};
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("{}: expected {}, found {}", what, a.to_string(), b.to_string()));
}

// The most special type that both are: sizes that differ become new symbols, ranks that differ are
// unknown.
Result<ValueType> common_type(const InferContext& context, const ValueType& a, const ValueType& b,
                              const std::string& what) {
  if (a == b) return a;
  TESSERA_TRY(check_kind(a, b, what));
  if (!a.is_tensor()) {
    TESSERA_ASSIGN(ValueType element, common_type(context, *a.element, *b.element, what));
    return a.with_element(std::move(element));
  }
  if (!a.shape || !b.shape || a.shape->size() != b.shape->size())
    return ValueType::tensor(a.dtype, std::nullopt);
  Shape shape = *a.shape;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] != (*b.shape)[d]) shape[d] = context.fresh_symbol("merged");
  }
  return ValueType::tensor(a.dtype, std::move(shape));
}

Status check_count(std::string_view what, std::size_t expected, std::size_t found) {
  if (expected == found) return {};
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("{}: expected {} outputs, found {}", what, expected, found));
}

// ---- If
// -------------------------------------------------------------------------------------------------

Status infer_if(InferContext& context) {
  TESSERA_TRY(require_dtype(context, 0, kBoolType));
  std::vector<std::vector<ValueType>> branches;
  for (std::size_t index = 0; index < 2; ++index) {
    TESSERA_ASSIGN(auto types, context.infer_body(index, {}));
    TESSERA_TRY(check_count(index == 0 ? "body 'then_branch'" : "body 'else_branch'",
                            context.outputs.size(), types.size()));
    branches.push_back(std::move(types));
  }
  const auto condition = known_ints(context.inputs[0]);
  if (condition && condition->size() == 1) {
    context.outputs = branches[condition->front() != 0 ? 0 : 1];
    return {};
  }
  for (std::size_t i = 0; i < context.outputs.size(); ++i) {
    TESSERA_ASSIGN(context.outputs[i],
                   common_type(context, branches[0][i], branches[1][i],
                               fmt::format("output {} of body 'else_branch'", i)));
  }
  return {};
}

// ---- Loop
// -------------------------------------------------------------------------------------------------

// A value that the body hands from one iteration to the next, as general as it must be to hold in
// all of them.
struct Carried {
  ValueType type;
  std::set<std::size_t> free_dims;  // sizes that change from one iteration to the next
};

// The tensor inside of a sequence or an optional; a tensor itself.
const ValueType& innermost(const ValueType& type) {
  return type.is_tensor() ? type : innermost(*type.element);
}

ValueType with_innermost(const ValueType& type, ValueType tensor) {
  if (type.is_tensor()) return tensor;
  return type.with_element(with_innermost(*type.element, std::move(tensor)));
}

// Makes the type general enough for what the body gives; whether that changed it. Each change frees
// a size or the rank, so this comes to an end.
Result<bool> widen(const InferContext& context, Carried& carried, const ValueType& given,
                   const std::string& what) {
  TESSERA_TRY(check_kind(carried.type, given, what));
  ValueType tensor = innermost(carried.type);
  const std::optional<Shape>& found = innermost(given).shape;
  if (!tensor.shape) return false;
  bool changed = false;
  if (!found || found->size() != tensor.shape->size()) {
    tensor.shape.reset();
    changed = true;
  }
  for (std::size_t d = 0; tensor.shape && d < tensor.shape->size(); ++d) {
    if ((*tensor.shape)[d] == (*found)[d] || !carried.free_dims.insert(d).second) continue;
    (*tensor.shape)[d] = context.fresh_symbol("carried");
    changed = true;
  }
  carried.type = with_innermost(carried.type, std::move(tensor));
  return changed;
}

// How often a body is inferred before what still changes is given up. Loops in loops multiply, so
// that deep ones take one turn.
int turns_at(int body_depth) {
  constexpr int kTurns[] = {32, 8, 4};
  constexpr int kLevels = static_cast<int>(std::size(kTurns));
  return body_depth < kLevels ? kTurns[body_depth] : 1;
}

void forget_shapes(std::vector<Carried>& carried, std::span<ValueType> formal) {
  for (std::size_t i = 0; i < carried.size(); ++i) {
    const DType dtype = innermost(carried[i].type).dtype;
    carried[i].type = with_innermost(carried[i].type, ValueType::tensor(dtype, std::nullopt));
    formal[i] = carried[i].type;
  }
}

// Infers the body until it gives what it takes. Carried values stand in `formal` from `first` on
// and among the body's outputs from `result` on; `formal` ends with their types after the last
// iteration, and the result is what the body gives.
Result<std::vector<ValueType>> infer_carried(InferContext& context, std::vector<ValueType>& formal,
                                             std::size_t first, std::size_t result,
                                             std::size_t count) {
  std::vector<Carried> carried;
  for (std::size_t i = 0; i < count; ++i) carried.push_back({formal[first + i], {}});
  std::vector<ValueType> types;
  int turns = turns_at(context.body_depth);
  for (bool changed = true; changed;) {
    if (--turns == 0) forget_shapes(carried, std::span(formal).subspan(first, count));
    TESSERA_ASSIGN(types, context.infer_body(0, formal));
    if (types.size() < result + count) {
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("body 'body': expected at least {} outputs, found {}", result + count,
                              types.size()));
    }
    changed = false;
    for (std::size_t i = 0; i < count; ++i) {
      TESSERA_ASSIGN(const bool wider, widen(context, carried[i], types[result + i],
                                             fmt::format("output {} of body 'body'", result + i)));
      changed = changed || wider;
      formal[first + i] = carried[i].type;
    }
  }
  // A size that changes is another one after the loop than before its last iteration.
  for (std::size_t i = 0; i < count; ++i) {
    ValueType tensor = innermost(formal[first + i]);
    if (!tensor.shape) continue;
    for (const std::size_t d : carried[i].free_dims)
      (*tensor.shape)[d] = context.fresh_symbol("carried");
    formal[first + i] = with_innermost(formal[first + i], std::move(tensor));
  }
  return types;
}

// The type of outputs that gather one piece from each iteration.
ValueType stacked(const ValueType& piece, const Dim& count, std::int64_t axis) {
  if (!piece.is_tensor() || !piece.shape) return ValueType::tensor(piece.dtype, std::nullopt);
  Shape shape = *piece.shape;
  shape.insert(shape.begin() + axis, count);
  return ValueType::tensor(piece.dtype, std::move(shape));
}

Status infer_loop(InferContext& context) {
  if (has_input(context, 0)) TESSERA_TRY(require_dtype(context, 0, kInt64Type));
  if (has_input(context, 1)) TESSERA_TRY(require_dtype(context, 1, kBoolType));
  const std::size_t carried =
      context.inputs.size() - std::min<std::size_t>(context.inputs.size(), 2);
  std::vector<ValueType> formal{ValueType::tensor(DType::kInt64, Shape{}),
                                ValueType::tensor(DType::kBool, Shape{})};
  for (std::size_t i = 0; i < carried; ++i) {
    if (!has_input(context, i + 2))
      return input_error(context, i + 2, "expected a value, found none");
    formal.push_back(context.inputs[i + 2].type);
  }
  TESSERA_ASSIGN(const std::vector<ValueType> types, infer_carried(context, formal, 2, 1, carried));
  if (!types[0].is_tensor() || types[0].dtype != DType::kBool)
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("output 0 of body 'body': expected a condition of type bool, found {}",
                            types[0].to_string()));
  TESSERA_TRY(check_count("body 'body'", context.outputs.size() + 1, types.size()));
  const Dim trips = context.fresh_symbol("trips");
  for (std::size_t i = 0; i < context.outputs.size(); ++i) {
    context.outputs[i] = i < carried ? formal[i + 2] : stacked(types[i + 1], trips, 0);
  }
  return {};
}

// ---- Scan
// -------------------------------------------------------------------------------------------------

// Element `index` of a list attribute, or 0 where the list is absent.
std::int64_t listed(const Attributes& attributes, std::string_view name, std::size_t index) {
  const std::vector<std::int64_t> values = attributes.get_ints(name);
  return index < values.size() ? values[index] : 0;
}

// A list has an element for each of `count` inputs or outputs, or is absent.
Status check_list(const Attributes& attributes, std::string_view name, std::size_t count,
                  bool directions) {
  const std::vector<std::int64_t> values = attributes.get_ints(name);
  if (values.empty()) return {};
  if (values.size() != count)
    return attribute_error(name, fmt::format("expected {} values, found {}", count, values.size()));
  for (const std::int64_t value : values)
    if (directions && value != 0 && value != 1)
      return attribute_error(name, fmt::format("expected 0 or 1, found {}", value));
  return {};
}

Status check_lists(const InferContext& context, std::size_t states) {
  const Attributes& attributes = context.attributes;
  const std::size_t inputs = context.inputs.size() - states;
  const std::size_t outputs = context.outputs.size() - std::min(context.outputs.size(), states);
  TESSERA_TRY(check_list(attributes, "scan_input_axes", inputs, false));
  TESSERA_TRY(check_list(attributes, "scan_input_directions", inputs, true));
  TESSERA_TRY(check_list(attributes, "scan_output_axes", outputs, false));
  return check_list(attributes, "scan_output_directions", outputs, true);
}

// Takes the axis that is scanned out of each scan input; gives the number of steps.
Result<Dim> scan_inputs(InferContext& context, std::size_t states, std::vector<ValueType>& formal) {
  std::optional<Dim> steps;
  for (std::size_t i = states; i < context.inputs.size(); ++i) {
    TESSERA_ASSIGN(const InferInput* input, tensor_input(context, i));
    ValueType type = input->type;
    if (type.shape) {
      TESSERA_ASSIGN(const std::int64_t axis,
                     normalize_axis(listed(context.attributes, "scan_input_axes", i - states),
                                    static_cast<std::int64_t>(type.shape->size()),
                                    "attribute 'scan_input_axes'"));
      const Dim size = (*type.shape)[static_cast<std::size_t>(axis)];
      if (steps) {
        TESSERA_ASSIGN(
            steps, merge_dim(*steps, size,
                             fmt::format("input '{}': axis {}", input_name(context.op, i), axis)));
      }
      if (!steps) steps = size;
      type.shape->erase(type.shape->begin() + axis);
    }
    formal.push_back(std::move(type));
  }
  return steps ? *steps : context.fresh_symbol("steps");
}

Status infer_scan(InferContext& context) {
  const std::int64_t scanned = context.attributes.get_int("num_scan_inputs", 0);
  if (scanned < 1 || scanned > static_cast<std::int64_t>(context.inputs.size())) {
    return attribute_error(
        "num_scan_inputs",
        fmt::format("expected a value from 1 to {}, the number of inputs, found {}",
                    context.inputs.size(), scanned));
  }
  const std::size_t states = context.inputs.size() - static_cast<std::size_t>(scanned);
  TESSERA_TRY(check_lists(context, states));
  std::vector<ValueType> formal;
  for (std::size_t i = 0; i < states; ++i) {
    TESSERA_ASSIGN(const InferInput* input, tensor_input(context, i));
    formal.push_back(input->type);
  }
  TESSERA_ASSIGN(const Dim steps, scan_inputs(context, states, formal));
  TESSERA_ASSIGN(const std::vector<ValueType> types, infer_carried(context, formal, 0, 0, states));
  TESSERA_TRY(check_count("body 'body'", context.outputs.size(), types.size()));
  for (std::size_t i = 0; i < context.outputs.size(); ++i) {
    if (i < states) {
      context.outputs[i] = formal[i];
      continue;
    }
    std::int64_t axis = 0;
    if (types[i].is_tensor() && types[i].shape) {
      TESSERA_ASSIGN(axis,
                     normalize_axis(listed(context.attributes, "scan_output_axes", i - states),
                                    static_cast<std::int64_t>(types[i].shape->size()) + 1,
                                    "attribute 'scan_output_axes'"));
    }
    context.outputs[i] = stacked(types[i], steps, axis);
  }
  return {};
}

// Sequences of what the body gives; sizes may differ from element to element.
Status infer_sequence_map(InferContext& context) {
  if (context.inputs.empty() || context.inputs[0].type.kind != ValueType::Kind::kSequence)
    return input_error(context, 0, "expected a sequence");
  std::vector<ValueType> elements;
  for (const InferInput& input : context.inputs)
    elements.push_back(input.type.kind == ValueType::Kind::kSequence ? *input.type.element
                                                                     : input.type);
  TESSERA_ASSIGN(const auto results, context.infer_body(0, elements));
  TESSERA_TRY(check_count("body", context.outputs.size(), results.size()));
  for (std::size_t i = 0; i < results.size(); ++i)
    context.outputs[i] = ValueType::sequence(
        results[i].is_tensor() ? ValueType::tensor(results[i].dtype, std::nullopt) : results[i]);
  return {};
}

OpSchema control(std::string_view name, std::vector<int> versions, InferFn infer) {
  OpSchema op;
  op.name = name;
  op.versions = std::move(versions);
  op.outputs = {variadic("outputs", "")};
  op.structure = Structure::kControlFlow;
  op.infer = infer;
  return op;
}

}  // namespace

std::vector<OpSchema> control_ops() {
  OpSchema branch = control("If", {1, 11, 13, 16, 19, 21, 23, 24, 25}, infer_if);
  branch.inputs = {required("cond", "B")};
  branch.attributes = {required_attr("then_branch", AttrType::kGraph),
                       required_attr("else_branch", AttrType::kGraph)};
  branch.type_variables = {{"B", kBoolType}};

  OpSchema loop = control("Loop", {1, 11, 13, 16, 19, 21, 23, 24, 25}, infer_loop);
  loop.inputs = {optional("M", "I"), optional("cond", "B"), variadic("v_initial", "")};
  loop.attributes = {required_attr("body", AttrType::kGraph)};
  loop.type_variables = {{"I", kInt64Type}, {"B", kBoolType}};
  loop.unspecified =
      "an M below 0 is as 0; where there is no iteration the initial values are given, and scan "
      "outputs of no slices, in which sizes that only the body decides are 0; slices of different "
      "sizes are an error";

  OpSchema scan = control("Scan", {8, 9, 11, 16, 19, 21, 23, 24, 25}, infer_scan);
  scan.inputs = {variadic("initial_state_and_scan_inputs", "")};
  scan.attributes = {
      required_attr("body", AttrType::kGraph),   required_attr("num_scan_inputs", AttrType::kInt),
      attr("scan_input_axes", AttrType::kInts),  attr("scan_input_directions", AttrType::kInts),
      attr("scan_output_axes", AttrType::kInts), attr("scan_output_directions", AttrType::kInts)};
  scan.unspecified =
      "where there is no iteration the initial values are given, and scan outputs of no slices, in "
      "which sizes that only the body decides are 0";

  OpSchema map = control("SequenceMap", {17}, infer_sequence_map);
  map.inputs = {required("input_sequence", ""), variadic("additional_inputs", "")};
  map.attributes = {required_attr("body", AttrType::kGraph)};
  return {branch, loop, scan, map};
}

}  // namespace tessera::ops
