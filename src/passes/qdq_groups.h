#pragma once

// What passes must know about quantised graphs: DequantizeLinear, operators, QuantizeLinear are
// one group, which a backend may run on the quantised tensors. Internal to passes/.

#include "passes/pass.h"

namespace tessera::passes {

bool is_dequantize(const ir::Node* node);
bool is_quantize(const ir::Node* node);

// A DequantizeLinear of constants (weights, a bias) that an operator reads beside a tensor that is
// dequantised at run time: folded into real numbers, the group would lose its quantised form.
// Where nothing beside it is quantised at run time, the constant is only stored in few bits.
bool is_group_constant(const ir::Graph& graph, const ir::Node& node);

}  // namespace tessera::passes
