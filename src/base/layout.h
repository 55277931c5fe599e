#pragma once

// How a tensor's elements lie in memory: a permutation of the dims and inner blocks. Our own
// description; backends translate it to their library's. Blocked layouts pad a blocked dim up to a
// multiple of its block; padded lanes are zero at every value boundary unless a kernel says that it
// does not keep that.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/dims.h"
#include "base/shape.h"
#include "base/tensor.h"

namespace tessera {

struct Layout {
  // Outer dims from slowest to fastest; empty: row-major, of any rank.
  std::vector<std::uint8_t> order;
  // Inner blocks from slowest to fastest: (dim, size). nChw8c: order {0, 1, 2, 3}, blocks {{1, 8}}.
  std::vector<std::pair<std::uint8_t, std::uint16_t>> blocks;

  static Layout row_major() { return {}; }
  static Layout channels_last(int rank);               // nwc, nhwc, ndhwc
  static Layout channel_blocked(int rank, int block);  // nCw8c, nChw8c, ...

  [[nodiscard]] bool is_row_major() const { return order.empty() && blocks.empty(); }
  // "nchw" for row-major whatever the rank; "nhwc", "nChw8c", ...; otherwise
  // "order:0,2,1;blocks:1/8".
  [[nodiscard]] std::string to_string() const;
  friend bool operator==(const Layout&, const Layout&) = default;
  friend auto operator<=>(const Layout&, const Layout&) = default;
};

Result<Layout> parse_layout(std::string_view text);

// Sizes with each blocked dim rounded up to whole blocks.
Dims padded_dims(const Layout& layout, const Dims& dims);
Shape padded_shape(const Layout& layout, const Shape& shape);

// Bytes that a tensor takes in that layout, padding included.
std::int64_t layout_nbytes(const Layout& layout, DType dtype, const Dims& dims);

// Copies `dims` elements from one layout to another, element by element, padding set to zero, also
// behind the last element of a packed dtype. No strings. The obvious code: backends bring fast ones
// and are tested against it.
void convert_layout(const Layout& from, const void* source, const Layout& to, void* target,
                    DType dtype, const Dims& dims);

}  // namespace tessera
