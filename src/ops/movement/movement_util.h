#pragma once

// What operators that move elements share.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "ops/kernel_util.h"
#include "ops/op.h"

namespace tessera::ops {

// Work of operators that read what they write and do no arithmetic.
Work movement_work(const Attributes& attributes, std::span<const TensorSpec> inputs,
                   std::span<const TensorSpec> outputs);

// Elements of an index tensor counted from the front. Error: "Gather: index 7 is out of range for
// axis 0 of size 3".
Result<std::vector<std::int64_t>> checked_indices(const TensorView& indices, std::int64_t size,
                                                  std::int64_t axis, std::string_view op);

// out[i] = in[base + sum of coordinates times `strides`] over `output`, in parallel. Strides may be
// negative or 0.
Status copy_strided(KernelContext& context, const TensorView& input, std::int64_t base,
                    const Dims& strides, const MutableTensorView& output);

// A tensor seen around one axis: outer x size x inner.
struct AxisSplit {
  std::int64_t outer = 1;
  std::int64_t size = 1;
  std::int64_t inner = 1;
};
AxisSplit split_at(const Dims& dims, std::int64_t axis);

// Copies `outer` rows of row_count elements between tensors whose rows lie at different distances.
struct RowCopy {
  std::int64_t outer = 0;
  std::int64_t row_count = 0;
  std::int64_t from_begin = 0;
  std::int64_t from_step = 0;
  std::int64_t to_begin = 0;
  std::int64_t to_step = 0;
};
Status copy_rows(KernelContext& context, const TensorView& from, const MutableTensorView& to,
                 const RowCopy& rows);

// The axis attribute of a kernel, checked against the rank.
Result<std::int64_t> kernel_axis(const KernelContext& context, std::string_view name,
                                 std::int64_t fallback, std::size_t rank);

}  // namespace tessera::ops
