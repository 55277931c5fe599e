// Windows bitmaps: palettes of 1, 4 and 8 bits, 16 and 32 bits with or without masks, 24 bits.

#include <fmt/format.h>

#include <array>
#include <bit>

#include "ops/image/image.h"

namespace tessera::ops::image {
namespace {

constexpr std::size_t kFileHeaderBytes = 14;
constexpr std::uint32_t kCoreHeaderBytes = 12;
constexpr std::uint32_t kInfoHeaderBytes = 40;
constexpr std::uint32_t kUncompressed = 0;
constexpr std::uint32_t kMasks = 3;
constexpr std::uint32_t kMasksWithAlpha = 6;

std::uint32_t little(Bytes bytes, std::size_t at, std::size_t count) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < count; ++i) value |= std::uint32_t{bytes[at + i]} << (8 * i);
  return value;
}

struct Header {
  std::int64_t width = 0, height = 0;
  bool top_down = false;
  std::uint32_t bits = 0;  // of a pixel
  std::uint32_t compression = kUncompressed;
  std::size_t data = 0;           // where the pixels begin
  std::size_t palette = 0;        // where the palette begins
  std::size_t palette_entry = 4;  // its bytes
  std::size_t palette_count = 0;
  std::array<std::uint32_t, 3> masks{};  // red, green, blue
};

// The sizes in a header of either kind.
void read_sizes(Bytes bytes, std::uint32_t header_bytes, Header& header) {
  if (header_bytes == kCoreHeaderBytes) {
    header.width = little(bytes, 18, 2);
    header.height = little(bytes, 20, 2);
    header.bits = little(bytes, 24, 2);
    header.palette_entry = 3;
    return;
  }
  header.width = static_cast<std::int32_t>(little(bytes, 18, 4));
  header.height = static_cast<std::int32_t>(little(bytes, 22, 4));
  header.bits = little(bytes, 28, 2);
  header.compression = little(bytes, 30, 4);
  header.top_down = header.height < 0;
  if (header.top_down) header.height = -header.height;
}

Status read_palette(Bytes bytes, std::uint32_t header_bytes, Header& header) {
  const std::size_t most = std::size_t{1} << header.bits;
  const std::uint32_t used = header_bytes == kCoreHeaderBytes ? 0 : little(bytes, 46, 4);
  header.palette = kFileHeaderBytes + header_bytes;
  header.palette_count = used == 0 || used > most ? most : used;
  if (header.palette + header.palette_count * header.palette_entry > bytes.size()) return cut_off();
  return {};
}

Status read_masks(Bytes bytes, Header& header) {
  if (header.compression == kUncompressed) {
    header.masks = header.bits == 16 ? std::array<std::uint32_t, 3>{0x7C00, 0x03E0, 0x001F}
                                     : std::array<std::uint32_t, 3>{0xFF0000, 0xFF00, 0xFF};
    return {};
  }
  constexpr std::size_t kAt = kFileHeaderBytes + kInfoHeaderBytes;  // within longer headers too
  if (bytes.size() < kAt + 12) return cut_off();
  for (std::size_t i = 0; i < 3; ++i) header.masks[i] = little(bytes, kAt + 4 * i, 4);
  for (const std::uint32_t mask : header.masks)
    if (mask == 0) return damaged("expected masks of red, green and blue, found none");
  return {};
}

Status check_kind(const Header& header) {
  const bool has_masks = header.compression == kMasks || header.compression == kMasksWithAlpha;
  if (header.compression != kUncompressed && !has_masks)
    return fail(
        ErrorCode::kUnimplemented,
        fmt::format("expected uncompressed pixels, found compression {}", header.compression));
  const auto is = [&](std::initializer_list<std::uint32_t> some) {
    for (const std::uint32_t bits : some)
      if (header.bits == bits) return true;
    return false;
  };
  if (has_masks ? is({16, 32}) : is({1, 4, 8, 16, 24, 32})) return {};
  return damaged(fmt::format("expected pixels of {} bits, found {}",
                             has_masks ? "16 or 32" : "1, 4, 8, 16, 24 or 32", header.bits));
}

Result<Header> read_header(Bytes bytes) {
  if (bytes.size() < kFileHeaderBytes + kCoreHeaderBytes) return cut_off();
  Header header;
  header.data = little(bytes, 10, 4);
  const std::uint32_t header_bytes = little(bytes, 14, 4);
  if (header_bytes != kCoreHeaderBytes && (header_bytes < kInfoHeaderBytes || header_bytes > 4096))
    return damaged(
        fmt::format("expected a header of 12 or at least 40 bytes, found {}", header_bytes));
  if (bytes.size() < kFileHeaderBytes + header_bytes) return cut_off();
  read_sizes(bytes, header_bytes, header);
  TESSERA_TRY(check_kind(header));
  TESSERA_TRY(check_size(header.height, header.width));
  if (header.bits <= 8) {
    TESSERA_TRY(read_palette(bytes, header_bytes, header));
  } else if (header.bits != 24) {
    TESSERA_TRY(read_masks(bytes, header));
  }
  return header;
}

// What lies under a mask, from 0 to 255.
std::uint8_t masked(std::uint32_t pixel, std::uint32_t mask) {
  const int shift = std::countr_zero(mask);
  const std::uint64_t top = mask >> shift;
  const std::uint64_t value = (pixel & mask) >> shift;
  return static_cast<std::uint8_t>((value * 255 + top / 2) / top);
}

Status indexed_pixel(Bytes bytes, const Header& header, std::uint32_t index, std::uint8_t* to) {
  if (index >= header.palette_count)
    return damaged(fmt::format("expected colours below {}, found {}", header.palette_count, index));
  const std::size_t at = header.palette + index * header.palette_entry;
  for (std::size_t c = 0; c < 3; ++c) to[c] = bytes[at + 2 - c];
  return {};
}

Status read_row(Bytes bytes, const Header& header, std::size_t row, std::uint8_t* to) {
  for (std::int64_t x = 0; x < header.width; ++x, to += 3) {
    const auto bit = static_cast<std::size_t>(x) * header.bits;
    const std::size_t at = row + bit / 8;
    if (header.bits <= 8) {
      const std::uint32_t shift = 8 - header.bits - bit % 8;
      const std::uint32_t index = bytes[at] >> shift & ((1U << header.bits) - 1);
      TESSERA_TRY(indexed_pixel(bytes, header, index, to));
    } else if (header.bits == 24) {
      for (std::size_t c = 0; c < 3; ++c) to[c] = bytes[at + 2 - c];
    } else {
      const std::uint32_t pixel = little(bytes, at, header.bits / 8);
      for (std::size_t c = 0; c < 3; ++c) to[c] = masked(pixel, header.masks[c]);
    }
  }
  return {};
}

bool recognizes(Bytes bytes) {
  return begins_with(bytes, "BM");
}

Result<Tensor> decode_bmp(Bytes bytes) {
  TESSERA_ASSIGN(const Header header, read_header(bytes));
  const std::int64_t row_bytes = (header.width * header.bits + 31) / 32 * 4;
  const auto size = static_cast<std::int64_t>(bytes.size());
  if (row_bytes * header.height > size - static_cast<std::int64_t>(header.data)) return cut_off();
  TESSERA_ASSIGN(Tensor picture, new_picture(header.height, header.width));
  for (std::int64_t y = 0; y < header.height; ++y) {
    const std::int64_t stored = header.top_down ? y : header.height - 1 - y;
    TESSERA_TRY(read_row(bytes, header, header.data + static_cast<std::size_t>(stored * row_bytes),
                         pixels_of(picture) + y * header.width * 3));
  }
  return picture;
}

}  // namespace

const Format kBmp = {"BMP", recognizes, decode_bmp};

}  // namespace tessera::ops::image
