#pragma once

// Shape inference over a module: types and known elements of every value, through the op table's
// functions.

#include "ir/ir.h"

namespace tessera::ir {

// A value whose rank or size could not be found, and why.
struct Unknown {
  std::string value;
  std::string node;
  std::string reason;
};

// Infers one node from the types of its inputs and writes the types of its outputs. Declared types
// of outputs are refined, never contradicted: an error names node, output, what was declared and
// what was inferred.
Status infer_node(Module& module, Graph& graph, Node& node);

// All graphs in execution order; gives what stays unknown.
Result<std::vector<Unknown>> infer(Module& module);

}  // namespace tessera::ir
