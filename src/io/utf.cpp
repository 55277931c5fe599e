#include "io/utf.h"

#include "base/shown_text.h"

namespace tessera::io {
namespace {

constexpr char32_t kLargest = 0x10FFFF;

bool is_scalar(char32_t code) {
  return code <= kLargest && (code < 0xD800 || code > 0xDFFF);
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
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return std::nullopt;
    const auto lead = static_cast<unsigned char>(text.front());
    char32_t code = length == 1 ? lead : lead & (0x7FU >> length);
    for (const char next : text.substr(1, length - 1))
      code = (code << 6) | (static_cast<unsigned char>(next) & 0x3F);
    codes += code;
    text.remove_prefix(length);
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
