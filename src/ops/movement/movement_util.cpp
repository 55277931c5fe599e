#include "ops/movement/movement_util.h"

#include <fmt/format.h>

#include "ops/infer_util.h"

namespace tessera::ops {

Work movement_work(const Attributes& /*attributes*/, std::span<const TensorSpec> /*inputs*/,
                   std::span<const TensorSpec> outputs) {
  Work work;
  for (const TensorSpec& output : outputs) {
    const double size_bytes =
        output.present ? static_cast<double>(nbytes(output.dtype, output.dims)) : 0;
    work.bytes_read += size_bytes;
    work.bytes_written += size_bytes;
  }
  return work;
}

Result<std::vector<std::int64_t>> checked_indices(const TensorView& indices, std::int64_t size,
                                                  std::int64_t axis, std::string_view op) {
  std::vector<std::int64_t> out = to_int64_vector(indices);
  for (std::int64_t& index : out) {
    if (index < -size || index >= size) {
      return fail(ErrorCode::kOutOfRange,
                  fmt::format("{}: index {} is out of range for axis {} of size {}", op, index,
                              axis, size));
    }
    if (index < 0) index += size;
  }
  return out;
}

Status copy_strided(KernelContext& context, const TensorView& input, std::int64_t base,
                    const Dims& strides, const MutableTensorView& output) {
  return dispatch_elements(input.dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    const T* from = input.as<T>();
    T* to = output.as<T>();
    for_each_row<1>(context, output.dims, {strides},
                    [&](std::int64_t at, const std::array<std::int64_t, 1>& offsets,
                        const std::array<std::int64_t, 1>& steps, std::int64_t count) {
                      const T* row = from + base + offsets[0];
                      if (steps[0] == 1) {
                        std::copy_n(row, count, to + at);
                      } else {
                        for (std::int64_t i = 0; i < count; ++i) to[at + i] = row[i * steps[0]];
                      }
                    });
    return {};
  });
}

AxisSplit split_at(const Dims& dims, std::int64_t axis) {
  const auto at = static_cast<std::size_t>(axis);
  return {count_between(dims, 0, at), dims[at], count_between(dims, at + 1, dims.size())};
}

Status copy_rows(KernelContext& context, const TensorView& from, const MutableTensorView& to,
                 const RowCopy& rows) {
  return dispatch_elements(from.dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    const std::int64_t grain =
        std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, rows.row_count));
    context.parallel_for(rows.outer, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        std::copy_n(from.as<T>() + rows.from_begin + i * rows.from_step, rows.row_count,
                    to.as<T>() + rows.to_begin + i * rows.to_step);
      }
    });
    return {};
  });
}

Result<std::int64_t> kernel_axis(const KernelContext& context, std::string_view name,
                                 std::int64_t fallback, std::size_t rank) {
  return normalize_axis(context.attributes().get_int(name, fallback),
                        static_cast<std::int64_t>(rank), fmt::format("attribute '{}'", name));
}

}  // namespace tessera::ops
