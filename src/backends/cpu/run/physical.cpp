#include "backends/cpu/run/physical.h"

#include <fmt/format.h>

#include <algorithm>

namespace tessera::backends::cpu {
namespace {

std::size_t outer_dim(const Layout& layout, std::size_t position) {
  return layout.order.empty() ? position : layout.order[position];
}

// Elements between neighbours along each logical dim for whole blocks (outer) and inside of the
// block (inner, 0: unblocked).
struct LogicalStrides {
  std::vector<std::int64_t> outer;
  std::vector<std::int64_t> inner;
  std::vector<std::int64_t> block;
};

LogicalStrides logical_strides(const Layout& layout, const Dims& dims) {
  const std::size_t rank = dims.size();
  LogicalStrides result{std::vector<std::int64_t>(rank, 0), std::vector<std::int64_t>(rank, 0),
                        std::vector<std::int64_t>(rank, 1)};
  std::int64_t stride = 1;
  for (std::size_t i = layout.blocks.size(); i-- > 0;) {
    const auto [dim, size] = layout.blocks[i];
    result.inner[dim] = stride;
    result.block[dim] *= size;
    stride *= size;
  }
  for (std::size_t i = rank; i-- > 0;) {
    const std::size_t dim = outer_dim(layout, i);
    result.outer[dim] = stride;
    stride *= (dims[dim] + result.block[dim] - 1) / result.block[dim];
  }
  return result;
}

}  // namespace

Dims physical_dims(const Layout& layout, const Dims& dims) {
  Dims outer = padded_dims(layout, dims);
  for (const auto& [dim, size] : layout.blocks) outer[dim] /= size;
  Dims result;
  for (std::size_t i = 0; i < dims.size(); ++i) result.push_back(outer[outer_dim(layout, i)]);
  for (const auto& [dim, size] : layout.blocks) result.push_back(size);
  return result;
}

std::int64_t stored_elements(const Layout& layout, const Dims& dims) {
  return numel(physical_dims(layout, dims));
}

int channel_block_of(const Layout& layout) {
  const bool plain_order = std::is_sorted(layout.order.begin(), layout.order.end());
  return plain_order && layout.blocks.size() == 1 && layout.blocks[0].first == 1
             ? layout.blocks[0].second
             : 1;
}

bool is_channels_last(const Layout& layout, std::size_t rank) {
  return rank >= 3 && layout == Layout::channels_last(static_cast<int>(rank));
}

Result<std::vector<std::int64_t>> operand_strides(const Layout& layout, const Dims& dims,
                                                  const Layout& operand_layout,
                                                  const Dims& operand_dims) {
  const std::size_t rank = dims.size();
  if (operand_dims.size() > rank ||
      (operand_dims.size() < rank && !operand_layout.is_row_major())) {
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("expected an operand that broadcasts to {}, found {} in layout {}",
                            to_string(dims), to_string(operand_dims), operand_layout.to_string()));
  }
  Dims aligned(rank - operand_dims.size(), 1);
  aligned.insert(aligned.end(), operand_dims.begin(), operand_dims.end());
  const LogicalStrides space = logical_strides(layout, dims);
  const LogicalStrides operand = logical_strides(operand_layout, aligned);
  std::vector<std::int64_t> per_outer(rank);
  std::vector<std::int64_t> per_inner(rank);
  for (std::size_t d = 0; d < rank; ++d) {
    if (aligned[d] != dims[d] && aligned[d] != 1) {
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("expected an operand that broadcasts to {}, found {}",
                              to_string(dims), to_string(operand_dims)));
    }
    if (aligned[d] == 1 && dims[d] != 1) continue;
    if (aligned[d] == 1 && operand.block[d] == 1 && space.block[d] > 1)
      continue;  // the padding of one channel: any value does
    if (operand.block[d] != space.block[d]) {
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("expected an operand in layout {}, found {}", layout.to_string(),
                              operand_layout.to_string()));
    }
    per_outer[d] = operand.outer[d];
    per_inner[d] = operand.inner[d];
  }
  std::vector<std::int64_t> result;
  for (std::size_t i = 0; i < rank; ++i) result.push_back(per_outer[outer_dim(layout, i)]);
  for (const auto& [dim, size] : layout.blocks) result.push_back(per_inner[dim]);
  return result;
}

void collapse(Dims& dims, std::vector<std::vector<std::int64_t>>& strides) {
  Dims merged;
  std::vector<std::vector<std::int64_t>> kept(strides.size());
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 1) continue;
    bool merges = !merged.empty();
    for (std::size_t k = 0; merges && k < strides.size(); ++k)
      merges = kept[k].back() == strides[k][d] * dims[d];
    if (merges) {
      merged.back() *= dims[d];
    } else {
      merged.push_back(dims[d]);
    }
    for (std::size_t k = 0; k < strides.size(); ++k) {
      if (merges) {
        kept[k].back() = strides[k][d];
      } else {
        kept[k].push_back(strides[k][d]);
      }
    }
  }
  dims = std::move(merged);
  strides = std::move(kept);
}

AxisSplit split_at_axis(const Layout& layout, const Dims& dims, std::size_t axis) {
  const Dims physical = physical_dims(layout, dims);
  AxisSplit result;
  std::size_t at = 0;
  while (outer_dim(layout, at) != axis) ++at;
  for (std::size_t i = 0; i < at; ++i) result.outer *= physical[i];
  result.axis = physical[at];
  for (std::size_t i = at + 1; i < physical.size(); ++i) result.inner *= physical[i];
  return result;
}

void zero_padded_lanes(const Layout& layout, const Dims& dims, float* data, std::int64_t begin,
                       std::int64_t end) {
  const std::int64_t block = channel_block_of(layout);
  if (block == 1 || dims[1] % block == 0 || begin >= end) return;
  const AxisSplit split = split_at_axis(layout, dims, 1);
  const std::int64_t used = dims[1] % block;
  const std::int64_t image = split.axis * split.inner;
  for (std::int64_t n = begin / image; n * image < end; ++n) {
    const std::int64_t first = std::max(begin, n * image + (split.axis - 1) * split.inner);
    const std::int64_t last = std::min(end, (n + 1) * image);
    for (std::int64_t at = first - first % block; at < last; at += block) {
      for (std::int64_t lane = std::max(at + used, first); lane < std::min(at + block, last);
           ++lane)
        data[lane] = 0;
    }
  }
}

}  // namespace tessera::backends::cpu
