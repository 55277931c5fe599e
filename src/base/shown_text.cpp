#include "base/shown_text.h"

#include <algorithm>

namespace tessera {
namespace {

constexpr std::size_t kMaxText = 6000;
constexpr std::size_t kMaxWord = 400;
constexpr std::size_t kMaxItems = 32;    // of a list that is shown whole
constexpr std::size_t kShownItems = 16;  // of a longer one

// U+0080 to U+009F, which terminals obey too.
bool is_late_control(std::string_view sequence) {
  return sequence.size() == 2 && sequence[0] == '\xc2' &&
         static_cast<unsigned char>(sequence[1]) < 0xa0;
}

std::string escaped(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t length = visible_length(text);
    if (length == 0) append_hex(text.front(), result);
    result += text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return result;
}

bool continues_sequence(char c) {
  return (static_cast<unsigned char>(c) & 0xc0U) == 0x80U;
}

// `text` where it has at most `longest` bytes, else its first and last third of that many, cut
// between characters.
std::string two_ends(std::string_view text, std::size_t longest) {
  if (text.size() <= longest) return std::string(text);
  std::size_t head = longest / 3;
  std::size_t tail = text.size() - longest / 3;
  while (continues_sequence(text[head])) --head;
  while (tail < text.size() && continues_sequence(text[tail])) ++tail;
  return std::string(text.substr(0, head)) + "...(" + std::to_string(tail - head) + " more)..." +
         std::string(text.substr(tail));
}

// Lists in brackets without brackets inside: shapes, names.
std::string with_short_lists(std::string_view text) {
  constexpr std::string_view kComma = ", ";
  std::string result;
  while (!text.empty()) {
    const std::size_t open = std::min(text.find('['), text.size());
    const std::size_t close = text.find_first_of("[]", open + 1);
    if (open == text.size() || close == std::string_view::npos) break;
    const std::string_view list = text.substr(open, close - open);
    std::size_t items = 1;
    std::size_t cut = 0;
    for (std::size_t at = list.find(kComma); at != std::string_view::npos;
         at = list.find(kComma, at + 1)) {
      if (items++ == kShownItems) cut = at;
    }
    result += text.substr(0, open);
    if (text[close] == ']' && items > kMaxItems) {
      result += list.substr(0, cut);
      result += ", ... (" + std::to_string(items - kShownItems) + " more)";
    } else {
      result += list;
    }
    text.remove_prefix(close);
  }
  return result + std::string(text);
}

std::string with_short_words(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    result += two_ends(text.substr(0, end), kMaxWord);
    text.remove_prefix(end);
    if (text.empty()) break;
    result += ' ';
    text.remove_prefix(1);
  }
  return result;
}

}  // namespace

std::size_t utf8_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  const std::size_t length = lead < 0x80                   ? 1
                             : lead >= 0xc2 && lead < 0xe0 ? 2
                             : lead >= 0xe0 && lead < 0xf0 ? 3
                             : lead >= 0xf0 && lead < 0xf5 ? 4
                                                           : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if (!continues_sequence(text[i])) return 0;
  }
  if (length < 3) return length;
  const auto second = static_cast<unsigned char>(text[1]);
  const bool is_overlong = (lead == 0xe0 && second < 0xa0) || (lead == 0xf0 && second < 0x90);
  const bool is_no_character = (lead == 0xed && second >= 0xa0) || (lead == 0xf4 && second >= 0x90);
  return is_overlong || is_no_character ? 0 : length;
}

std::size_t visible_length(std::string_view text) {
  const std::size_t length = utf8_length(text);
  const auto lead = static_cast<unsigned char>(text.front());
  const bool is_control = lead < 0x20 || lead == 0x7f || is_late_control(text.substr(0, length));
  return is_control ? 0 : length;
}

void append_hex(char c, std::string& into) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  into += "\\x";
  into += kDigits[byte >> 4U];
  into += kDigits[byte & 0xfU];
}

std::string shown(std::string_view text) {
  return two_ends(with_short_words(with_short_lists(escaped(text))), kMaxText);
}

}  // namespace tessera
