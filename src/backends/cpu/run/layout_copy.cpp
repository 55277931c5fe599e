#include "backends/cpu/run/layout_copy.h"

#include <algorithm>

#include "backends/cpu/run/physical.h"

namespace tessera::backends::cpu {
namespace {

// Element offsets of every index along every dim: an element lies at the sum over its dims.
std::vector<std::vector<std::int64_t>> offset_tables(const Layout& layout, const Dims& dims) {
  std::vector<std::vector<std::int64_t>> tables(dims.size());
  const std::size_t rank = dims.size();
  std::vector<std::int64_t> block(rank, 1);
  std::int64_t stride = 1;
  std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> blocks(
      rank);  // (size, stride), fastest first
  for (std::size_t i = layout.blocks.size(); i-- > 0;) {
    const auto [dim, size] = layout.blocks[i];
    blocks[dim].emplace_back(size, stride);
    block[dim] *= size;
    stride *= size;
  }
  for (std::size_t i = rank; i-- > 0;) {
    const std::size_t dim = layout.order.empty() ? i : layout.order[i];
    for (std::int64_t index = 0; index < dims[dim]; ++index) {
      std::int64_t rest = index;
      std::int64_t offset = 0;
      for (const auto& [size, inner] : blocks[dim]) {
        offset += rest % size * inner;
        rest /= size;
      }
      tables[dim].push_back(offset + rest * stride);
    }
    stride *= (dims[dim] + block[dim] - 1) / block[dim];
  }
  return tables;
}

}  // namespace

LayoutCopy::LayoutCopy(const Layout& from, const Layout& to, const Dims& dims,
                       std::int64_t element_bytes)
    : element_bytes_(element_bytes),
      counts_(physical_dims(to, dims)),
      dims_(dims),
      source_offsets_(offset_tables(from, dims)) {
  const std::size_t rank = dims.size();
  std::vector<std::int64_t> block(rank, 1);
  for (const auto& [dim, size] : to.blocks) block[dim] *= size;
  std::vector<std::int64_t> rest = block;
  for (std::size_t i = 0; i < rank; ++i) {
    logical_.push_back(to.order.empty() ? i : to.order[i]);
    weights_.push_back(block[logical_.back()]);
  }
  for (const auto& [dim, size] : to.blocks) {
    rest[dim] /= size;
    logical_.push_back(dim);
    weights_.push_back(rest[dim]);
  }
  // Rows: all physical dims but as many of the last as hold some thousand elements.
  const std::int64_t total = numel(counts_);
  std::size_t split = 0;
  while (split + 1 < counts_.size() && total / std::max<std::int64_t>(rows_, 1) > 4096)
    rows_ *= counts_[split++];
  row_elements_ = rows_ == 0 ? 0 : total / rows_;
}

template <typename T>
void LayoutCopy::run_rows(const T* source, T* target, std::int64_t row_begin,
                          std::int64_t row_end) const {
  const std::size_t depth = counts_.size();
  if (depth == 0) {
    if (row_begin < row_end) *target = *source;
    return;
  }
  const std::int64_t inner = counts_[depth - 1];
  const std::size_t inner_dim = logical_[depth - 1];
  const std::int64_t inner_weight = weights_[depth - 1];
  const std::int64_t end = row_end * row_elements_;
  for (std::int64_t at = row_begin * row_elements_; at < end; at += inner) {
    std::int64_t index[16] = {};
    std::int64_t rest = at / inner;
    for (std::size_t d = depth - 1; d-- > 0;) {
      index[logical_[d]] += rest % counts_[d] * weights_[d];
      rest /= counts_[d];
    }
    std::int64_t offset = 0;
    bool padding = false;
    for (std::size_t d = 0; d < dims_.size(); ++d) {
      if (d == inner_dim) continue;
      padding = padding || index[d] >= dims_[d];
      if (!padding) offset += source_offsets_[d][static_cast<std::size_t>(index[d])];
    }
    T* out = target + at;
    const std::int64_t first = index[inner_dim];
    const std::int64_t valid =
        padding ? 0
                : std::clamp<std::int64_t>(
                      (dims_[inner_dim] - first + inner_weight - 1) / inner_weight, 0, inner);
    const std::int64_t* offsets = source_offsets_[inner_dim].data() + first;
    for (std::int64_t i = 0; i < valid; ++i) out[i] = source[offset + offsets[i * inner_weight]];
    for (std::int64_t i = valid; i < inner; ++i) out[i] = T{};
  }
}

void LayoutCopy::run(const std::byte* source, std::byte* target, std::int64_t row_begin,
                     std::int64_t row_end) const {
  const auto typed = [&](auto zero) {
    using T = decltype(zero);
    run_rows(reinterpret_cast<const T*>(source), reinterpret_cast<T*>(target), row_begin, row_end);
  };
  switch (element_bytes_) {
    case 1: return typed(std::uint8_t{});
    case 2: return typed(std::uint16_t{});
    case 4: return typed(std::uint32_t{});
    default: return typed(std::uint64_t{});
  }
}

}  // namespace tessera::backends::cpu
