#include "ops/reduce/reduce_util.h"

#include <algorithm>
#include <numeric>

#include "ops/infer_util.h"

namespace tessera::ops {

Result<std::vector<std::int64_t>> reduction_axes(
    const Attributes& attributes, const std::optional<std::vector<std::int64_t>>& listed,
    std::size_t rank) {
  if (!listed || listed->empty()) {
    std::vector<std::int64_t> axes;
    if (attributes.get_int("noop_with_empty_axes", 0) == 0) axes.resize(rank);
    std::iota(axes.begin(), axes.end(), 0);
    return axes;
  }
  TESSERA_ASSIGN(auto axes,
                 normalize_axes(*listed, static_cast<std::int64_t>(rank), "input 'axes'"));
  std::sort(axes.begin(), axes.end());
  return axes;
}

ReductionPlan plan_reduction(const Dims& dims, const std::vector<std::int64_t>& axes,
                             bool keep_dims) {
  ReductionPlan plan;
  const Dims strides = row_major_strides(dims);
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const bool folds = std::binary_search(axes.begin(), axes.end(), static_cast<std::int64_t>(d));
    if (folds) {
      plan.folded.push_back(dims[d]);
      plan.folded_strides.push_back(strides[d]);
      plan.count *= dims[d];
      if (keep_dims) plan.output_dims.push_back(1);
    } else {
      plan.kept.push_back(dims[d]);
      plan.kept_strides.push_back(strides[d]);
      plan.outputs *= dims[d];
      plan.output_dims.push_back(dims[d]);
    }
  }
  std::vector<Dims> folded_strides{plan.folded_strides};
  collapse_dims(plan.folded, folded_strides);
  plan.folded_strides = folded_strides[0];
  return plan;
}

std::int64_t first_offset(const ReductionPlan& plan, std::int64_t index) {
  std::int64_t offset = 0;
  for (std::size_t d = plan.kept.size(); d-- > 0;) {
    offset += index % plan.kept[d] * plan.kept_strides[d];
    index /= plan.kept[d];
  }
  return offset;
}

}  // namespace tessera::ops
