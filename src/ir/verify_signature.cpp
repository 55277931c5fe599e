#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/error.h"
#include "ir/describe.h"
#include "ir/verify.h"

namespace tessera::ir {
namespace {

using Arity = ops::FormalParam::Arity;

template <typename... Args>
tl::unexpected<Error> invalid(fmt::format_string<Args...> format, Args&&... args) {
  return fail(ErrorCode::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...));
}

// ---- Arity --------------------------------------------------------------------------------------

Status verify_arity(const char* what, const std::vector<ops::FormalParam>& parameters,
                    const std::vector<ValueId>& actual) {
  std::size_t required = 0;
  bool variadic = false;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].arity == Arity::kRequired) required = i + 1;
    variadic = variadic || parameters[i].arity == Arity::kVariadic;
  }
  if (actual.size() < required)
    return invalid("expected at least {} {}s, found {}", required, what, actual.size());
  if (!variadic && actual.size() > parameters.size()) {
    return invalid("expected at most {} {}s, found {}", parameters.size(), what, actual.size());
  }
  return {};
}

Status verify_required_inputs(const Node& node) {
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const bool omitted = node.inputs[i] == kNoValue;
    if (omitted && (i >= node.op->inputs.size() || node.op->inputs[i].arity != Arity::kOptional)) {
      return invalid("input '{}': is required, but omitted", parameter_name(node.op->inputs, i));
    }
  }
  return {};
}

// ---- Attributes ---------------------------------------------------------------------------------

// In the order of ops::AttributeValue's alternatives.
constexpr std::array kAlternatives = {
    ops::AttrType::kInt,    ops::AttrType::kFloat,   ops::AttrType::kString,
    ops::AttrType::kTensor, ops::AttrType::kType,    ops::AttrType::kInts,
    ops::AttrType::kFloats, ops::AttrType::kStrings, ops::AttrType::kTensors};
static_assert(kAlternatives.size() == std::variant_size_v<ops::AttributeValue>);

std::string_view to_string(ops::AttrType type) {
  switch (type) {
    case ops::AttrType::kInt: return "an int";
    case ops::AttrType::kFloat: return "a float";
    case ops::AttrType::kString: return "a string";
    case ops::AttrType::kTensor: return "a tensor";
    case ops::AttrType::kType: return "a type";
    case ops::AttrType::kInts: return "ints";
    case ops::AttrType::kFloats: return "floats";
    case ops::AttrType::kStrings: return "strings";
    case ops::AttrType::kTensors: return "tensors";
    case ops::AttrType::kGraph: return "a graph";
  }
  return "an unknown type";
}

Status verify_attributes(const Node& node) {
  const auto& formals = node.op->attributes;
  for (const auto& entry : node.attributes.entries()) {
    const auto& name = entry.first;
    const auto& value = entry.second;
    const auto formal =
        std::find_if(formals.begin(), formals.end(), [&](const auto& f) { return f.name == name; });
    if (formal == formals.end()) return invalid("attribute '{}' is unknown", name);
    const ops::AttrType found = kAlternatives[value.index()];
    if (found != formal->type) {
      return invalid("attribute '{}': expected {}, found {}", name, to_string(formal->type),
                     to_string(found));
    }
  }
  for (const ops::FormalAttr& formal : formals) {
    if (formal.required && formal.type != ops::AttrType::kGraph &&
        !node.attributes.has(formal.name)) {
      return invalid("attribute '{}' is required, but absent", formal.name);
    }
  }
  return {};
}

Status verify_bodies(const Node& node) {
  const auto& formals = node.op->attributes;
  const auto expected =
      static_cast<std::size_t>(std::count_if(formals.begin(), formals.end(), [](const auto& f) {
        return f.type == ops::AttrType::kGraph;
      }));
  if (node.bodies.size() != expected)
    return invalid("expected {} bodies, found {}", expected, node.bodies.size());
  if (node.captures.size() != expected) {
    return invalid("expected {} lists of captures, one for each body, found {}", expected,
                   node.captures.size());
  }
  return {};
}

// ---- Dtypes -------------------------------------------------------------------------------------

std::string list_dtypes(ops::DTypeSet set) {
  std::string text;
  for (int i = 1; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if ((set & ops::dtype_bit(dtype)) != 0)
      text += (text.empty() ? "" : ", ") + std::string(tessera::to_string(dtype));
  }
  return text;
}

// The dtype that a type variable took, and the input that gave it.
struct Binding {
  DType dtype;
  std::string input;
};
using Bindings = std::map<std::string_view, Binding>;

Status bind_input(const Node& node, std::size_t index, DType dtype, Bindings& bindings) {
  const auto& formals = node.op->inputs;
  const ops::FormalParam& formal = formals[std::min(index, formals.size() - 1)];
  const auto& variables = node.op->type_variables;
  const auto variable = std::find_if(variables.begin(), variables.end(),
                                     [&](const auto& v) { return v.name == formal.type; });
  const std::string name = parameter_name(formals, index);
  if (variable == variables.end()) return {};
  const auto bound = bindings.emplace(variable->name, Binding{dtype, name}).first;
  if (bound->second.dtype != dtype) {
    return invalid("input '{}': expected {} as input '{}' has, found {}", name,
                   tessera::to_string(bound->second.dtype), bound->second.input,
                   tessera::to_string(dtype));
  }
  if (variable->allowed != 0 && (variable->allowed & ops::dtype_bit(dtype)) == 0) {
    return invalid("input '{}': expected one of {}, found {}", name, list_dtypes(variable->allowed),
                   tessera::to_string(dtype));
  }
  return {};
}

Status verify_dtypes(const Graph& graph, const Node& node) {
  Bindings bindings;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoValue || node.op->inputs.empty()) continue;
    const ValueType& type = graph.value(node.inputs[i]).type;
    // Sequences, optionals and maps bind no dtype; inference checks them. An unknown dtype agrees
    // with all.
    if (!type.is_tensor() || type.dtype == DType::kUndefined) continue;
    TESSERA_TRY(bind_input(node, i, type.dtype, bindings));
  }
  return {};
}

}  // namespace

Status verify_signature(const Graph& graph, const Node& node) {
  TESSERA_TRY(verify_arity("input", node.op->inputs, node.inputs));
  TESSERA_TRY(verify_required_inputs(node));
  TESSERA_TRY(verify_arity("output", node.op->outputs, node.outputs));
  TESSERA_TRY(verify_attributes(node));
  TESSERA_TRY(verify_bodies(node));
  return verify_dtypes(graph, node);
}

}  // namespace tessera::ir
