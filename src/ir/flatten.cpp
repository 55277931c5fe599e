#include "ir/flatten.h"

#include <algorithm>

namespace tessera::ir {
namespace {

// Inputs that the operator names one by one, before its variadic ones.
std::size_t named_inputs(const ops::OpSchema& op) {
  return static_cast<std::size_t>(
      std::ranges::count_if(op.inputs, [](const ops::FormalParam& formal) {
        return formal.arity != ops::FormalParam::Arity::kVariadic;
      }));
}

class Flattener {
 public:
  explicit Flattener(const FlattenOptions& options) : options_(options) {}

  Graph run(const Graph& source) {
    graph_.name = source.name;
    graph_.blocks.emplace_back();
    reserve_names(source);
    Env env;
    for (const ValueId id : source.inputs) {
      env[id] = graph_.add_input(source.value(id).name, source.value(id).type);
      graph_.value(env[id]).known = source.value(id).known;
    }
    add_nodes(source, 0, env);
    for (const ValueId id : source.outputs) graph_.outputs.push_back(mapped(source, id, env));
    return std::move(graph_);
  }

 private:
  using Env = std::map<ValueId, ValueId>;  // of one source graph, to the flat one

  void reserve_names(const Graph& source) {
    for (ValueId id = 0; id < source.value_count(); ++id) names_.insert(source.value(id).name);
    for (const auto& node : source.nodes()) names_.insert(node->name);
  }
  std::string name_for(const std::string& stem, std::uint32_t block) {
    if (block == 0) return stem;
    std::string name = stem;
    while (!names_.insert(name).second) name = stem + "_" + std::to_string(++counters_[stem]);
    return name;
  }
  ValueId mapped(const Graph& source, ValueId id, Env& env) {
    if (id == kNoValue) return kNoValue;
    if (const auto known = env.find(id); known != env.end()) return known->second;
    const Value& value = source.value(id);
    TESSERA_CHECK(value.kind == ValueKind::kConstant);
    return env[id] = graph_.add_constant(value.name, value.constant);
  }
  // How often one body runs for each run of its node.
  double runs_of(const Graph& source, const Node& node) const;
  void add_nodes(const Graph& source, std::uint32_t block, Env& env);
  void add_body(const Graph& source, const Node& node, std::size_t index, std::uint32_t block,
                Env& env);
  void add_node(const Graph& source, const Node& node, std::uint32_t block, Env& env);

  const FlattenOptions& options_;
  Graph graph_;
  std::set<std::string> names_;
  std::map<std::string, int> counters_;
  std::vector<std::uint32_t> open_;  // the blocks of the control node that is added next
};

double Flattener::runs_of(const Graph& source, const Node& node) const {
  if (node.op->name == "If") return options_.branch_share;
  const auto assumed = static_cast<double>(options_.trips);
  if (node.op->name == "Loop") {
    if (node.inputs.empty() || node.inputs[0] == kNoValue) return assumed;
    const Value& trips = source.value(node.inputs[0]);
    if (trips.kind == ValueKind::kConstant && trips.constant.numel() == 1)
      return std::min(static_cast<double>(to_int64_vector(trips.constant.view()).front()), 1e6);
    return assumed;
  }
  const auto scanned = static_cast<std::size_t>(node.attributes.get_int("num_scan_inputs", 1));
  const auto axes = node.attributes.get_ints("scan_input_axes");
  const Value& first = source.value(node.inputs[node.inputs.size() - scanned]);
  if (!first.type.shape || first.type.shape->empty()) return assumed;
  const auto rank = static_cast<std::int64_t>(first.type.shape->size());
  const std::int64_t axis = axes.empty() ? 0 : (axes[0] + rank) % rank;
  const auto size = (*first.type.shape)[static_cast<std::size_t>(axis)].constant();
  return size ? static_cast<double>(*size) : assumed;
}

void Flattener::add_nodes(const Graph& source, std::uint32_t block, Env& env) {
  for (const auto& node : source.nodes()) {
    std::vector<std::uint32_t> blocks;
    for (std::size_t i = 0; i < node->bodies.size(); ++i) {
      blocks.push_back(static_cast<std::uint32_t>(graph_.blocks.size()));
      add_body(source, *node, i, block, env);
    }
    open_ = std::move(blocks);
    add_node(source, *node, block, env);
  }
}

void Flattener::add_body(const Graph& source, const Node& node, std::size_t index,
                         std::uint32_t block, Env& env) {
  const Graph& body = *node.bodies[index];
  const auto number = static_cast<std::uint32_t>(graph_.blocks.size());
  Block& made = graph_.blocks.emplace_back();
  made.parent = block;
  made.weight = graph_.blocks[block].weight * runs_of(source, node);
  made.name = node.op->attributes.size() > index ? std::string(node.op->attributes[index].name)
                                                 : std::string("body");
  Env inner;
  const auto& captured = node.captures[index];
  const std::size_t formal = body.inputs.size() - captured.size();
  for (std::size_t i = 0; i < formal; ++i) {
    const Value& value = body.value(body.inputs[i]);
    const ValueId argument = graph_.add_argument(name_for(value.name, number), value.type, number);
    graph_.value(argument).known = value.known;
    inner[value.id] = argument;
    graph_.blocks[number].arguments.push_back(argument);
  }
  for (std::size_t i = 0; i < captured.size(); ++i)
    inner[body.inputs[formal + i]] = mapped(source, captured[i], env);
  add_nodes(body, number, inner);
  for (const ValueId id : body.outputs) {
    const ValueId result = mapped(body, id, inner);
    graph_.blocks[number].results.push_back(result);
  }
}

void Flattener::add_node(const Graph& source, const Node& node, std::uint32_t block, Env& env) {
  const std::vector<std::uint32_t> blocks = std::move(open_);
  Node made;
  made.op = node.op;
  made.name = name_for(node.name, block);
  made.attributes = node.attributes;
  made.origins = node.origins;
  made.block = block;
  for (const ValueId id : node.inputs) made.inputs.push_back(mapped(source, id, env));
  if (!blocks.empty())
    made.inputs.resize(std::max(made.inputs.size(), named_inputs(*node.op)), kNoValue);
  for (const std::uint32_t inner : blocks)
    for (const ValueId id : graph_.blocks[inner].results) made.inputs.push_back(id);
  for (const ValueId id : node.outputs) {
    if (id == kNoValue) {
      made.outputs.push_back(kNoValue);
      continue;
    }
    const Value& value = source.value(id);
    env[id] = graph_.add_value(name_for(value.name, block), value.type);
    graph_.value(env[id]).known = value.known;
    made.outputs.push_back(env[id]);
  }
  const NodeId owner = graph_.add_node(std::move(made)).id;
  for (const std::uint32_t inner : blocks) graph_.blocks[inner].owner = owner;
}

}  // namespace

Method flatten(const Method& method, const FlattenOptions& options) {
  Method flat;
  flat.name = method.name;
  flat.graph = Flattener(options).run(method.graph);
  flat.states = method.states;
  flat.weight = method.weight;
  return flat;
}

std::size_t own_input_count(const Graph& graph, const Node& control) {
  std::size_t results = 0;
  for (const std::uint32_t block : blocks_of(graph, control.id))
    results += graph.blocks[block].results.size();
  return control.inputs.size() - results;
}

std::vector<std::uint32_t> blocks_of(const Graph& graph, NodeId control) {
  std::vector<std::uint32_t> blocks;
  for (std::uint32_t block = 1; block < graph.blocks.size(); ++block)
    if (graph.blocks[block].owner == control) blocks.push_back(block);
  return blocks;
}

}  // namespace tessera::ir
