#pragma once

// How messages name the parts of a graph.

#include <string>

#include "ir/ir.h"

namespace tessera::ir {

// "node 'conv1' (Conv)".
std::string describe(const Node& node);

// The name of the formal parameter at `index` of a signature; the last one stands for all of a
// variadic tail: "X", "inputs[2]", or "#5" beyond the signature.
std::string parameter_name(const std::vector<ops::FormalParam>& parameters, std::size_t index);

}  // namespace tessera::ir
