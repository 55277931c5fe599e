#pragma once

// What rewrites share: adding nodes beside others, replacing values without losing origins, and
// reading constants.

#include <optional>
#include <span>
#include <string_view>

#include "passes/pass.h"

namespace tessera::passes {

// ---- Matching -----------------------------------------------------------------------------------

// The nodes in execution order, for loops that change the graph: find_node gives null for those
// that are gone by then.
std::vector<ir::NodeId> node_ids(const ir::Graph& graph);

// An operator of ai.onnx with that name.
bool is_op(const ir::Node& node, std::string_view name);
bool is_op(const ir::Node* node, std::string_view name);  // false for null

// Input `index`, or kNoValue where it is omitted or beyond the inputs.
ir::ValueId input_of(const ir::Node& node, std::size_t index);

// The elements where the value is a constant, else null.
const Tensor* constant_of(const ir::Graph& graph, ir::ValueId id);

// Both are tensors of one dtype and one known shape, symbol by symbol.
bool same_type(const ir::Graph& graph, ir::ValueId a, ir::ValueId b);

// Sizes of a tensor value where all are numbers.
std::optional<Dims> dims_of(const ir::Graph& graph, ir::ValueId id);

// The one value that all elements of a constant have; nothing for other values, empty tensors and
// dtypes that are neither fp64, fp32, fp16, bf16 nor integers.
std::optional<double> uniform_constant(const ir::Graph& graph, ir::ValueId id);

// ---- Changing -----------------------------------------------------------------------------------

// The node goes, its output 0 is `to` from now on, and the producer of `to` (or, where there is
// none, the readers) takes over the node's origins. False, and nothing changed, where an output of
// the graph cannot be replaced (Graph::replace_uses).
bool eliminate(ir::Graph& graph, ir::Node& node, ir::ValueId to);

// The description of a node to put in the place of others.
struct NewNode {
  std::string_view op;
  ops::Attributes attributes;
  std::vector<ir::ValueId> inputs;
};

// Puts a node with one output in the place of `old`: it stands where `old` stood, gets its name,
// its origins and those of `also`, and its output takes over all uses and the name. `old` is
// erased; types are inferred.
Status replace_node(PassContext& context, ir::Graph& graph, ir::Node& old, NewNode made,
                    std::span<const ir::Node* const> also = {});

// An int64 constant of rank 1.
ir::ValueId add_int64s(ir::Graph& graph, std::string_view stem,
                       const std::vector<std::int64_t>& elements);

}  // namespace tessera::passes
