#include "ops/sequence/regex_reader.h"

#include <fmt/format.h>

#include "ops/sequence/unicode.h"

namespace tessera::ops {

std::string to_utf8(char32_t c) {
  std::string text;
  append_utf8(c, text);
  return text;
}

bool PatternReader::accept(std::u32string_view text) {
  if (!at(text)) return false;
  at_ += text.size();
  return true;
}

tl::unexpected<Error> PatternReader::error(const std::string& message) const {
  return fail(ErrorCode::kInvalidArgument, fmt::format("behind character {}: {}", at_, message));
}

Result<char32_t> PatternReader::escaped_char(char32_t c) {
  switch (c) {
    case U'a': return U'\a';
    case U'f': return U'\f';
    case U'n': return U'\n';
    case U'r': return U'\r';
    case U't': return U'\t';
    case U'v': return U'\v';
    case U'x': return hex_char();
    case U'p':
    case U'P': return error("Unicode classes (\\p) are not supported");
    default: break;
  }
  const auto octal_next = [&] { return at_between(U'0', U'7'); };
  if (c == U'0' || (c >= U'1' && c <= U'7' && octal_next())) {
    char32_t code = c - U'0';
    for (int i = 0; i < 2 && octal_next(); ++i) code = code * 8 + (take() - U'0');
    return code;
  }
  if (c >= U'1' && c <= U'9') return error("back references are not part of RE2's syntax");
  const bool is_letter = (c >= U'a' && c <= U'z') || (c >= U'A' && c <= U'Z');
  if (c >= 0x80 || is_letter)
    return error(fmt::format("the escape '\\{}' is not known or not supported", to_utf8(c)));
  return c;
}

// After \x: two digits, or any number in braces.
Result<char32_t> PatternReader::hex_char() {
  const bool braces = accept(U"{");
  char32_t code = 0;
  int digits = 0;
  for (; !at_end() && (braces || digits < 2); ++digits) {
    const char32_t c = pattern_[at_];
    const char32_t small = c | 0x20U;
    const bool is_number = c >= U'0' && c <= U'9';
    if (!is_number && (small < U'a' || small > U'f')) break;
    code = code * 16 + (is_number ? c - U'0' : small - U'a' + 10);
    ++at_;
    if (code > 0x10FFFF) break;
  }
  const bool complete = braces ? digits > 0 && accept(U"}") : digits == 2;
  if (complete && code <= 0x10FFFF) return code;
  return error("expected a character code after '\\x': two digits, or digits in braces");
}

Result<CharSet> PatternReader::char_class(bool fold) {
  const bool negated = accept(U"^");
  CharSet set;
  for (bool first = true; first || !accept(U"]"); first = false) {
    if (at_end()) return error("expected ']', found the end");
    TESSERA_TRY(class_item(set));
  }
  if (fold) set.add_other_cases();
  set.normalize();
  if (negated) set.negate();
  return set;
}

Status PatternReader::class_item(CharSet& set) {
  if (at(U"[:")) {
    const std::size_t end = pattern_.find(U":]", at_ + 2);
    if (end != std::u32string::npos) return named_class(end, set);
  }
  if (at(U"\\") && at_ + 1 < pattern_.size() && perl_class(pattern_[at_ + 1], set)) {
    at_ += 2;
    return {};
  }
  TESSERA_ASSIGN(const char32_t first, class_char());
  char32_t last = first;
  const bool is_range = at(U"-") && at_ + 1 < pattern_.size() && pattern_[at_ + 1] != U']';
  if (is_range) {
    take();
    TESSERA_ASSIGN(last, class_char());
    if (last < first)
      return error(fmt::format("the range '{}-{}' runs backwards", to_utf8(first), to_utf8(last)));
  }
  set.add(first, last);
  return {};
}

Result<char32_t> PatternReader::class_char() {
  const char32_t c = take();
  if (c != U'\\') return c;
  if (at_end()) return error("expected a character after '\\', found the end");
  return escaped_char(take());
}

Status PatternReader::named_class(std::size_t end, CharSet& set) {
  at_ += 2;
  const bool negated = accept(U"^");
  std::string name;
  while (at_ < end) append_utf8(take(), name);
  CharSet named;
  if (!posix_class(name, named))
    return error(fmt::format("expected a class such as [:alpha:], found [:{}:]", name));
  accept(U":]");
  named.normalize();
  if (negated) named.negate();
  set.add(named);
  return {};
}

}  // namespace tessera::ops
