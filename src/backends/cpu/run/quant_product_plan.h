#pragma once

// The sizes of a quantised product.

#include "backends/cpu/run/quant_plan.h"

namespace tessera::backends::cpu {

struct QuantProductPlan {
  QuantPlan quant;
  bool transposed = false;  // weights [N, K]
  bool packed = false;      // weights are constants in panels, else a tensor computed at run time

  struct Sizes {
    std::int64_t batch = 1;  // of pairs of matrices; 1 where all rows meet one matrix
    std::int64_t rows = 1, depth = 1, columns = 1;
  };
  // Errors: dims that do not agree, or that it has no code for.
  [[nodiscard]] Result<Sizes> sizes(const Dims& a, const Dims& b, const Dims& dst) const;
};

// Errors: what it cannot take, with what it found.
Result<QuantProductPlan> plan_quant_product(const artefact::KernelSpec& spec, Constants constants);

}  // namespace tessera::backends::cpu
