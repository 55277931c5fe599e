#pragma once

#include <optional>

#include "backends/cpu/run/pool_plan.h"
#include "backends/cpu/run/quant_plan.h"

namespace tessera::backends::cpu {

// The windows of a pooling of a quantised tensor; nothing for a global one. Errors: what it cannot
// take, with what it found.
Result<std::optional<PoolPlan>> plan_quant_pool(const artefact::KernelSpec& spec,
                                                const QuantPlan& plan);

}  // namespace tessera::backends::cpu
