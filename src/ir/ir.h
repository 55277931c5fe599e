#pragma once

// The intermediate representation: a module of methods (graphs), nodes in execution order, values
// with types, origins.
//
// Ownership: a Module owns its graphs, a Graph its nodes and values, a Node its bodies. Ids are
// stable; pointers to nodes are stable until the node is erased. Graph inputs, outputs and their
// names never change after import.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/shape.h"
#include "base/tensor.h"
#include "ops/op.h"

namespace tessera::ir {

using ValueId = std::uint32_t;
using NodeId = std::uint32_t;
using OriginId = std::uint32_t;  // an index into Module::source_nodes
inline constexpr ValueId kNoValue = UINT32_MAX;
inline constexpr NodeId kNoNode = UINT32_MAX;

enum class ValueKind : std::uint8_t { kInput, kConstant, kNodeOutput };

struct Value {
  ValueId id = kNoValue;
  std::string name;
  ValueType type;
  ValueKind kind = ValueKind::kNodeOutput;
  Tensor constant;            // kConstant only
  NodeId producer = kNoNode;  // kNodeOutput only
  std::uint32_t producer_output = 0;
  std::optional<DimTensor> known;  // elements as expressions, where value propagation found them
  std::uint32_t block = 0;         // of a flattened graph: where an argument of a body belongs
};

class Graph;

struct Node {
  NodeId id = kNoNode;
  const ops::OpSchema* op = nullptr;
  std::string name;  // unique in its graph
  ops::Attributes attributes;
  std::vector<ValueId> inputs;   // kNoValue where an optional one is omitted; no trailing kNoValue
  std::vector<ValueId> outputs;  // kNoValue where nobody names it
  // Bodies of If (then, else), Loop, Scan, in the order of the schema's graph attributes. A body's
  // inputs are its formal inputs followed by its captures; captures[i] lists the values of this
  // graph that feed the latter, in the same order.
  std::vector<std::unique_ptr<Graph>> bodies;
  std::vector<std::vector<ValueId>> captures;
  std::vector<OriginId> origins;  // sorted, never empty: the source nodes that it came from
  std::uint32_t block = 0;        // of a flattened graph: the body that it belongs to
};

// A body of a flattened graph (ir/flatten.h); block 0 is the graph itself.
struct Block {
  std::uint32_t parent = 0;
  NodeId owner = kNoNode;          // the node of If, Loop or Scan, in the parent
  std::string name;                // "then_branch", "else_branch", "body"
  double weight = 1;               // how often it is expected to run for each run of the graph
  std::vector<ValueId> arguments;  // its formal inputs, bound anew for each run of the body
  std::vector<ValueId> results;
};

class Graph {
 public:
  Graph() = default;
  Graph(Graph&&) = default;
  Graph& operator=(Graph&&) = default;

  std::string name;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::vector<Block> blocks;  // of a flattened graph, else empty

  // Values.
  ValueId add_input(std::string value_name, ValueType type);
  ValueId add_constant(std::string value_name, Tensor tensor);
  ValueId add_argument(std::string value_name, ValueType type, std::uint32_t block);
  ValueId add_value(std::string value_name,
                    ValueType type);  // not produced yet; add_node claims it
  [[nodiscard]] Value& value(ValueId id) { return values_[id]; }
  [[nodiscard]] const Value& value(ValueId id) const { return values_[id]; }
  [[nodiscard]] std::size_t value_count() const {
    return values_.size();
  }  // ids are 0 .. count - 1; some may be unused
  // The block where a value is made: of its node, or the one whose argument it is.
  [[nodiscard]] std::uint32_t block_of(ValueId id) const;
  // How often a node of the block is expected to run for each run of the graph.
  [[nodiscard]] double weight_of(std::uint32_t block) const {
    return blocks.empty() ? 1 : blocks[block].weight;
  }
  void rename_value(ValueId id, std::string value_name);
  // A name that no value and no node bears yet, from `stem`.
  [[nodiscard]] std::string fresh_name(std::string_view stem);

  // Nodes, in execution order: every node stands after the producers of its inputs and captures.
  Node& add_node(Node node,
                 std::size_t position = SIZE_MAX);  // gives the id, sets producers of its outputs
  void erase_node(NodeId id);                       // its outputs must be unused (checked)
  // The same for many at once, in one scan; they may read each other. Outside of them nobody may
  // read their outputs (checked).
  void erase_nodes(const std::set<NodeId>& ids);
  [[nodiscard]] const std::vector<std::unique_ptr<Node>>& nodes() const { return nodes_; }
  [[nodiscard]] Node* find_node(NodeId id);
  [[nodiscard]] const Node* find_node(NodeId id) const;
  [[nodiscard]] std::size_t position_of(NodeId id) const;
  [[nodiscard]] Node* producer(ValueId id);  // null for inputs and constants
  [[nodiscard]] const Node* producer(ValueId id) const;

  // What a node that stands in the graph reads. It changes through these and replace_uses alone: so
  // the graph knows the readers of each value without a search.
  void set_input(Node& node, std::size_t index, ValueId to);
  void set_inputs(Node& node, std::vector<ValueId> to);
  void add_capture(Node& node, std::size_t body, ValueId id);
  void erase_capture(Node& node, std::size_t body, std::size_t index);
  // Whether nobody went past them; for the verifier.
  [[nodiscard]] bool knows_its_reads() const;

  // Readers of a value: (node, input index), in execution order; captures count as index
  // inputs.size() + running number.
  struct Use {
    Node* node;
    std::size_t index;
  };
  [[nodiscard]] std::vector<Use> uses(ValueId id) const;
  [[nodiscard]] std::size_t use_count(
      ValueId id) const;  // uses plus one for each graph output that it is
  [[nodiscard]] bool is_output(ValueId id) const;

  // Every reader of `from` reads `to` instead. Where `from` is a graph output, `to` takes over its
  // name (the interface keeps its names); false, and nothing changed, where that cannot be: `to` is
  // an input, a constant or an output itself.
  bool replace_uses(ValueId from, ValueId to);

  // Sorts nodes stably into execution order. An error names a node on a cycle.
  Status sort_topologically();

 private:
  // All nodes that read a value, some twice, and maybe some that no longer do.
  struct Readers {
    std::vector<NodeId> nodes;
    std::size_t read_count = 0;  // of the reads that there are
  };

  void add_read(ValueId id, NodeId reader);
  void drop_read(ValueId id);
  void add_reads(const Node& node);
  void drop_reads(const Node& node);
  void forget_old_readers(ValueId id);
  [[nodiscard]] std::vector<NodeId> readers_of(ValueId id) const;
  void give_rank(NodeId id, std::size_t position);
  void rank_all();
  void remove_from_order(const std::set<NodeId>& ids);
  void count_names();
  void take_name(const std::string& taken);
  void free_name(const std::string& freed);

  std::vector<Value> values_;
  std::vector<Readers> readers_;  // by value
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<Node*> nodes_by_id_;    // null where erased
  std::vector<std::uint64_t> ranks_;  // by node: they ascend in the order of execution
  // How many values and nodes bear a name, once the first fresh one was asked for.
  std::optional<std::unordered_map<std::string, std::size_t>> names_;
  std::map<std::string, std::uint32_t, std::less<>> name_counters_;
};

// State that a method keeps from call to call: an input, the output that replaces it, and its first
// value (zeros if undefined).
struct StatePair {
  std::string input;
  std::string output;
  Tensor initial;
};

struct Method {
  std::string name;  // "main" for a plain ONNX model
  Graph graph;
  std::vector<StatePair> states;
  double weight = 1;  // how often it is called, for the objective of the assignment
};

struct SourceNode {
  std::string name;     // as the model names it; "Conv_3" (op type and index) where it has none
  std::string op_type;  // as the model spells it, with its domain where that is not ai.onnx
};

// Symbols that inference made for sizes which only the data decides.
struct MadeSymbols {
  std::vector<std::string> names;  // those in use, in the order in which they were made
  // By stem: the smallest number behind it that may be free; 0 is the stem itself.
  std::map<std::string, std::uint32_t, std::less<>> free_numbers;
};

struct Module {
  std::string name;
  SymbolTable symbols;
  MadeSymbols made_symbols;
  std::vector<Method> methods;
  std::vector<SourceNode> source_nodes;
  std::map<std::string, std::string> metadata;  // producer, opset imports, model hash, ...
};

// The union of two sorted origin lists.
std::vector<OriginId> merge_origins(const std::vector<OriginId>& a, const std::vector<OriginId>& b);

}  // namespace tessera::ir
