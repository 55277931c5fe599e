#pragma once

// Elementwise operators on other dtypes than fp32: masks, indices, casts. Plain loops.

#include <vector>

#include "backends/cpu/run/spec_util.h"

namespace tessera::backends::cpu {

// Computes `count` elements; element i of operand k stands at data[k] + i * steps[k] elements (a
// step is 0 or 1 or any).
using ScalarFn = void (*)(const void* const* data, const std::int64_t* steps, void* out,
                          std::int64_t count);

// The loop for a step, or null where there is none. Operands are the step's inputs that are
// present; `output` its result.
ScalarFn scalar_fn(const artefact::KernelStep& step, const std::vector<DType>& operands,
                   DType output);

// An error that names the operator and the dtypes found where scalar_fn has nothing.
Status check_scalar_op(const artefact::KernelStep& step, const std::vector<DType>& operands,
                       DType output);

}  // namespace tessera::backends::cpu
