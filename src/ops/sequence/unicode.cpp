#include "ops/sequence/unicode.h"

#include <unicode/bytestream.h>
#include <unicode/casemap.h>
#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <cstdint>

#include "base/error.h"

namespace tessera::ops {
namespace {

// ICU counts in 32 bits.
constexpr std::size_t kMostBytes = 1 << 30;

using CaseMapping = void (*)(const char* locale, std::uint32_t options, icu::StringPiece text,
                             icu::ByteSink& sink, icu::Edits* edits, UErrorCode& error);

std::string mapped(std::string_view text, const std::string& locale, CaseMapping map) {
  TESSERA_CHECK(text.size() <= kMostBytes);
  std::string out;
  icu::StringByteSink<std::string> sink(&out);
  UErrorCode error = U_ZERO_ERROR;
  map(locale.c_str(), 0, {text.data(), static_cast<std::int32_t>(text.size())}, sink, nullptr,
      error);
  TESSERA_CHECK(U_SUCCESS(error));
  return out;
}

}  // namespace

char32_t take_char(std::string_view& text) {
  constexpr std::int32_t kLongest = 4;
  const auto length = static_cast<std::int32_t>(std::min<std::size_t>(text.size(), kLongest));
  std::int32_t taken = 0;
  UChar32 c = 0;
  U8_NEXT_OR_FFFD(text.data(), taken, length, c);
  text.remove_prefix(static_cast<std::size_t>(taken));
  return static_cast<char32_t>(c);
}

bool is_space_char(char32_t c) {
  return u_isspace(static_cast<UChar32>(c)) != 0;
}

std::string lower_text(std::string_view text, const std::string& locale) {
  return mapped(text, locale, icu::CaseMap::utf8ToLower);
}

std::string upper_text(std::string_view text, const std::string& locale) {
  return mapped(text, locale, icu::CaseMap::utf8ToUpper);
}

}  // namespace tessera::ops
