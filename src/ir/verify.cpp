#include "ir/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "ir/describe.h"

namespace tessera::ir {
namespace {

using Scope = std::set<std::string_view>;

template <typename... Args>
tl::unexpected<Error> invalid(fmt::format_string<Args...> format, Args&&... args) {
  return fail(ErrorCode::kInvalidArgument, fmt::format(format, std::forward<Args>(args)...));
}

// ---- Types --------------------------------------------------------------------------------------

Status verify_dim(const Dim& dim, const SymbolTable& symbols) {
  std::set<std::string, std::less<>> names;
  dim.collect_symbols(names);
  for (const std::string& name : names) {
    if (!symbols.contains(name)) return invalid("symbol '{}' is not in the symbol table", name);
  }
  return {};
}

Status verify_type(const ValueType& type, const SymbolTable& symbols) {
  if (!type.is_tensor()) {
    if (type.element == nullptr)
      return invalid("expected an element type in a sequence, optional or map, found none");
    return verify_type(*type.element, symbols);
  }
  if (!type.shape) return {};
  for (const Dim& dim : *type.shape) TESSERA_TRY(verify_dim(dim, symbols));
  return {};
}

Status verify_known(const Value& value, const SymbolTable& symbols) {
  if (!value.known) return {};
  for (const Dim& dim : value.known->elements) TESSERA_TRY(verify_dim(dim, symbols));
  if (value.known->scalar && value.known->elements.size() != 1) {
    return invalid("expected one known element of a scalar, found {}",
                   value.known->elements.size());
  }
  const auto& shape = value.type.shape;
  if (!value.type.is_tensor() || !shape) return {};
  if (shape->size() != (value.known->scalar ? 0U : 1U)) {
    return invalid("expected known elements only of rank 0 and 1, found {}",
                   value.type.to_string());
  }
  const auto size = value.known->scalar ? std::nullopt : shape->front().constant();
  if (size && *size != static_cast<std::int64_t>(value.known->elements.size())) {
    return invalid("expected {} known elements, found {}", *size, value.known->elements.size());
  }
  return {};
}

// ---- Values -------------------------------------------------------------------------------------

Status verify_constant(const Value& value) {
  if (!value.constant.is_defined()) return invalid("constant has no elements");
  const ValueType expected =
      ValueType::tensor(value.constant.dtype(), to_shape(value.constant.dims()));
  if (!(value.type == expected)) {
    return invalid("expected the type of its elements, {}, found {}", expected.to_string(),
                   value.type.to_string());
  }
  return {};
}

Status verify_produced(const Graph& graph, const Value& value) {
  const Node* producer = graph.find_node(value.producer);
  if (producer == nullptr) return invalid("is read, but nothing produces it");
  if (value.producer_output >= producer->outputs.size() ||
      producer->outputs[value.producer_output] != value.id) {
    return invalid("names output {} of node '{}' as its producer, which does not agree",
                   value.producer_output, producer->name);
  }
  return {};
}

// Values that the graph really holds: inputs, results of nodes, and whatever is read.
std::vector<bool> live_values(const Graph& graph) {
  std::vector<bool> live(graph.value_count(), false);
  const auto mark = [&](const std::vector<ValueId>& ids) {
    for (const ValueId id : ids) {
      if (id != kNoValue) live[id] = true;
    }
  };
  mark(graph.inputs);
  mark(graph.outputs);
  for (const auto& node : graph.nodes()) {
    mark(node->inputs);
    mark(node->outputs);
    for (const auto& captured : node->captures) mark(captured);
  }
  return live;
}

Status verify_value(const Graph& graph, const Value& value, const std::set<ValueId>& inputs,
                    const SymbolTable& symbols) {
  TESSERA_TRY(verify_type(value.type, symbols));
  TESSERA_TRY(verify_known(value, symbols));
  switch (value.kind) {
    case ValueKind::kConstant: return verify_constant(value);
    case ValueKind::kNodeOutput: return verify_produced(graph, value);
    case ValueKind::kInput:
      if (!inputs.contains(value.id)) return invalid("is an input, but the graph does not list it");
  }
  return {};
}

Status verify_values(const Graph& graph, const SymbolTable& symbols) {
  const std::vector<bool> live = live_values(graph);
  const std::set<ValueId> inputs(graph.inputs.begin(), graph.inputs.end());
  Scope names;
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    if (!live[id]) continue;
    const Value& value = graph.value(id);
    if (!names.insert(value.name).second)
      return invalid("value name '{}' is used twice", value.name);
    TESSERA_TRY_IN(verify_value(graph, value, inputs, symbols),
                   fmt::format("value '{}'", value.name));
  }
  std::set<ValueId> listed;
  for (const ValueId id : graph.inputs) {
    if (graph.value(id).kind != ValueKind::kInput)
      return invalid("input '{}' is not of kind input", graph.value(id).name);
    if (!listed.insert(id).second)
      return invalid("input '{}' is listed twice", graph.value(id).name);
  }
  return {};
}

// ---- Nodes --------------------------------------------------------------------------------------

Status verify_ids(const Graph& graph) {
  const auto in_range = [&](const std::vector<ValueId>& ids, bool optional) {
    return std::all_of(ids.begin(), ids.end(), [&](ValueId id) {
      return id < graph.value_count() || (optional && id == kNoValue);
    });
  };
  if (!in_range(graph.inputs, false)) return invalid("an input is not a value of the graph");
  if (!in_range(graph.outputs, false)) return invalid("an output is not a value of the graph");
  for (const auto& node : graph.nodes()) {
    bool sound = in_range(node->inputs, true) && in_range(node->outputs, true);
    for (const auto& captured : node->captures) sound = sound && in_range(captured, false);
    if (!sound) return invalid("node '{}' names a value that the graph does not have", node->name);
  }
  return {};
}

Status verify_order(const Graph& graph, const Node& node, const std::vector<bool>& defined) {
  const auto check = [&](ValueId id) -> Status {
    if (id == kNoValue || defined[id]) return {};
    return invalid("reads '{}' before a node produces it", graph.value(id).name);
  };
  for (const ValueId id : node.inputs) TESSERA_TRY(check(id));
  for (const auto& captured : node.captures) {
    for (const ValueId id : captured) TESSERA_TRY(check(id));
  }
  return {};
}

Status verify_outputs(const Graph& graph, const Node& node) {
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == kNoValue) continue;
    const Value& output = graph.value(node.outputs[i]);
    if (output.kind != ValueKind::kNodeOutput || output.producer != node.id ||
        output.producer_output != i) {
      return invalid("output '{}' does not name this node as its producer", output.name);
    }
  }
  return {};
}

Status verify_origins(const Node& node, std::size_t source_node_count) {
  if (node.origins.empty()) return invalid("has no origins");
  for (std::size_t i = 0; i < node.origins.size(); ++i) {
    if (node.origins[i] >= source_node_count) {
      return invalid("origin {} is unknown: the module has {} source nodes", node.origins[i],
                     source_node_count);
    }
    if (i > 0 && node.origins[i - 1] >= node.origins[i]) return invalid("origins are not sorted");
  }
  return {};
}

Status verify_graph(const Graph& graph, const Module& module);

Status verify_body(const Graph& graph, const Node& node, std::size_t index, const Module& module) {
  const Graph* body = node.bodies[index].get();
  if (body == nullptr) return invalid("is missing");
  const auto& captured = node.captures[index];
  if (captured.size() > body->inputs.size()) {
    return invalid("expected at least {} inputs, one for each capture, found {}", captured.size(),
                   body->inputs.size());
  }
  TESSERA_TRY(verify_graph(*body, module));
  const std::size_t formal_count = body->inputs.size() - captured.size();
  for (std::size_t i = 0; i < captured.size(); ++i) {
    const Value& outer = graph.value(captured[i]);
    const Value& inner = body->value(body->inputs[formal_count + i]);
    if (outer.type.kind != inner.type.kind || outer.type.dtype != inner.type.dtype) {
      return invalid("capture '{}': expected {} as '{}' outside has, found {}", inner.name,
                     outer.type.to_string(), outer.name, inner.type.to_string());
    }
  }
  return {};
}

Status verify_node(const Graph& graph, const Node& node, const std::vector<bool>& defined,
                   const Module& module) {
  TESSERA_TRY(verify_order(graph, node, defined));
  TESSERA_TRY(verify_signature(graph, node));
  TESSERA_TRY(verify_outputs(graph, node));
  TESSERA_TRY(verify_origins(node, module.source_nodes.size()));
  for (std::size_t i = 0; i < node.bodies.size(); ++i) {
    TESSERA_TRY_IN(verify_body(graph, node, i, module), fmt::format("body {}", i));
  }
  return {};
}

Status verify_graph(const Graph& graph, const Module& module) {
  TESSERA_TRY(verify_ids(graph));
  std::vector<bool> defined(graph.value_count(), false);
  for (ValueId id = 0; id < graph.value_count(); ++id)
    defined[id] = graph.value(id).kind != ValueKind::kNodeOutput;
  Scope names;
  for (const auto& node : graph.nodes()) {
    if (node->op == nullptr) return invalid("node '{}' has no operator", node->name);
    if (graph.find_node(node->id) != node.get())
      return invalid("node '{}' is not found by its id", node->name);
    if (!names.insert(node->name).second)
      return invalid("node name '{}' is used twice", node->name);
    TESSERA_TRY_IN(verify_node(graph, *node, defined, module), describe(*node));
    for (const ValueId id : node->outputs) {
      if (id != kNoValue) defined[id] = true;
    }
  }
  TESSERA_TRY(verify_values(graph, module.symbols));
  if (!graph.knows_its_reads())
    return invalid("what a node reads was changed without the graph's knowledge");
  return {};
}

// ---- Methods ------------------------------------------------------------------------------------

const Value* find_named(const Graph& graph, const std::vector<ValueId>& ids,
                        std::string_view name) {
  const auto found = std::find_if(ids.begin(), ids.end(),
                                  [&](ValueId id) { return graph.value(id).name == name; });
  return found == ids.end() ? nullptr : &graph.value(*found);
}

Status verify_states(const Method& method) {
  Scope inputs;
  Scope outputs;
  for (const StatePair& state : method.states) {
    const Value* input = find_named(method.graph, method.graph.inputs, state.input);
    const Value* output = find_named(method.graph, method.graph.outputs, state.output);
    if (input == nullptr) return invalid("state: no input is named '{}'", state.input);
    if (output == nullptr) return invalid("state: no output is named '{}'", state.output);
    if (!(input->type == output->type)) {
      return invalid("state: expected output '{}' to have the type of input '{}', {}, found {}",
                     state.output, state.input, input->type.to_string(), output->type.to_string());
    }
    if (!inputs.insert(state.input).second)
      return invalid("state: input '{}' stands in two states", state.input);
    if (!outputs.insert(state.output).second)
      return invalid("state: output '{}' stands in two states", state.output);
    if (state.initial.is_defined() && state.initial.dtype() != input->type.dtype) {
      return invalid("state: expected a first value of {} for input '{}', found {}",
                     to_string(input->type.dtype), state.input, to_string(state.initial.dtype()));
    }
  }
  return {};
}

}  // namespace

Status verify(const Module& module) {
  Scope names;
  for (const Method& method : module.methods) {
    if (!names.insert(method.name).second)
      return invalid("method name '{}' is used twice", method.name);
    const std::string place = fmt::format("method '{}'", method.name);
    TESSERA_TRY_IN(verify_graph(method.graph, module), place);
    TESSERA_TRY_IN(verify_states(method), place);
  }
  return {};
}

}  // namespace tessera::ir
