#pragma once

// Builds the IR's graphs from those of ONNX: names to values, bodies with their captures, local
// functions expanded, older operator versions upgraded, types inferred on the way.

#include <string>

#include "base/error.h"
#include "import/functions.h"
#include "import/import.h"
#include "import/node_emitter.h"
#include "import/node_order.h"
#include "import/scope.h"

namespace tessera::importer {

class NodeUpgrade;

// Types found while a body was built hold for what it declared; the node's own inference starts
// afresh.
void forget_types(ir::Graph& body);

class GraphBuilder {
 public:
  // All of them outlive the builder. Symbols and source nodes go to `module`; the memory that all
  // of it takes comes out of the budget.
  GraphBuilder(ir::Module& module, const Library& library, ExternalData& external,
               ImportBudget& budget);

  // The model's own graph. Its initializers lose their bytes to the constants. Errors name the
  // node, attribute or value, expected and found.
  Status build_main(onnx::GraphProto& proto, const ImportOptions& options, ir::Graph& graph);

 private:
  struct Body {
    std::unique_ptr<ir::Graph> graph;
    std::vector<ir::ValueId> captures;
    std::vector<std::size_t> wrapped;  // states of a Loop that wrap_states() made optional
  };
  // A node on its way: what it is in the model, and what it became so far.
  struct Pending {
    const onnx::NodeProto& proto;
    Scope& scope;
    std::string name;
    std::string place;  // "node 'conv1' (Conv)"
    const ops::OpSchema* op;
    int since_version;
    std::vector<ir::ValueId> inputs;
    std::vector<std::string> outputs;  // as the model spells them, without omitted ones at the end
    ops::Attributes attributes;
    BoundAttributes graphs;
    ir::OriginId origin;
  };

  // Graphs.
  Status add_main_inputs(const onnx::GraphProto& proto, const ImportOptions& options, Scope& scope);
  Status fix_input_shapes(const onnx::GraphProto& proto, const ImportOptions& options);
  // Names that the model gives; made-up ones stay clear of them.
  Status reserve_names(const NodeList& list, GraphContext& context);
  Status add_initializer(Scope& scope, const std::string& name, Tensor tensor);
  Status add_sparse_initializers(const onnx::GraphProto& proto, Scope& scope);
  Status read_hints(const onnx::GraphProto& proto, Scope& scope);
  // What the graph declares of its values agrees with what they are.
  Status check_value_infos(const onnx::GraphProto& proto, const Scope& scope) const;
  // What an input declares that an initializer takes the place of.
  Status check_replaced_inputs(const onnx::GraphProto& proto, const Scope& scope);
  Status finish_main(const onnx::GraphProto& proto, Scope& scope);
  Result<Body> build_body(const onnx::GraphProto& proto, Scope& lexical, const Pending& owner);
  // A Loop's state that starts as an optional may go on as what is inside of one: it stays an
  // optional here, and the Loop's result is unwrapped behind it.
  Status wrap_states(Body& body, GraphContext& context, const Pending& owner);
  Status unwrap_state(Pending& node, std::size_t index, ir::ValueId state);
  Status add_formal_inputs(const onnx::GraphProto& proto, Scope& scope, const Pending& owner);

  // Operators whose bodies become nodes (inlined_bodies.cpp).
  static bool has_inlined_body(const Pending& node);
  Status build_inlined(Pending& node);
  Status build_flex_attention(Pending& node);
  Status build_sequence_map(Pending& node);
  Status build_batched_scan(Pending& node);
  Result<Body> build_scan_of_sample(const Pending& node);
  Result<Body> build_map_step(const Pending& node, std::vector<DType>& dtypes);
  // `value` becomes what the body of attribute `name` makes of it, where the node has one.
  Status modify(const Pending& node, const std::string& name, ir::ValueId& value);
  // Adds the nodes of a body to a graph, its formal inputs being `inputs`; gives its outputs. Names
  // bear the prefix.
  Result<std::vector<ir::ValueId>> inline_body(const BoundAttribute& body, GraphContext& context,
                                               const std::string& prefix,
                                               const std::vector<ir::ValueId>& inputs);

  // Nodes.
  Status build_nodes(const NodeList& list, Scope& scope);
  Status build_node(const onnx::NodeProto& node, std::size_t index, Scope& scope);
  Status build_constant(const onnx::NodeProto& node, Scope& scope);
  Result<std::vector<ir::ValueId>> find_inputs(const onnx::NodeProto& node, Scope& scope) const;
  Status build_operator(Pending node);
  Status read_attributes(Pending& node);
  Result<std::vector<Body>> build_bodies(const Pending& node);
  Status emit_operator(Pending& node, ops::UpgradeNode upgraded, std::vector<Body> bodies);
  Status bind_replacement(Pending& node, const NodeUpgrade& upgrade,
                          const std::vector<ops::Operand>& values);
  Status expand_function(const onnx::NodeProto& node, const Function& function,
                         const std::string& name, Scope& scope);
  Status bind_function_outputs(const onnx::NodeProto& node, const Function& function,
                               const std::string& name, Scope& inner, Scope& scope);
  void bind(Scope& scope, const std::string& name, ir::ValueId id, ir::OriginId origin);
  Status apply_hints(const onnx::NodeProto& node, Scope& scope);

  ir::Module& module_;
  const Library& library_;
  ImportBudget& budget_;
  ConstantReader constants_;
  TypeReader types_;
  NodeEmitter emitter_;
  bool declared_shapes_hold_ = true;  // not where inputs get other shapes than the model declares
};

}  // namespace tessera::importer
