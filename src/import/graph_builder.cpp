// Graphs: inputs, initializers, declared types, bodies, outputs.

#include "import/graph_builder.h"

#include <fmt/format.h>

#include <utility>

#include "base/error.h"
#include "import/graph_names.h"
#include "io/onnx.pb.h"
#include "ops/op_table.h"

namespace tessera::importer {
namespace {

std::string input_place(const std::string& name) {
  return "input '" + name + "'";
}

// Some exporters write an empty type where they know none.
bool declares_type(const onnx::ValueInfoProto& value) {
  if (value.type().value_case() == onnx::TypeProto::VALUE_NOT_SET) return false;
  return !value.type().has_tensor_type() || value.type().tensor_type().elem_type() != 0;
}

template <typename Protos>
std::string list_names(const Protos& protos) {
  std::string text;
  for (const auto& proto : protos)
    text += fmt::format("{}'{}'", text.empty() ? "" : ", ", proto.name());
  return text.empty() ? "none" : text;
}

template <typename Protos>
const auto* find_named(const Protos& protos, const std::string& name) {
  const auto found = std::find_if(protos.begin(), protos.end(),
                                  [&](const auto& proto) { return proto.name() == name; });
  return found == protos.end() ? nullptr : &*found;
}

tl::unexpected<Error> nobody_makes(const std::string& name) {
  return fail(ErrorCode::kNotFound,
              fmt::format("graph output '{}': no node, input or initializer makes it", name));
}

// What a body's formal input is where it declares no type: Loop's counter and condition, else an
// element of what the node reads.
ValueType formal_type(const ops::OpSchema& op, int since_version, std::size_t index,
                      const std::vector<ir::ValueId>& inputs, const ir::Graph& graph) {
  if (op.name == "Loop" && index == 0) return ValueType::tensor(DType::kInt64, Shape{});
  if (op.name == "Loop" && index == 1) return ValueType::tensor(DType::kBool, Shape{});
  const std::size_t source = op.name == "Scan" && since_version < 9 ? index + 1 : index;
  if (source >= inputs.size() || inputs[source] == ir::kNoValue) return {};
  const ValueType& type = graph.value(inputs[source]).type;
  return type.is_tensor() ? ValueType::tensor(type.dtype, std::nullopt) : type;
}

}  // namespace

void forget_types(ir::Graph& body) {
  for (ir::ValueId id = 0; id < body.value_count(); ++id) {
    ir::Value& value = body.value(id);
    if (value.kind != ir::ValueKind::kNodeOutput) continue;
    value.type = ValueType();
    value.known.reset();
  }
  for (const auto& node : body.nodes()) {
    for (const auto& inner : node->bodies) forget_types(*inner);
  }
}

GraphBuilder::GraphBuilder(ir::Module& module, const Library& library, ExternalData& external,
                           ImportBudget& budget)
    : module_(module),
      library_(library),
      budget_(budget),
      constants_(external, budget),
      types_(module.symbols, budget),
      emitter_(module, budget) {}

// ---- The model's own graph ----------------------------------------------------------------------

Status GraphBuilder::build_main(onnx::GraphProto& proto, const ImportOptions& options,
                                ir::Graph& graph) {
  graph.name = proto.name();
  declared_shapes_hold_ = options.input_shapes.empty();
  GraphContext context(graph, budget_);
  Scope scope;
  scope.context = &context;
  scope.opsets = &library_.opsets();
  const NodeList list = list_of(proto);
  TESSERA_TRY(reserve_names(list, context));
  TESSERA_TRY(types_.reserve_names(proto));
  TESSERA_TRY(check_input_names(proto));
  TESSERA_TRY(check_output_names(proto));
  TESSERA_TRY(fix_input_shapes(proto, options));
  TESSERA_TRY(add_main_inputs(proto, options, scope));
  for (auto& tensor : *proto.mutable_initializer()) {
    const std::string name = tensor.name();
    TESSERA_ASSIGN(Tensor elements, constants_.read(std::move(tensor)));
    TESSERA_TRY(add_initializer(scope, name, std::move(elements)));
  }
  TESSERA_TRY(add_sparse_initializers(proto, scope));
  TESSERA_TRY(read_hints(proto, scope));
  TESSERA_TRY(build_nodes(list, scope));
  return finish_main(proto, scope);
}

Status GraphBuilder::fix_input_shapes(const onnx::GraphProto& proto, const ImportOptions& options) {
  const auto initializers = initializer_names(proto);
  for (const auto& [name, sizes] : options.input_shapes) {
    const onnx::ValueInfoProto* input = find_named(proto.input(), name);
    if (input == nullptr || initializers.contains(name)) {
      return fail(ErrorCode::kNotFound,
                  fmt::format("shape of input '{}': the model has no such input; it has {}", name,
                              list_names(proto.input())));
    }
    for (const Dim& size : sizes) types_.add_symbols(size);
    if (!input->type().tensor_type().has_shape()) continue;
    const auto& declared = input->type().tensor_type().shape();
    if (static_cast<std::size_t>(declared.dim_size()) != sizes.size()) {
      return fail(
          ErrorCode::kInvalidArgument,
          fmt::format("shape of input '{}': expected {} sizes, as the model declares, found {}",
                      name, declared.dim_size(), sizes.size()));
    }
    for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
      const std::string& symbol = declared.dim(static_cast<int>(axis)).dim_param();
      if (!symbol.empty() && symbol != kUnknownSize)
        TESSERA_TRY_IN(types_.fix(symbol, sizes[axis]), input_place(name));
    }
  }
  return {};
}

Status GraphBuilder::add_main_inputs(const onnx::GraphProto& proto, const ImportOptions& options,
                                     Scope& scope) {
  const auto initializers = initializer_names(proto);
  for (const auto& input : proto.input()) {
    if (initializers.contains(input.name())) continue;
    auto type = types_.read(input.type(), input.name());
    if (!type)
      return tl::unexpected(in_context(std::move(type).error(), input_place(input.name())));
    const auto given = options.input_shapes.find(input.name());
    if (given != options.input_shapes.end() && type->is_tensor()) type->shape = given->second;
    TESSERA_ASSIGN(const ir::ValueId id, scope.context->add_input(input.name(), *std::move(type)));
    scope.names.emplace(input.name(), id);
  }
  return {};
}

Status GraphBuilder::finish_main(const onnx::GraphProto& proto, Scope& scope) {
  ir::Graph& graph = *scope.context->graph;
  TESSERA_TRY(check_replaced_inputs(proto, scope));
  TESSERA_TRY(check_value_infos(proto, scope));
  for (const auto& output : proto.output()) {
    TESSERA_ASSIGN(const auto id, scope.find(output.name()));
    if (!id) return nobody_makes(output.name());
    ir::ValueId produced = *id;
    if (graph.value(produced).name != output.name()) {
      NewNode identity;
      identity.op = ops::find_op("", "Identity");
      identity.name = output.name() + "/Identity";
      identity.inputs = {produced};
      identity.outputs = {output.name()};
      identity.origin = scope.aliases.at(output.name());
      TESSERA_ASSIGN(const auto made, emitter_.emit(*scope.context, std::move(identity)));
      produced = made.front();
    }
    graph.outputs.push_back(produced);
    const auto hint = scope.hints.find(output.name());
    if (hint == scope.hints.end() || !declared_shapes_hold_) continue;
    TESSERA_TRY(check_declared(graph.value(produced).type, hint->second,
                               fmt::format("graph output '{}'", output.name())));
  }
  return {};
}

// ---- What graphs and bodies share ---------------------------------------------------------------

Status GraphBuilder::reserve_names(const NodeList& list, GraphContext& context) {
  constexpr std::uint64_t kReservedBytes = 120;  // in the sets and lists of names
  const auto reserve = [&](std::string_view name) -> Status {
    TESSERA_TRY(budget_.take(ImportBudget::Use::kValues, kReservedBytes + name.size(), 0));
    context.reserve_value_name(std::string(name));
    return {};
  };
  for (const std::string_view name : list.inputs) TESSERA_TRY(reserve(name));
  for (const onnx::NodeProto* node : list.nodes) {
    for (const std::string& name : node->output()) TESSERA_TRY(reserve(name));
  }
  return {};
}

Status GraphBuilder::add_initializer(Scope& scope, const std::string& name, Tensor tensor) {
  if (name.empty())
    return fail(ErrorCode::kInvalidArgument,
                "expected a name for each initializer, found an empty one");
  TESSERA_ASSIGN(const ir::ValueId id, scope.context->add_constant(name, std::move(tensor)));
  if (scope.names.emplace(name, id).second) return {};
  return fail(ErrorCode::kAlreadyExists, fmt::format("initializer '{}' stands there twice", name));
}

Status GraphBuilder::add_sparse_initializers(const onnx::GraphProto& proto, Scope& scope) {
  for (const auto& sparse : proto.sparse_initializer()) {
    TESSERA_ASSIGN(Tensor tensor, constants_.read(sparse));
    TESSERA_TRY(add_initializer(scope, sparse.values().name(), std::move(tensor)));
  }
  return {};
}

Status GraphBuilder::read_hints(const onnx::GraphProto& proto, Scope& scope) {
  constexpr std::uint64_t kHintBytes = 200;  // a declared type, beside its sizes
  for (const auto* list : {&proto.value_info(), &proto.output()}) {
    for (const auto& value : *list) {
      if (!declares_type(value)) continue;  // inference types the value
      auto hint = types_.read_hint(value.type());
      if (!hint)
        return tl::unexpected(
            in_context(std::move(hint).error(), fmt::format("type of value '{}'", value.name())));
      TESSERA_TRY(budget_.take(ImportBudget::Use::kValues, kHintBytes + value.name().size()));
      scope.hints.insert_or_assign(value.name(), *std::move(hint));
    }
  }
  return {};
}

Status GraphBuilder::check_value_infos(const onnx::GraphProto& proto, const Scope& scope) const {
  if (!declared_shapes_hold_) return {};
  for (const auto& value : proto.value_info()) {
    const auto hint = scope.hints.find(value.name());
    const auto id = scope.names.find(value.name());
    if (hint == scope.hints.end() || id == scope.names.end() || id->second == ir::kNoValue)
      continue;
    TESSERA_TRY(check_declared(scope.context->graph->value(id->second).type, hint->second,
                               fmt::format("value '{}'", value.name())));
  }
  return {};
}

Status GraphBuilder::check_replaced_inputs(const onnx::GraphProto& proto, const Scope& scope) {
  const auto initializers = initializer_names(proto);
  for (const auto& input : proto.input()) {
    if (!initializers.contains(input.name()) || !declares_type(input)) continue;
    auto declared = types_.read_hint(input.type());
    if (!declared)
      return tl::unexpected(in_context(std::move(declared).error(), input_place(input.name())));
    const ir::ValueId id = scope.names.find(input.name())->second;
    TESSERA_TRY(check_declared(scope.context->graph->value(id).type, *declared,
                               fmt::format("initializer '{}'", input.name())));
  }
  return {};
}

// ---- Bodies -------------------------------------------------------------------------------------

Status GraphBuilder::add_formal_inputs(const onnx::GraphProto& proto, Scope& scope,
                                       const Pending& owner) {
  TESSERA_TRY(check_input_names(proto));
  for (std::size_t i = 0; i < static_cast<std::size_t>(proto.input_size()); ++i) {
    const auto& input = proto.input(static_cast<int>(i));
    Result<ValueType> type = declares_type(input)
                                 ? types_.read(input.type(), input.name())
                                 : formal_type(*owner.op, owner.since_version, i, owner.inputs,
                                               *owner.scope.context->graph);
    if (!type)
      return tl::unexpected(in_context(std::move(type).error(), input_place(input.name())));
    TESSERA_ASSIGN(const ir::ValueId id, scope.context->add_input(input.name(), *std::move(type)));
    scope.names.emplace(input.name(), id);
  }
  return {};
}

Status GraphBuilder::wrap_states(Body& body, GraphContext& context, const Pending& owner) {
  constexpr std::size_t kFirstInput = 2;   // behind the counter and the condition
  constexpr std::size_t kFirstOutput = 1;  // behind the condition
  ir::Graph& graph = *body.graph;
  for (std::size_t i = 0; i + kFirstOutput < graph.outputs.size(); ++i) {
    if (i + kFirstInput >= owner.inputs.size() || i + kFirstInput >= graph.inputs.size()) break;
    const ValueType& before = graph.value(graph.inputs[i + kFirstInput]).type;
    const ValueType& after = graph.value(graph.outputs[i + kFirstOutput]).type;
    const bool known = !after.is_tensor() || after.dtype != DType::kUndefined;
    if (before.kind != ValueType::Kind::kOptional || !known || after.kind == before.kind) continue;
    NewNode wrap;
    wrap.op = ops::find_op("", "Optional");
    wrap.name = owner.name + "/Optional";
    wrap.inputs = {graph.outputs[i + kFirstOutput]};
    wrap.outputs = {context.unique_value_name(wrap.name + "_out")};
    wrap.origin = owner.origin;
    TESSERA_ASSIGN(const auto made, emitter_.emit(context, std::move(wrap)));
    graph.outputs[i + kFirstOutput] = made.front();
    body.wrapped.push_back(i);
  }
  return {};
}

Result<GraphBuilder::Body> GraphBuilder::build_body(const onnx::GraphProto& proto, Scope& lexical,
                                                    const Pending& owner) {
  Body body;
  body.graph = std::make_unique<ir::Graph>();
  body.graph->name = proto.name();
  GraphContext context(*body.graph, budget_);
  context.parent = owner.scope.context;
  Scope scope;
  scope.context = &context;
  scope.outer = &lexical;
  scope.opsets = lexical.opsets;
  scope.attributes = lexical.attributes;
  scope.node_prefix = lexical.node_prefix;
  scope.call_depth = owner.scope.call_depth;
  const NodeList list = list_of(proto);
  TESSERA_TRY(reserve_names(list, context));
  TESSERA_TRY(add_formal_inputs(proto, scope, owner));
  const auto formal = input_names(proto);
  for (const auto& tensor : proto.initializer()) {
    if (formal.contains(tensor.name())) continue;  // always fed
    TESSERA_ASSIGN(Tensor elements, constants_.read(tensor));
    TESSERA_TRY(add_initializer(scope, tensor.name(), std::move(elements)));
  }
  TESSERA_TRY(add_sparse_initializers(proto, scope));
  TESSERA_TRY(read_hints(proto, scope));
  TESSERA_TRY(build_nodes(list, scope));
  TESSERA_TRY(check_value_infos(proto, scope));
  for (const auto& output : proto.output()) {
    TESSERA_ASSIGN(const auto id, scope.find(output.name()));
    if (!id || *id == ir::kNoValue) return nobody_makes(output.name());
    body.graph->outputs.push_back(*id);
  }
  if (owner.op->name == "Loop") TESSERA_TRY(wrap_states(body, context, owner));
  forget_types(*body.graph);
  body.captures = std::move(context.capture_sources);
  return body;
}

}  // namespace tessera::importer
