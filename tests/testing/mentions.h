#pragma once

// Whether a message says what it should, as the shared cases count it.

#include <algorithm>
#include <cctype>
#include <string>

namespace tessera::testing {

inline std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// Any case; words under four letters only as whole words.
inline bool mentions(const std::string& text, const std::string& word) {
  const auto is_word_part = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  const std::string haystack = lower_case(text);
  const std::string needle = lower_case(word);
  for (std::size_t at = haystack.find(needle); at != std::string::npos;
       at = haystack.find(needle, at + 1)) {
    if (needle.size() >= 4) return true;
    const std::size_t end = at + needle.size();
    if ((at == 0 || !is_word_part(haystack[at - 1])) &&
        (end == haystack.size() || !is_word_part(haystack[end])))
      return true;
  }
  return false;
}

// `text` with every occurrence of `part` taken out.
inline std::string without(std::string text, const std::string& part) {
  if (part.empty()) return text;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part))
    text.erase(at, part.size());
  return text;
}

}  // namespace tessera::testing
