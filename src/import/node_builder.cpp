// Nodes: names to values, attributes, bodies, upgrades, local functions expanded.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "import/graph_builder.h"
#include "import/upgrade.h"
#include "io/onnx.pb.h"
#include "ops/op_table.h"

namespace tessera::importer {
namespace {

std::string node_place(const std::string& name, const onnx::NodeProto& node) {
  return fmt::format("node '{}' ({})", shown_name(name),
                     qualified_name(node.domain(), node.op_type()));
}

// The names of a node's outputs without omitted ones at the end.
std::vector<std::string> output_names(const onnx::NodeProto& node) {
  std::vector<std::string> names(node.output().begin(), node.output().end());
  while (!names.empty() && names.back().empty()) names.pop_back();
  return names;
}

ops::UpgradeNode to_upgrade_node(const ops::OpSchema& op, const std::vector<ir::ValueId>& inputs,
                                 ops::Attributes attributes,
                                 const std::vector<std::string>& outputs) {
  ops::UpgradeNode node;
  node.op_type = std::string(op.name);
  node.attributes = std::move(attributes);
  node.inputs = to_operands(inputs);
  node.output_count = outputs.size();
  for (const std::string& name : outputs) node.output_used.push_back(!name.empty());
  return node;
}

// Upgrades rely on a first input where the operator always has one.
Status check_first_input(const ops::OpSchema& op, const std::vector<ir::ValueId>& inputs) {
  const bool needs_one =
      !op.inputs.empty() && op.inputs.front().arity == ops::FormalParam::Arity::kRequired;
  if (!needs_one || (!inputs.empty() && inputs.front() != ir::kNoValue)) return {};
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("input '{}': is required, but omitted", op.inputs.front().name));
}

}  // namespace

Status GraphBuilder::build_nodes(const NodeList& list, Scope& scope) {
  TESSERA_TRY(budget_.require(ImportBudget::Use::kNodes, ordering_bytes(list)));
  TESSERA_ASSIGN(const std::vector<std::size_t> order, order_nodes(list));
  for (const std::size_t index : order) TESSERA_TRY(build_node(*list.nodes[index], index, scope));
  return {};
}

Status GraphBuilder::build_node(const onnx::NodeProto& node, std::size_t index, Scope& scope) {
  const std::string name = scope.node_prefix + node_name(node, index);
  const std::string place = node_place(name, node);
  if (is_constant(node)) {
    TESSERA_TRY_IN(build_constant(node, scope), place);
    return {};
  }
  const Resolved resolved = library_.resolve(node, *scope.opsets);
  if (resolved.function != nullptr) return expand_function(node, *resolved.function, name, scope);
  if (resolved.op == nullptr) {
    TESSERA_TRY_IN(Status(fail(ErrorCode::kUnimplemented, resolved.unsupported.reason)), place);
  }
  auto inputs = find_inputs(node, scope);
  if (!inputs) return tl::unexpected(in_context(std::move(inputs).error(), place));
  emitter_.remember_symbols();
  const ir::OriginId origin =
      emitter_.add_source_node(name, qualified_name(node.domain(), node.op_type()));
  TESSERA_TRY(build_operator({node,
                              scope,
                              name,
                              place,
                              resolved.op,
                              resolved.since_version,
                              *std::move(inputs),
                              output_names(node),
                              {},
                              {},
                              origin}));
  TESSERA_TRY_IN(apply_hints(node, scope), place);
  return {};
}

Status GraphBuilder::build_constant(const onnx::NodeProto& node, Scope& scope) {
  if (node.input_size() != 0 || node.output_size() != 1 || node.output(0).empty()) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("expected no inputs and one output, found {} and {}", node.input_size(),
                            node.output_size()));
  }
  TESSERA_ASSIGN(const BoundAttributes attributes, bind_attributes(node, scope));
  TESSERA_ASSIGN(Tensor tensor, read_constant(attributes, constants_, types_));
  const std::string& name = node.output(0);
  TESSERA_ASSIGN(const ir::ValueId id,
                 scope.context->add_constant(scope.value_name(name), std::move(tensor)));
  scope.names.insert_or_assign(name, id);
  return {};
}

Result<std::vector<ir::ValueId>> GraphBuilder::find_inputs(const onnx::NodeProto& node,
                                                           Scope& scope) const {
  std::vector<ir::ValueId> inputs;
  for (int i = 0; i < node.input_size(); ++i) {
    const std::string& name = node.input(i);
    std::optional<ir::ValueId> id = ir::kNoValue;
    if (!name.empty()) {
      TESSERA_ASSIGN(id, scope.find(name));
    }
    if (!id) {
      return fail(ErrorCode::kNotFound,
                  fmt::format("input {} '{}': no node, input or initializer makes it", i, name));
    }
    inputs.push_back(*id);
  }
  while (!inputs.empty() && inputs.back() == ir::kNoValue) inputs.pop_back();
  return inputs;
}

Status GraphBuilder::apply_hints(const onnx::NodeProto& node, Scope& scope) {
  if (scope.hints.empty()) return {};
  const auto fresh = emitter_.fresh_symbols();
  for (const std::string& name : node.output()) {
    const auto hint = scope.hints.find(name);
    const auto id = scope.names.find(name);
    if (hint == scope.hints.end() || id == scope.names.end()) continue;
    ir::Value& value = scope.context->graph->value(id->second);
    if (value.kind != ir::ValueKind::kNodeOutput) continue;
    TESSERA_TRY(apply_hint(value.type, hint->second, name, fresh, types_));
  }
  return {};
}

// ---- Operators ----------------------------------------------------------------------------------

Status GraphBuilder::build_operator(Pending node) {
  TESSERA_TRY_IN(check_first_input(*node.op, node.inputs), node.place);
  TESSERA_TRY_IN(read_attributes(node), node.place);
  if (has_inlined_body(node)) {
    TESSERA_TRY_IN(build_inlined(node), node.place);
    return {};
  }
  auto bodies = build_bodies(node);
  if (!bodies) return tl::unexpected(in_context(std::move(bodies).error(), node.place));
  NodeUpgrade upgrade(emitter_, *node.scope.context, node.name, node.origin);
  ops::UpgradeNode upgraded =
      to_upgrade_node(*node.op, node.inputs, std::move(node.attributes), node.outputs);
  TESSERA_TRY_IN(upgrade.apply(*node.op, node.since_version,
                               node.scope.opsets->version(node.proto.domain()), upgraded),
                 node.place);
  if (!upgraded.replacement) return emit_operator(node, std::move(upgraded), *std::move(bodies));
  TESSERA_TRY_IN(bind_replacement(node, upgrade, *upgraded.replacement), node.place);
  return {};
}

Status GraphBuilder::read_attributes(Pending& node) {
  TESSERA_ASSIGN(const BoundAttributes bound, bind_attributes(node.proto, node.scope));
  for (const auto& [name, attribute] : bound) {
    if (holds_graph(*attribute.proto)) {
      node.graphs.emplace(name, attribute);
      continue;
    }
    TESSERA_ASSIGN(auto value, read_attribute(name, *attribute.proto, constants_, types_));
    node.attributes.set(name, std::move(value));
  }
  return check_attribute_types(*node.op, node.since_version, node.attributes);
}

Result<std::vector<GraphBuilder::Body>> GraphBuilder::build_bodies(const Pending& node) {
  std::vector<Body> bodies;
  for (const ops::FormalAttr& formal : node.op->attributes) {
    if (formal.type != ops::AttrType::kGraph) continue;
    const auto found = node.graphs.find(formal.name);
    if (found == node.graphs.end()) {
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("attribute '{}': expected a graph, found none", formal.name));
    }
    auto body = build_body(found->second.proto->g(), *found->second.scope, node);
    if (!body)
      return tl::unexpected(
          in_context(std::move(body).error(), fmt::format("attribute '{}'", formal.name)));
    bodies.push_back(*std::move(body));
  }
  if (bodies.size() == node.graphs.size()) return bodies;
  for (const auto& [name, graph] : node.graphs) {
    const bool is_formal = std::any_of(
        node.op->attributes.begin(), node.op->attributes.end(), [&name = name](const auto& formal) {
          return formal.name == name && formal.type == ops::AttrType::kGraph;
        });
    if (!is_formal)
      return fail(
          ErrorCode::kInvalidArgument,
          fmt::format("attribute '{}': found a graph, which the operator does not take", name));
  }
  return bodies;
}

Status GraphBuilder::emit_operator(Pending& node, ops::UpgradeNode upgraded,
                                   std::vector<Body> bodies) {
  NewNode added;
  added.op = ops::find_op(node.op->domain, upgraded.op_type);
  if (added.op == nullptr) added.op = ops::find_op("", upgraded.op_type);
  TESSERA_CHECK(added.op != nullptr);
  added.name = node.name;
  added.attributes = std::move(upgraded.attributes);
  added.inputs = to_values(upgraded.inputs);
  added.origin = node.origin;
  std::vector<std::size_t> wrapped;
  for (Body& body : bodies) {
    wrapped.insert(wrapped.end(), body.wrapped.begin(), body.wrapped.end());
    added.bodies.push_back(std::move(body.graph));
    added.captures.push_back(std::move(body.captures));
  }
  for (const std::string& name : node.outputs)
    added.outputs.push_back(name.empty() ? name : node.scope.value_name(name));
  for (const std::size_t index : wrapped) {
    if (index < added.outputs.size() && !added.outputs[index].empty())
      added.outputs[index] = node.scope.context->unique_value_name(node.name + "/optional");
  }
  TESSERA_ASSIGN(const auto outputs, emitter_.emit(*node.scope.context, std::move(added)));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!node.outputs[i].empty()) node.scope.names.insert_or_assign(node.outputs[i], outputs[i]);
  }
  for (const std::size_t index : wrapped) {
    if (index < node.outputs.size() && !node.outputs[index].empty())
      TESSERA_TRY(unwrap_state(node, index, outputs[index]));
  }
  return {};
}

Status GraphBuilder::unwrap_state(Pending& node, std::size_t index, ir::ValueId state) {
  NewNode unwrap;
  unwrap.op = ops::find_op("", "OptionalGetElement");
  unwrap.name = node.name + "/OptionalGetElement";
  unwrap.inputs = {state};
  unwrap.outputs = {node.scope.value_name(node.outputs[index])};
  unwrap.origin = node.origin;
  TESSERA_ASSIGN(const auto made, emitter_.emit(*node.scope.context, std::move(unwrap)));
  node.scope.names.insert_or_assign(node.outputs[index], made.front());
  return {};
}

Status GraphBuilder::bind_replacement(Pending& node, const NodeUpgrade& upgrade,
                                      const std::vector<ops::Operand>& values) {
  if (values.size() < node.outputs.size()) {
    return fail(ErrorCode::kInvalidArgument, fmt::format("expected at most {} outputs, found {}",
                                                         values.size(), node.outputs.size()));
  }
  std::set<ir::ValueId> named;
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    const std::string& name = node.outputs[i];
    if (name.empty()) continue;
    const auto id = static_cast<ir::ValueId>(values[i]);
    if (id == ir::kNoValue)
      return fail(ErrorCode::kUnimplemented,
                  fmt::format("output {} ('{}') has no equivalent in the newest opset", i, name));
    if (upgrade.made(id) && named.insert(id).second) {
      node.scope.context->graph->rename_value(id, node.scope.value_name(name));
      node.scope.names.insert_or_assign(name, id);
    } else {
      bind(node.scope, name, id, node.origin);
    }
  }
  return {};
}

// `name` means a value that bears another name.
void GraphBuilder::bind(Scope& scope, const std::string& name, ir::ValueId id,
                        ir::OriginId origin) {
  scope.names.insert_or_assign(name, id);
  scope.aliases.insert_or_assign(name, origin);
}

// ---- Local functions ----------------------------------------------------------------------------

Status GraphBuilder::expand_function(const onnx::NodeProto& node, const Function& function,
                                     const std::string& name, Scope& scope) {
  const std::string place = node_place(name, node);
  const onnx::FunctionProto& proto = *function.proto;
  const auto refuse = [&](ErrorCode code, std::string message) {
    return tl::unexpected(in_context(Error{code, std::move(message), {}}, place));
  };
  if (scope.call_depth >= kMaxCallDepth) {
    return refuse(
        ErrorCode::kResourceExhausted,
        fmt::format("calls of local functions nest deeper than {} levels", kMaxCallDepth));
  }
  if (node.input_size() > proto.input_size() || node.output_size() > proto.output_size()) {
    return refuse(
        ErrorCode::kInvalidArgument,
        fmt::format(
            "local function '{}': expected at most {} inputs and {} outputs, found {} and {}",
            function.name(), proto.input_size(), proto.output_size(), node.input_size(),
            node.output_size()));
  }
  TESSERA_TRY(budget_.take(ImportBudget::Use::kNodes, kNameCopies * name.size(), /*count=*/0));
  auto inputs = find_inputs(node, scope);
  if (!inputs) return tl::unexpected(in_context(std::move(inputs).error(), place));
  auto attributes = bind_attributes(node, scope);
  if (!attributes) return tl::unexpected(in_context(std::move(attributes).error(), place));

  Scope inner;
  inner.context = scope.context;
  inner.opsets = &function.opsets;
  inner.attributes = &*attributes;
  inner.node_prefix = name + "/";
  inner.value_prefix = name + "/";
  inner.call_depth = scope.call_depth + 1;
  for (const auto& preset : proto.attribute_proto())
    attributes->emplace(preset.name(), BoundAttribute{&preset, &inner});
  for (std::size_t i = 0; i < static_cast<std::size_t>(proto.input_size()); ++i) {
    inner.names.emplace(proto.input(static_cast<int>(i)),
                        i < inputs->size() ? (*inputs)[i] : ir::kNoValue);
  }
  for (int i = 0; i < node.output_size(); ++i) {
    if (!node.output(i).empty())
      inner.renames.emplace(proto.output(i), scope.value_name(node.output(i)));
  }
  auto built = build_nodes(list_of(proto), inner);
  if (built) built = bind_function_outputs(node, function, name, inner, scope);
  if (!built)
    return tl::unexpected(
        in_context(std::move(built).error(), fmt::format("local function '{}'", function.name())));
  return {};
}

Status GraphBuilder::bind_function_outputs(const onnx::NodeProto& node, const Function& function,
                                           const std::string& name, Scope& inner, Scope& scope) {
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty()) continue;
    const std::string& formal = function.proto->output(i);
    TESSERA_ASSIGN(const auto id, inner.find(formal));
    if (!id || *id == ir::kNoValue) {
      return fail(ErrorCode::kNotFound,
                  fmt::format("output '{}': no node or input makes it", formal));
    }
    const bool bears_name = scope.context->graph->value(*id).name == inner.renames.at(formal);
    if (bears_name) {
      scope.names.insert_or_assign(node.output(i), *id);
    } else {
      bind(scope, node.output(i), *id,
           emitter_.add_source_node(name, qualified_name(node.domain(), node.op_type())));
    }
  }
  return {};
}

}  // namespace tessera::importer
