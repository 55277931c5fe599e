#include "base/layout.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <numeric>

#include "base/checked.h"
#include "base/float_convert.h"

namespace tessera {
namespace {

constexpr int kMaxRank = 255;

// The letters of the dims in the names of layouts, for ranks 3, 4 and 5.
constexpr std::string_view letters(std::size_t rank) {
  if (rank == 3) return "ncw";
  if (rank == 4) return "nchw";
  if (rank == 5) return "ncdhw";
  return {};
}

std::string channels_last_name(std::size_t rank) {
  const auto all = letters(rank);
  return "n" + std::string(all.substr(2)) + "c";
}

std::string channel_blocked_name(std::size_t rank, int block) {
  const auto all = letters(rank);
  return "nC" + std::string(all.substr(2)) + std::to_string(block) + "c";
}

// The whole of `text` as a number in [0, max].
std::optional<int> parse_number(std::string_view text, int max) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > max) {
    return std::nullopt;
  }
  return value;
}

tl::unexpected<Error> bad_layout(std::string_view text) {
  return fail(
      ErrorCode::kInvalidArgument,
      "expected a layout such as 'nchw', 'nhwc', 'nChw8c' or 'order:0,2,1;blocks:1/8', found '" +
          std::string(text) + "'");
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// Each dim stands once in the order, and blocks name dims of the order.
bool is_consistent(const Layout& layout) {
  auto sorted = layout.order;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != i) return false;
  }
  return std::all_of(layout.blocks.begin(), layout.blocks.end(), [&](const auto& block) {
    return block.first < layout.order.size() && block.second > 0;
  });
}

std::optional<Layout> parse_generic(std::string_view text) {
  constexpr std::string_view kOrder = "order:";
  constexpr std::string_view kBlocks = "blocks:";
  const auto parts = split(text, ';');
  if (parts.size() > 2 || !parts[0].starts_with(kOrder)) return std::nullopt;
  Layout layout;
  for (const std::string_view item : split(parts[0].substr(kOrder.size()), ',')) {
    const auto dim = parse_number(item, kMaxRank - 1);
    if (!dim) return std::nullopt;
    layout.order.push_back(static_cast<std::uint8_t>(*dim));
  }
  if (parts.size() == 2) {
    if (!parts[1].starts_with(kBlocks)) return std::nullopt;
    for (const std::string_view item : split(parts[1].substr(kBlocks.size()), ',')) {
      const auto pair = split(item, '/');
      if (pair.size() != 2) return std::nullopt;
      const auto dim = parse_number(pair[0], kMaxRank - 1);
      const auto size = parse_number(pair[1], UINT16_MAX);
      if (!dim || !size) return std::nullopt;
      layout.blocks.emplace_back(static_cast<std::uint8_t>(*dim),
                                 static_cast<std::uint16_t>(*size));
    }
  }
  if (!is_consistent(layout)) return std::nullopt;
  return layout;
}

// The product of the blocks of each dim.
Dims block_sizes(const Layout& layout, std::size_t rank) {
  Dims sizes(rank, 1);
  for (const auto& [dim, size] : layout.blocks) {
    TESSERA_CHECK(dim < rank);
    sizes[dim] *= size;
  }
  return sizes;
}

// For each dim, where its index puts an element, in elements. The offset of an element is the sum
// over the dims.
std::vector<Dims> offset_tables(const Layout& layout, const Dims& dims) {
  const std::size_t rank = dims.size();
  TESSERA_CHECK(layout.order.empty() ? layout.blocks.empty() : layout.order.size() == rank);
  const Dims padded = padded_dims(layout, dims);
  Dims inner = block_sizes(layout, rank);
  std::vector<Dims> tables(rank);
  for (std::size_t d = 0; d < rank; ++d) {
    tables[d].assign(static_cast<std::size_t>(dims[d]), 0);
  }
  std::int64_t stride = 1;
  Dims below(rank, 1);  // product of the blocks of this dim that lie inside of the one at hand
  for (auto block = layout.blocks.rbegin(); block != layout.blocks.rend(); ++block) {
    const auto [dim, size] = *block;
    for (std::int64_t i = 0; i < dims[dim]; ++i) {
      tables[dim][static_cast<std::size_t>(i)] += i / below[dim] % size * stride;
    }
    below[dim] *= size;
    stride *= size;
  }
  for (std::size_t position = rank; position-- > 0;) {
    const std::size_t dim = layout.order.empty() ? position : layout.order[position];
    for (std::int64_t i = 0; i < dims[dim]; ++i) {
      tables[dim][static_cast<std::size_t>(i)] += i / inner[dim] * stride;
    }
    stride *= padded[dim] / inner[dim];
  }
  return tables;
}

template <std::size_t kWidth>
void copy_elements(const std::vector<Dims>& from, const std::byte* source,
                   const std::vector<Dims>& to, std::byte* target, const Dims& dims) {
  const std::size_t rank = dims.size();
  Dims index(rank, 0);
  const std::int64_t count = numel(dims);
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t read = 0;
    std::int64_t write = 0;
    for (std::size_t d = 0; d < rank; ++d) {
      read += from[d][static_cast<std::size_t>(index[d])];
      write += to[d][static_cast<std::size_t>(index[d])];
    }
    std::memcpy(target + write * static_cast<std::int64_t>(kWidth),
                source + read * static_cast<std::int64_t>(kWidth), kWidth);
    for (std::size_t d = rank; d-- > 0 && ++index[d] == dims[d];) index[d] = 0;
  }
}

// Packed elements move as bytes.
void convert_packed(const Layout& from, const void* source, const Layout& to, void* target,
                    int bits, const Dims& dims) {
  const std::int64_t read_count = numel(padded_dims(from, dims));
  const std::int64_t write_count = numel(padded_dims(to, dims));
  std::vector<std::byte> read(static_cast<std::size_t>(read_count));
  std::vector<std::byte> written(static_cast<std::size_t>(write_count));
  for (std::int64_t i = 0; i < read_count; ++i)
    read[static_cast<std::size_t>(i)] = std::byte{packed_get(source, i, bits)};
  copy_elements<1>(offset_tables(from, dims), read.data(), offset_tables(to, dims), written.data(),
                   dims);
  for (std::int64_t i = 0; i < write_count; ++i)
    packed_set(target, i, bits,
               std::to_integer<std::uint8_t>(written[static_cast<std::size_t>(i)]));
}

}  // namespace

Layout Layout::channels_last(int rank) {
  TESSERA_CHECK(rank >= 2 && rank <= kMaxRank);
  Layout layout;
  layout.order.push_back(0);
  for (int d = 2; d < rank; ++d) layout.order.push_back(static_cast<std::uint8_t>(d));
  layout.order.push_back(1);
  return layout;
}

Layout Layout::channel_blocked(int rank, int block) {
  TESSERA_CHECK(rank >= 2 && rank <= kMaxRank && block >= 1 && block <= UINT16_MAX);
  Layout layout;
  layout.order.resize(static_cast<std::size_t>(rank));
  std::iota(layout.order.begin(), layout.order.end(), std::uint8_t{0});
  layout.blocks = {{std::uint8_t{1}, static_cast<std::uint16_t>(block)}};
  return layout;
}

std::string Layout::to_string() const {
  if (is_row_major()) return "nchw";
  const std::size_t rank = order.size();
  if (!letters(rank).empty()) {
    if (*this == channels_last(static_cast<int>(rank))) return channels_last_name(rank);
    if (blocks.size() == 1 &&
        *this == channel_blocked(static_cast<int>(rank), blocks.front().second)) {
      return channel_blocked_name(rank, blocks.front().second);
    }
  }
  std::string text = "order:";
  for (std::size_t i = 0; i < rank; ++i) text += (i == 0 ? "" : ",") + std::to_string(order[i]);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    text += (i == 0 ? ";blocks:" : ",") + std::to_string(blocks[i].first) + "/" +
            std::to_string(blocks[i].second);
  }
  return text;
}

Result<Layout> parse_layout(std::string_view text) {
  if (text == "nchw") return Layout::row_major();
  for (const std::size_t rank : {3U, 4U, 5U}) {
    if (text == channels_last_name(rank)) return Layout::channels_last(static_cast<int>(rank));
    const std::string head = "nC" + std::string(letters(rank).substr(2));
    if (text.starts_with(head) && text.ends_with('c') && text.size() > head.size() + 1) {
      const auto block =
          parse_number(text.substr(head.size(), text.size() - head.size() - 1), UINT16_MAX);
      if (block && *block > 0) return Layout::channel_blocked(static_cast<int>(rank), *block);
    }
  }
  if (const auto layout = parse_generic(text)) return *layout;
  return bad_layout(text);
}

Dims padded_dims(const Layout& layout, const Dims& dims) {
  const Dims blocks = block_sizes(layout, dims.size());
  Dims padded = dims;
  for (std::size_t d = 0; d < dims.size(); ++d) padded[d] = align_up(dims[d], blocks[d]);
  return padded;
}

Shape padded_shape(const Layout& layout, const Shape& shape) {
  const Dims blocks = block_sizes(layout, shape.size());
  Shape padded = shape;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (blocks[d] != 1) padded[d] = ceildiv(shape[d], blocks[d]) * Dim(blocks[d]);
  }
  return padded;
}

std::int64_t layout_nbytes(const Layout& layout, DType dtype, const Dims& dims) {
  return nbytes(dtype, padded_dims(layout, dims));
}

void convert_layout(const Layout& from, const void* source, const Layout& to, void* target,
                    DType dtype, const Dims& dims) {
  const int bits = bits_of(dtype);
  TESSERA_CHECK(bits > 0);
  const auto size_bytes = static_cast<std::size_t>(layout_nbytes(to, dtype, dims));
  if (size_bytes == 0) return;
  if (bits < 8 || padded_dims(to, dims) != dims) std::memset(target, 0, size_bytes);
  if (bits < 8) return convert_packed(from, source, to, target, bits, dims);
  const auto read = offset_tables(from, dims);
  const auto write = offset_tables(to, dims);
  const auto* bytes = static_cast<const std::byte*>(source);
  auto* into = static_cast<std::byte*>(target);
  switch (bits / 8) {
    case 1: return copy_elements<1>(read, bytes, write, into, dims);
    case 2: return copy_elements<2>(read, bytes, write, into, dims);
    case 4: return copy_elements<4>(read, bytes, write, into, dims);
    case 8: return copy_elements<8>(read, bytes, write, into, dims);
    default: return copy_elements<16>(read, bytes, write, into, dims);
  }
}

}  // namespace tessera
