#pragma once

// Compiled primitives, shared by all kernels with the same problem: networks repeat their layers,
// and the library takes up to a millisecond for each.

#include <memory>

#include "backends/cpu/run/onednn_shim.h"

namespace tessera::backends::cpu {

// Described, and compiled by create(): by the first caller, while others with the same problem
// wait. Lives as long as somebody holds it. Safe from any thread. Errors as of
// OnednnPrimitive::describe and create.
Result<std::shared_ptr<const OnednnPrimitive>> compiled_primitive(const ConvProblem& problem);
Result<std::shared_ptr<const OnednnPrimitive>> compiled_primitive(const ProductProblem& problem);
Result<std::shared_ptr<const OnednnPrimitive>> compiled_primitive(const PoolProblem& problem);

}  // namespace tessera::backends::cpu
