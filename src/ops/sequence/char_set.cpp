#include <algorithm>

#include "ops/sequence/regex.h"
#include "ops/sequence/unicode.h"

namespace tessera::ops {
namespace {

constexpr char32_t kLastChar = 0x10FFFF;

// The characters that the case mappings know lie in these.
constexpr CharSet::Range kCased[] = {{0x41, 0x58F}, {0x1E00, 0x1EFF}, {0xFF21, 0xFF5A}};

void add_ranges(CharSet& into, std::string_view pairs) {
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2)
    into.add(static_cast<unsigned char>(pairs[i]), static_cast<unsigned char>(pairs[i + 1]));
}

}  // namespace

void CharSet::add(const CharSet& other) {
  ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end());
}

void CharSet::add_other_cases() {
  normalize();
  const std::vector<Range> given = ranges_;
  for (const Range& range : given) {
    for (const Range& cased : kCased) {
      const char32_t last = std::min(range.second, cased.second);
      for (char32_t c = std::max(range.first, cased.first); c <= last; ++c) {
        if (const char32_t lower = lower_char(c); lower != c) add(lower, lower);
        if (const char32_t upper = upper_char(c); upper != c) add(upper, upper);
      }
    }
  }
}

void CharSet::normalize() {
  std::sort(ranges_.begin(), ranges_.end());
  std::vector<Range> merged;
  for (const Range& range : ranges_) {
    if (!merged.empty() && range.first <= merged.back().second + 1) {
      merged.back().second = std::max(merged.back().second, range.second);
    } else {
      merged.push_back(range);
    }
  }
  ranges_ = std::move(merged);
}

void CharSet::negate() {
  std::vector<Range> gaps;
  char32_t begin = 0;
  for (const Range& range : ranges_) {
    if (range.first > begin) gaps.emplace_back(begin, range.first - 1);
    begin = range.second + 1;
  }
  if (begin <= kLastChar) gaps.emplace_back(begin, kLastChar);
  ranges_ = std::move(gaps);
}

bool CharSet::contains(char32_t c) const {
  const auto after =
      std::upper_bound(ranges_.begin(), ranges_.end(), c,
                       [](char32_t x, const Range& range) { return x < range.first; });
  return after != ranges_.begin() && c <= std::prev(after)->second;
}

bool perl_class(char32_t letter, CharSet& into) {
  CharSet set;
  switch (letter) {
    case U'd':
    case U'D': add_ranges(set, "09"); break;
    case U'w':
    case U'W': add_ranges(set, "09AZ__az"); break;
    case U's':
    case U'S': add_ranges(set, "\t\n\f\r  "); break;
    default: return false;
  }
  set.normalize();
  if (letter < U'a') set.negate();
  into.add(set);
  return true;
}

bool posix_class(std::string_view name, CharSet& into) {
  struct Named {
    std::string_view name;
    std::string_view pairs;
  };
  using namespace std::string_view_literals;
  static constexpr Named kNamed[] = {
      {"alnum", "09AZaz"sv},
      {"alpha", "AZaz"sv},
      {"ascii", "\0\x7F"sv},
      {"blank", "\t\t  "sv},
      {"cntrl", "\0\x1F\x7F\x7F"sv},
      {"digit", "09"sv},
      {"graph", "!~"sv},
      {"lower", "az"sv},
      {"print", " ~"sv},
      {"punct", "!/:@[`{~"sv},
      {"space", "\t\r  "sv},
      {"upper", "AZ"sv},
      {"word", "09AZaz__"sv},
      {"xdigit", "09AFaf"sv},
  };
  for (const Named& named : kNamed) {
    if (named.name != name) continue;
    add_ranges(into, named.pairs);
    return true;
  }
  return false;
}

}  // namespace tessera::ops
