// Portable bitmaps, graymaps and pixmaps (P1 to P6), as text or as bytes.

#include <fmt/format.h>

#include "ops/image/image.h"

namespace tessera::ops::image {
namespace {

constexpr std::uint32_t kMaxSample = 65535;

// Walks over the numbers of a header, and of a picture that is text.
class Reader {
 public:
  explicit Reader(Bytes bytes) : bytes_(bytes) {}

  // The next number; blanks and comments before it are skipped.
  Result<std::uint32_t> number() {
    skip_blanks();
    if (at_ >= bytes_.size()) return cut_off();
    std::uint64_t value = 0;
    const std::size_t first = at_;
    for (; at_ < bytes_.size() && is_digit(bytes_[at_]) && value <= UINT32_MAX; ++at_)
      value = value * 10 + (bytes_[at_] - '0');
    if (at_ == first || value > UINT32_MAX)
      return damaged(fmt::format("expected a number at byte {}", first));
    return static_cast<std::uint32_t>(value);
  }

  // The next digit, 0 or 1: those of a bitmap need no blanks between them.
  Result<std::uint32_t> bit() {
    skip_blanks();
    if (at_ >= bytes_.size()) return cut_off();
    if (bytes_[at_] != '0' && bytes_[at_] != '1')
      return damaged(fmt::format("expected 0 or 1 at byte {}", at_));
    return bytes_[at_++] - '0';
  }

  // What stands behind the one blank after the header.
  [[nodiscard]] Bytes rest() const {
    return at_ < bytes_.size() ? bytes_.subspan(at_ + 1) : Bytes();
  }

 private:
  static bool is_digit(std::uint8_t c) { return c >= '0' && c <= '9'; }
  static bool is_blank(std::uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

  void skip_blanks() {
    while (at_ < bytes_.size() && (is_blank(bytes_[at_]) || bytes_[at_] == '#')) {
      if (bytes_[at_] == '#')
        while (at_ < bytes_.size() && bytes_[at_] != '\n') ++at_;
      else
        ++at_;
    }
  }

  Bytes bytes_;
  std::size_t at_ = 2;  // behind the magic number
};

struct Header {
  bool is_text = false;
  bool is_bitmap = false;
  std::int64_t channels = 1;
  std::int64_t width = 0, height = 0;
  std::uint32_t top = 1;  // the sample of full light
  [[nodiscard]] std::int64_t samples() const { return width * height * channels; }
};

Result<Header> read_header(Bytes bytes, Reader& reader) {
  const int kind = bytes[1] - '0';
  Header header;
  header.is_text = kind <= 3;
  header.is_bitmap = kind == 1 || kind == 4;
  header.channels = kind == 3 || kind == 6 ? 3 : 1;
  TESSERA_ASSIGN(header.width, reader.number());
  TESSERA_ASSIGN(header.height, reader.number());
  TESSERA_TRY(check_size(header.height, header.width));
  if (header.is_bitmap) return header;
  TESSERA_ASSIGN(header.top, reader.number());
  if (header.top < 1 || header.top > kMaxSample)
    return damaged(
        fmt::format("expected a largest sample of 1 to {}, found {}", kMaxSample, header.top));
  return header;
}

// The light of one sample: 0 is black but for bitmaps, where 1 is.
Result<std::uint8_t> light(const Header& header, std::uint32_t sample) {
  if (header.is_bitmap) return static_cast<std::uint8_t>(sample != 0 ? 0 : 255);
  if (sample > header.top)
    return damaged(fmt::format("expected samples of 0 to {}, found {}", header.top, sample));
  return static_cast<std::uint8_t>((sample * 255 + header.top / 2) / header.top);
}

// One sample of the bytes, counted over the whole picture.
std::uint32_t packed_sample(const Header& header, Bytes data, std::int64_t index) {
  if (header.is_bitmap) {
    const std::int64_t row_bytes = (header.width + 7) / 8;
    const std::int64_t column = index % header.width;
    const auto at = static_cast<std::size_t>(index / header.width * row_bytes + column / 8);
    return data[at] >> (7 - column % 8) & 1U;
  }
  const auto at = static_cast<std::size_t>(index);
  if (header.top < 256) return data[at];
  return std::uint32_t{data[2 * at]} << 8 | data[2 * at + 1];
}

std::int64_t packed_bytes(const Header& header) {
  if (header.is_bitmap) return (header.width + 7) / 8 * header.height;
  return header.samples() * (header.top < 256 ? 1 : 2);
}

bool recognizes(Bytes bytes) {
  return bytes.size() >= 2 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '6';
}

Result<Tensor> decode_pnm(Bytes bytes) {
  Reader reader(bytes);
  TESSERA_ASSIGN(const Header header, read_header(bytes, reader));
  const Bytes data = reader.rest();
  const std::int64_t expected = header.is_text ? header.samples() : packed_bytes(header);
  if (static_cast<std::int64_t>(data.size()) < expected - (header.is_text ? 1 : 0))
    return cut_off();
  TESSERA_ASSIGN(Tensor picture, new_picture(header.height, header.width));
  std::uint8_t* to = pixels_of(picture);
  const std::int64_t copies = 3 / header.channels;
  for (std::int64_t i = 0; i < header.samples(); ++i) {
    std::uint32_t sample = 0;
    if (!header.is_text) {
      sample = packed_sample(header, data, i);
    } else {
      TESSERA_ASSIGN(sample, header.is_bitmap ? reader.bit() : reader.number());
    }
    TESSERA_ASSIGN(const std::uint8_t value, light(header, sample));
    for (std::int64_t copy = 0; copy < copies; ++copy) *to++ = value;
  }
  return picture;
}

}  // namespace

const Format kPnm = {"PNM", recognizes, decode_pnm};

}  // namespace tessera::ops::image
