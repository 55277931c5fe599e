#include "ops/sequence/unicode.h"

#include <cstdint>

namespace tessera::ops {
namespace {

// Capitals [first, last] and the distance to their small letters; distance 1 is the scripts where
// capital and small letter stand in turn, the capital on the parity of `first`.
struct CaseRange {
  char32_t first;
  char32_t last;
  std::uint32_t distance;
};

constexpr CaseRange kCaseRanges[] = {
    {0x41, 0x5A, 32},   {0xC0, 0xD6, 32},    {0xD8, 0xDE, 32},    {0x100, 0x12E, 1},
    {0x132, 0x136, 1},  {0x139, 0x147, 1},   {0x14A, 0x176, 1},   {0x179, 0x17D, 1},
    {0x386, 0x386, 38}, {0x388, 0x38A, 37},  {0x38C, 0x38C, 64},  {0x38E, 0x38F, 63},
    {0x391, 0x3A1, 32}, {0x3A3, 0x3AB, 32},  {0x400, 0x40F, 80},  {0x410, 0x42F, 32},
    {0x460, 0x480, 1},  {0x48A, 0x4BE, 1},   {0x4C1, 0x4CD, 1},   {0x4D0, 0x52E, 1},
    {0x531, 0x556, 48}, {0x1E00, 0x1E94, 1}, {0x1EA0, 0x1EFE, 1}, {0xFF21, 0xFF3A, 32},
};

bool on_parity(const CaseRange& range, char32_t capital) {
  return range.distance != 1 || (capital - range.first) % 2 == 0;
}

// Bytes of the character that `lead` starts, 0 where it starts none.
std::size_t length_of(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return 2;
  if (lead >= 0xE0 && lead < 0xF0) return 3;
  return lead >= 0xF0 && lead < 0xF5 ? 4 : 0;
}

// No overlong form, no surrogate, nothing beyond Unicode.
bool is_sound(char32_t c, std::size_t length) {
  constexpr char32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  return c >= kSmallest[length] && c <= 0x10FFFF && (c < 0xD800 || c > 0xDFFF);
}

template <typename Map>
std::string mapped(std::string_view text, const Map& map) {
  std::string out;
  while (!text.empty()) {
    const std::string_view before = text;
    const char32_t c = take_char(text);
    const char32_t other = map(c);
    if (other == c) {
      out += before.substr(0, before.size() - text.size());  // damaged bytes stay as they are
    } else {
      append_utf8(other, out);
    }
  }
  return out;
}

}  // namespace

char32_t take_char(std::string_view& text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const std::size_t length = length_of(lead);
  char32_t c = length == 1 ? lead : lead & (0xFFU >> (length + 1));
  bool sound = length != 0 && length <= text.size();
  for (std::size_t i = 1; sound && i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    sound = (byte & 0xC0U) == 0x80U;
    c = (c << 6U) | (byte & 0x3FU);
  }
  if (!sound || !is_sound(c, length)) {
    text.remove_prefix(1);
    return kReplacement;
  }
  text.remove_prefix(length);
  return c;
}

std::u32string decode_utf8(std::string_view text) {
  std::u32string out;
  out.reserve(text.size());
  while (!text.empty()) out += take_char(text);
  return out;
}

void append_utf8(char32_t c, std::string& to) {
  const auto tail = [&](unsigned shift) {
    to += static_cast<char>(0x80U | ((c >> shift) & 0x3FU));
  };
  if (c < 0x80) {
    to += static_cast<char>(c);
  } else if (c < 0x800) {
    to += static_cast<char>(0xC0U | (c >> 6U));
    tail(0);
  } else if (c < 0x10000) {
    to += static_cast<char>(0xE0U | (c >> 12U));
    tail(6);
    tail(0);
  } else {
    to += static_cast<char>(0xF0U | (c >> 18U));
    tail(12);
    tail(6);
    tail(0);
  }
}

bool is_space_char(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

char32_t lower_char(char32_t c) {
  if (c == 0x178) return 0xFF;
  for (const CaseRange& range : kCaseRanges) {
    if (c >= range.first && c <= range.last && on_parity(range, c)) return c + range.distance;
  }
  return c;
}

char32_t upper_char(char32_t c) {
  if (c == 0xFF) return 0x178;
  if (c == 0xB5) return 0x39C;   // micro sign
  if (c == 0x3C2) return 0x3A3;  // final sigma
  for (const CaseRange& range : kCaseRanges) {
    const char32_t capital = c - range.distance;
    if (capital >= range.first && capital <= range.last && on_parity(range, capital))
      return capital;
  }
  return c;
}

std::string lower_text(std::string_view text) {
  return mapped(text, lower_char);
}

std::string upper_text(std::string_view text) {
  return mapped(text, upper_char);
}

}  // namespace tessera::ops
