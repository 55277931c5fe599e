#include "io/utf.h"

namespace tessera::io {
namespace {

constexpr char32_t kLargest = 0x10FFFF;

bool is_scalar(char32_t code) {
  return code <= kLargest && (code < 0xD800 || code > 0xDFFF);
}

// The smallest code that a sequence of that many bytes may hold.
constexpr char32_t kSmallestOf[] = {0, 0, 0x80, 0x800, 0x10000};

int sequence_length(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >> 5 == 0x6) return 2;
  if (lead >> 4 == 0xE) return 3;
  if (lead >> 3 == 0x1E) return 4;
  return 0;
}

void append_utf8(char32_t code, std::string& into) {
  const auto byte = [&](char32_t bits) {
    into += static_cast<char>(static_cast<unsigned char>(bits));
  };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xC0 | (code >> 6));
    byte(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    byte(0xE0 | (code >> 12));
    byte(0x80 | ((code >> 6) & 0x3F));
    byte(0x80 | (code & 0x3F));
  } else {
    byte(0xF0 | (code >> 18));
    byte(0x80 | ((code >> 12) & 0x3F));
    byte(0x80 | ((code >> 6) & 0x3F));
    byte(0x80 | (code & 0x3F));
  }
}

}  // namespace

std::optional<std::u32string> utf8_to_utf32(std::string_view text) {
  std::u32string codes;
  codes.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const int length = sequence_length(lead);
    if (length == 0 || text.size() - i < static_cast<std::size_t>(length)) return std::nullopt;
    char32_t code = length == 1 ? lead : lead & (0x7FU >> length);
    for (int k = 1; k < length; ++k) {
      const auto next = static_cast<unsigned char>(text[i + static_cast<std::size_t>(k)]);
      if (next >> 6 != 0x2) return std::nullopt;
      code = (code << 6) | (next & 0x3F);
    }
    if (!is_scalar(code) || code < kSmallestOf[length]) return std::nullopt;
    codes += code;
    i += static_cast<std::size_t>(length);
  }
  return codes;
}

std::optional<std::string> utf32_to_utf8(std::span<const char32_t> text) {
  std::string bytes;
  bytes.reserve(text.size());
  for (const char32_t code : text) {
    if (!is_scalar(code)) return std::nullopt;
    append_utf8(code, bytes);
  }
  return bytes;
}

}  // namespace tessera::io
