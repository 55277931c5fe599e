#pragma once

// The characters of a pattern, one after the other, and the parts of it that stand for characters:
// escapes and classes.

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.h"
#include "ops/sequence/regex.h"

namespace tessera::ops {

class PatternReader {
 public:
  explicit PatternReader(std::u32string pattern) : pattern_(std::move(pattern)) {}

  [[nodiscard]] bool at_end() const { return at_ == pattern_.size(); }
  [[nodiscard]] bool at(std::u32string_view text) const {
    return std::u32string_view(pattern_).substr(at_).starts_with(text);
  }
  [[nodiscard]] bool at_between(char32_t first, char32_t last) const {
    return !at_end() && pattern_[at_] >= first && pattern_[at_] <= last;
  }
  bool accept(std::u32string_view text);
  char32_t take() { return pattern_[at_++]; }  // not at the end
  [[nodiscard]] std::size_t place() const { return at_; }
  void go_to(std::size_t place) { at_ = place; }

  // A failure behind the characters taken so far.
  [[nodiscard]] tl::unexpected<Error> error(const std::string& message) const;

  // The character that a backslash and `c`, which is taken already, stand for.
  Result<char32_t> escaped_char(char32_t c);
  // What stands after the '[' of a class, through its ']'.
  Result<CharSet> char_class(bool fold);

 private:
  Result<char32_t> hex_char();
  Status class_item(CharSet& set);
  Result<char32_t> class_char();
  Status named_class(std::size_t end, CharSet& set);

  std::u32string pattern_;
  std::size_t at_ = 0;
};

// For messages.
std::string to_utf8(char32_t c);

}  // namespace tessera::ops
