#include "ir/infer.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/error.h"
#include "ir/describe.h"
#include "ir/refine_type.h"
#include "ir/verify.h"

namespace tessera::ir {
namespace {

// Integer tensors with at most so many elements are shape arithmetic; larger ones are data.
constexpr std::int64_t kMaxKnownElements = 1024;

// Constants of outer graphs that a body sees through its captures, by the body's own value ids.
using OuterConstants = std::map<ValueId, Tensor>;

struct GraphScope {
  Module& module;
  Graph& graph;
  const OuterConstants& outer;
  std::vector<Unknown>* unknown;  // null: not wanted
  int body_depth;                 // 0: the graph itself
};

Status infer_graph(const GraphScope& scope);

const Tensor* constant_of(const GraphScope& scope, ValueId id) {
  const Value& value = scope.graph.value(id);
  if (value.kind == ValueKind::kConstant) return &value.constant;
  const auto outer = scope.outer.find(id);
  return outer == scope.outer.end() ? nullptr : &outer->second;
}

std::optional<DimTensor> dims_of_constant(const Tensor& tensor) {
  const bool is_index = tensor.dtype() == DType::kInt64 || tensor.dtype() == DType::kInt32;
  if (!is_index || tensor.dims().size() > 1 || tensor.numel() > kMaxKnownElements)
    return std::nullopt;
  DimTensor known;
  known.scalar = tensor.dims().empty();
  for (const std::int64_t element : to_int64_vector(tensor.view()))
    known.elements.emplace_back(element);
  return known;
}

std::optional<DimTensor> known_of(const GraphScope& scope, ValueId id) {
  if (const Tensor* constant = constant_of(scope, id)) return dims_of_constant(*constant);
  return scope.graph.value(id).known;
}

ops::InferInput infer_input(const GraphScope& scope, ValueId id) {
  ops::InferInput input;
  if (id == kNoValue) return input;
  input.present = true;
  input.type = scope.graph.value(id).type;
  input.constant = constant_of(scope, id);
  input.value = known_of(scope, id);
  return input;
}

// ---- Bodies -------------------------------------------------------------------------------------

// Inference of one node's bodies. The operator may ask several times with types that grow more
// general (carried values of Loop), so each answer starts from what the body declared, not from the
// last answer.
class BodyInference {
 public:
  BodyInference(const GraphScope& scope, Node& node)
      : scope_(scope), node_(node), declared_(node.bodies.size()), unknown_(node.bodies.size()) {}

  Result<std::vector<ValueType>> infer(std::size_t index, std::span<const ValueType> formal_types) {
    TESSERA_CHECK(index < node_.bodies.size());
    Graph& body = *node_.bodies[index];
    restore(index);
    const auto& captured = node_.captures[index];
    if (formal_types.size() + captured.size() != body.inputs.size()) {
      return fail(
          ErrorCode::kInvalidArgument,
          "body '" + body.name + "': expected " + std::to_string(formal_types.size()) +
              " formal inputs, found " +
              std::to_string(body.inputs.size() - std::min(captured.size(), body.inputs.size())));
    }
    for (std::size_t i = 0; i < formal_types.size(); ++i)
      body.value(body.inputs[i]).type = formal_types[i];
    OuterConstants constants;
    for (std::size_t i = 0; i < captured.size(); ++i) {
      Value& inner = body.value(body.inputs[formal_types.size() + i]);
      inner.type = scope_.graph.value(captured[i]).type;
      inner.known = known_of(scope_, captured[i]);
      if (const Tensor* constant = constant_of(scope_, captured[i]))
        constants[inner.id] = *constant;
    }
    unknown_[index].clear();
    const GraphScope inner_scope{scope_.module, body, constants, &unknown_[index],
                                 scope_.body_depth + 1};
    TESSERA_TRY_IN(infer_graph(inner_scope), "body '" + body.name + "'");
    std::vector<ValueType> types;
    for (const ValueId id : body.outputs) types.push_back(body.value(id).type);
    return types;
  }

  void report(std::vector<Unknown>& into) const {
    for (const auto& list : unknown_) into.insert(into.end(), list.begin(), list.end());
  }

 private:
  using Declared = std::vector<std::pair<ValueType, std::optional<DimTensor>>>;

  // Bodies in the body too: what they are for one type of a state they need not be for the next.
  void restore(std::size_t index) {
    Declared& declared = declared_[index];
    const bool is_first = declared.empty();
    std::size_t at = 0;
    each_value(*node_.bodies[index], [&](Value& value) {
      if (is_first) {
        declared.emplace_back(value.type, value.known);
      } else {
        std::tie(value.type, value.known) = declared[at++];
      }
    });
  }

  template <typename Visit>
  static void each_value(Graph& graph, const Visit& visit) {
    for (ValueId id = 0; id < graph.value_count(); ++id) visit(graph.value(id));
    for (const auto& node : graph.nodes())
      for (const auto& body : node->bodies) each_value(*body, visit);
  }

  const GraphScope& scope_;
  Node& node_;
  std::vector<Declared> declared_;
  std::vector<std::vector<Unknown>> unknown_;
};

// ---- Nodes --------------------------------------------------------------------------------------

// Symbols made during one call of inference; those that no type took up are dropped again.
class FreshSymbols {
 public:
  explicit FreshSymbols(Module& module)
      : module_(module), first_made_(module.made_symbols.names.size()) {}

  Dim make(std::string_view hint) {
    const std::string stem = hint.empty() ? "size" : std::string(hint);
    std::uint32_t& number = module_.made_symbols.free_numbers[stem];
    std::string name = numbered(stem, number);
    while (module_.symbols.contains(name)) name = numbered(stem, ++number);
    module_.symbols.emplace(name, SymbolRange{});
    module_.made_symbols.names.push_back(name);
    names_.emplace(name, std::pair{stem, number++});
    return Dim::symbol(name);
  }

  [[nodiscard]] bool contains(std::string_view name) const { return names_.contains(name); }

  void keep(const ValueType& type) {
    if (!type.is_tensor()) return keep(*type.element);
    if (!type.shape) return;
    for (const Dim& dim : *type.shape) dim.collect_symbols(kept_);
  }
  void keep(const DimTensor& known) {
    for (const Dim& dim : known.elements) dim.collect_symbols(kept_);
  }

  // Types inside of a body may hold symbols of the node that the body belongs to (a carried value
  // that grows).
  void keep(const Graph& body) {
    if (names_.empty()) return;
    for (ValueId id = 0; id < body.value_count(); ++id) {
      keep(body.value(id).type);
      if (body.value(id).known) keep(*body.value(id).known);
    }
    for (const auto& node : body.nodes()) {
      for (const auto& inner : node->bodies) keep(*inner);
    }
  }

  void drop_unused() {
    auto& made = module_.made_symbols;
    for (const auto& [name, origin] : names_) {
      if (kept_.contains(name)) continue;
      module_.symbols.erase(name);
      std::uint32_t& free = made.free_numbers[origin.first];
      free = std::min(free, origin.second);
    }
    made.names.erase(std::remove_if(made.names.begin() + static_cast<std::ptrdiff_t>(first_made_),
                                    made.names.end(),
                                    [&](const std::string& name) {
                                      return names_.contains(name) && !kept_.contains(name);
                                    }),
                     made.names.end());
  }

 private:
  static std::string numbered(const std::string& stem, std::uint32_t number) {
    return number == 0 ? stem : stem + "_" + std::to_string(number);
  }

  Module& module_;
  std::size_t first_made_;  // where the symbols of this call begin among all that were made
  std::map<std::string, std::pair<std::string, std::uint32_t>, std::less<>>
      names_;  // with stem and number
  std::set<std::string, std::less<>> kept_;
};

// Why inference could not tell the shape of an output of `node`.
std::string reason_for(const GraphScope& scope, const Node& node) {
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNoValue) continue;
    const Value& input = scope.graph.value(node.inputs[i]);
    if (input.type.is_tensor() && !input.type.shape) {
      return "the rank of input '" + parameter_name(node.op->inputs, i) + "' ('" + input.name +
             "') is not known";
    }
  }
  for (const std::size_t i : node.op->shape_inputs) {
    if (i >= node.inputs.size() || node.inputs[i] == kNoValue) continue;
    if (constant_of(scope, node.inputs[i]) != nullptr || known_of(scope, node.inputs[i])) continue;
    return "the elements of input '" + parameter_name(node.op->inputs, i) + "' ('" +
           scope.graph.value(node.inputs[i]).name + "') are not known";
  }
  if (node.op->data_dependent_shape) return "the size depends on the data";
  return "the operator gives no shape";
}

Status apply_output(const GraphScope& scope, const Node& node, std::size_t index,
                    const ops::InferContext& context, FreshSymbols& fresh) {
  Value& output = scope.graph.value(node.outputs[index]);
  const IsFresh is_fresh = [&](std::string_view name) { return fresh.contains(name); };
  auto refined = refine_type(output.type, context.outputs[index], scope.module.symbols, is_fresh);
  if (!refined) {
    return tl::unexpected(in_context(
        std::move(refined).error(),
        "output '" + parameter_name(node.op->outputs, index) + "' ('" + output.name + "')"));
  }
  output.type = *std::move(refined);
  const auto& value = context.output_values[index];
  const bool says_new =
      value && std::none_of(value->elements.begin(), value->elements.end(),
                            [&](const Dim& dim) { return holds_fresh(dim, is_fresh); });
  if (says_new || !output.known) output.known = value;
  fresh.keep(output.type);
  if (output.known) fresh.keep(*output.known);

  if (scope.unknown == nullptr || !output.type.is_tensor()) return {};
  const auto& inferred = context.outputs[index].shape;
  const bool is_open =
      !output.type.shape ||
      (inferred && std::any_of(inferred->begin(), inferred->end(),
                               [&](const Dim& dim) { return holds_fresh(dim, is_fresh); }));
  if (is_open) scope.unknown->push_back({output.name, node.name, reason_for(scope, node)});
  return {};
}

Status infer_in_scope(const GraphScope& scope, Node& node) {
  // Inference functions rely on arity and the types of attributes.
  TESSERA_TRY(verify_signature(scope.graph, node));
  FreshSymbols fresh(scope.module);
  BodyInference bodies(scope, node);
  ops::InferContext context{*node.op, node.attributes, {}, {}, {}, {}, {}};
  for (const ValueId id : node.inputs) context.inputs.push_back(infer_input(scope, id));
  context.outputs.resize(node.outputs.size());
  context.output_values.resize(node.outputs.size());
  context.fresh_symbol = [&](std::string_view hint) { return fresh.make(hint); };
  context.body_depth = scope.body_depth;
  context.infer_body = [&](std::size_t index, std::span<const ValueType> types) {
    return bodies.infer(index, types);
  };
  if (node.op->infer != nullptr) TESSERA_TRY(node.op->infer(context));
  if (scope.unknown != nullptr) bodies.report(*scope.unknown);
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] != kNoValue) TESSERA_TRY(apply_output(scope, node, i, context, fresh));
  }
  for (const auto& body : node.bodies) fresh.keep(*body);
  fresh.drop_unused();
  return {};
}

Status infer_graph(const GraphScope& scope) {
  for (const auto& node : scope.graph.nodes())
    TESSERA_TRY_IN(infer_in_scope(scope, *node), describe(*node));
  return {};
}

}  // namespace

Status infer_node(Module& module, Graph& graph, Node& node) {
  const OuterConstants none;
  TESSERA_TRY_IN(infer_in_scope({module, graph, none, nullptr, 0}, node), describe(node));
  return {};
}

Result<std::vector<Unknown>> infer(Module& module) {
  std::vector<Unknown> unknown;
  const OuterConstants none;
  for (Method& method : module.methods)
    TESSERA_TRY(infer_graph({module, method.graph, none, &unknown, 0}));
  return unknown;
}

}  // namespace tessera::ir
