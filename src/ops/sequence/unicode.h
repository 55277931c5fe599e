#pragma once

// UTF-8 as the text operators see it. Independent of the locale of the process.

#include <string>
#include <string_view>

namespace tessera::ops {

inline constexpr char32_t kReplacement = 0xFFFD;

// Takes one character off the front of `text` (not empty). A byte that starts no character counts
// as one kReplacement, so that every text can be read.
char32_t take_char(std::string_view& text);
std::u32string decode_utf8(std::string_view text);
void append_utf8(char32_t c, std::string& to);

// What separates words where no delimiter is given: the white space of Unicode and the ASCII
// separators 0x1c to 0x1f.
bool is_space_char(char32_t c);

// Simple case mappings, one character to one: Latin (ASCII, Latin-1, Extended-A and Additional),
// Greek, Cyrillic, Armenian, and the full-width forms of ASCII. Other characters stay.
char32_t lower_char(char32_t c);
char32_t upper_char(char32_t c);
std::string lower_text(std::string_view text);
std::string upper_text(std::string_view text);

}  // namespace tessera::ops
