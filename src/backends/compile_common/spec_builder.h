#pragma once

// What every compile half needs to describe a work item as a kernel spec.

#include <vector>

#include "backends/compile_interface.h"

namespace tessera::backends {

// The spec of `item` for `candidate`: declarations of inputs (those that come in a form), constants
// (those that are baked in, in the order of the item's inputs, row-major and in their own dtype),
// outputs, steps and output operands. The backend then sets the layouts of constants that it packs.
// Constants are given in the same order as spec.constants.
CompiledKernel build_spec(const ir::WorkItem& item, const Candidate& candidate,
                          const DeviceInfo& device);

// Dims of a value at a point; of one without a rank those that the item assumes. Errors: neither is
// known, a symbol without a value.
Result<Dims> dims_at(const ir::WorkItem& item, ir::ValueId value, const SymbolBindings& point);

// Work of all nodes at a point: flops of each, bytes of what the item as a whole reads and writes.
Result<ops::Work> work_at(const ir::WorkItem& item, const SymbolBindings& point);

// Specs (dtype and dims) of a node's operands at a point, for work functions. Errors as dims_at.
Result<std::vector<ops::TensorSpec>> input_specs(const ir::WorkItem& item, const ir::Node& node,
                                                 const SymbolBindings& point);
Result<std::vector<ops::TensorSpec>> output_specs(const ir::WorkItem& item, const ir::Node& node,
                                                  const SymbolBindings& point);

// Why a node cannot become a kernel in any backend: control flow, sizes that only the data decides,
// values that are not tensors or of unknown rank, strings. Empty where it can.
std::string general_refusal(const ir::WorkItem& item);

}  // namespace tessera::backends
