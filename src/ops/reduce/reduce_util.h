#pragma once

// What reductions share: their axes, and the walk over the elements that fold into one.

#include <cstdint>
#include <optional>
#include <vector>

#include "ops/kernel_util.h"
#include "ops/op.h"

namespace tessera::ops {

// Axes of a reduction in ascending order. `listed` empty or absent: all of them, or none where
// `noop_with_empty_axes` is set.
Result<std::vector<std::int64_t>> reduction_axes(
    const Attributes& attributes, const std::optional<std::vector<std::int64_t>>& listed,
    std::size_t rank);

// A tensor split into the axes that stay and those that are folded.
struct ReductionPlan {
  Dims output_dims;
  Dims kept;  // sizes and strides of the axes that stay
  Dims kept_strides;
  Dims folded;  // merged where neighbours are walked as one
  Dims folded_strides;
  std::int64_t outputs = 1;
  std::int64_t count = 1;  // elements that fold into one
};

ReductionPlan plan_reduction(const Dims& dims, const std::vector<std::int64_t>& axes,
                             bool keep_dims);

// Offset of the first element of output `index`.
std::int64_t first_offset(const ReductionPlan& plan, std::int64_t index);

// visit(element offset, position among the folded ones) for each element of one output, in
// row-major order.
template <typename Visit>
void for_each_folded(const ReductionPlan& plan, std::int64_t base, const Visit& visit) {
  const std::size_t rank = plan.folded.size();
  const std::int64_t inner = rank == 0 ? 1 : plan.folded[rank - 1];
  const std::int64_t step = rank == 0 ? 0 : plan.folded_strides[rank - 1];
  for (std::int64_t position = 0; position < plan.count; position += inner) {
    std::int64_t offset = base;
    std::int64_t rest = position / inner;
    for (std::size_t d = rank - std::min<std::size_t>(rank, 1); d-- > 0;) {
      offset += rest % plan.folded[d] * plan.folded_strides[d];
      rest /= plan.folded[d];
    }
    for (std::int64_t i = 0; i < inner; ++i) visit(offset + i * step, position + i);
  }
}

}  // namespace tessera::ops
