#pragma once

// Layouts as plain loop nests: physical dims (outer dims in their order, then blocks) and how
// operands are walked along them.

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "base/layout.h"

namespace tessera::backends::cpu {

// Sizes in memory order, slowest first, padding included: their product is the number of stored
// elements.
Dims physical_dims(const Layout& layout, const Dims& dims);

// Elements stored, padding included.
std::int64_t stored_elements(const Layout& layout, const Dims& dims);

// The block of dim 1 where the layout is a channel-blocked one (nChw8c), else 1.
int channel_block_of(const Layout& layout);
// Whether dim 1 is the fastest in memory (nhwc).
bool is_channels_last(const Layout& layout, std::size_t rank);

// For each physical dim of the space (layout, dims): elements between neighbours of an operand
// broadcast into it, 0 where it is broadcast. Errors: an operand that does not broadcast to `dims`,
// or whose blocks differ from the space's in a dim that it is not broadcast along.
Result<std::vector<std::int64_t>> operand_strides(const Layout& layout, const Dims& dims,
                                                  const Layout& operand_layout,
                                                  const Dims& operand_dims);

// Drops sizes of 1 and merges neighbours that every operand walks as one.
void collapse(Dims& dims, std::vector<std::vector<std::int64_t>>& strides);

// A tensor of 3 loops around one axis: outer x axis x inner, in memory order. Where the axis is
// blocked, `axis` counts blocks and the block belongs to inner.
struct AxisSplit {
  std::int64_t outer = 1;
  std::int64_t axis = 1;
  std::int64_t inner = 1;
};
AxisSplit split_at_axis(const Layout& layout, const Dims& dims, std::size_t axis);

// Sets the lanes beyond dims[1] of a channel-blocked tensor to zero, as far as they lie in stored
// elements [begin, end).
void zero_padded_lanes(const Layout& layout, const Dims& dims, float* data, std::int64_t begin,
                       std::int64_t end);

}  // namespace tessera::backends::cpu
