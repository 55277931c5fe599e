#pragma once

// Regular expressions of RE2's syntax, matched in time linear in the text (no backtracking).
// Unicode classes (\p), \C and what RE2 itself lacks (back references, look-around) are refused.

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"

namespace tessera::ops {

// Characters as ranges, both ends included.
class CharSet {
 public:
  using Range = std::pair<char32_t, char32_t>;

  void add(char32_t first, char32_t last) { ranges_.emplace_back(first, last); }
  void add(const CharSet& other);
  void add_other_cases();  // the small letter of each capital and the reverse
  void normalize();        // sorted, none touches another; the next two rely on it
  void negate();
  [[nodiscard]] bool contains(char32_t c) const;
  [[nodiscard]] bool empty() const { return ranges_.empty(); }
  [[nodiscard]] const std::vector<Range>& ranges() const { return ranges_; }

 private:
  std::vector<Range> ranges_;
};

// One state of the machine. Distances are relative to the state itself.
struct RegexState {
  enum class Kind : std::uint8_t {
    kRange,   // a character from a to b, then the next state
    kSet,     // a character of set a, then the next state
    kAssert,  // assertion a holds, then the next state
    kJump,    // distance a
    kSplit,   // distances a and b
    kMatch,
  };
  enum Assertion : std::int32_t {
    kBeginText,
    kEndText,
    kBeginLine,
    kEndLine,
    kWordBorder,
    kNoWordBorder,
  };
  Kind kind = Kind::kMatch;
  std::int32_t a = 0;
  std::int32_t b = 0;
};

class Regex {
 public:
  // Errors say what is wrong, and behind which character of the pattern.
  static Result<Regex> compile(std::string_view pattern);

  // Whether all of `text` matches; it is read as UTF-8.
  [[nodiscard]] bool full_match(std::string_view text) const;

 private:
  std::vector<RegexState> states_;
  std::vector<CharSet> sets_;
};

// For the parser: the class \d, \w or \s, or the complement for a capital; nothing for other
// letters. And the POSIX class of that name ("alpha").
bool perl_class(char32_t letter, CharSet& into);
bool posix_class(std::string_view name, CharSet& into);

}  // namespace tessera::ops
