#pragma once

// The verifier: what must hold of a module between any two passes.

#include "ir/ir.h"

namespace tessera::ir {

// Checks: ids and producers agree; execution order; names unique; every input defined; arity,
// attributes and dtypes as the op table says; bodies and captures agree; origins neither empty nor
// unknown; symbols of shapes are in the symbol table; outputs exist; states name inputs and outputs
// of equal type. The error names graph and node.
Status verify(const Module& module);

// Checks one node's signature (arity, attribute names and types, dtypes of inputs) against its
// schema.
Status verify_signature(const Graph& graph, const Node& node);

}  // namespace tessera::ir
