#pragma once

// UTF-8 as the text operators see it, by ICU. Independent of the locale of the process.

#include <string>
#include <string_view>

namespace tessera::ops {

// Takes one character off the front of `text` (not empty), so that every text can be read: bytes
// that are no character count as U+FFFD.
char32_t take_char(std::string_view& text);

// What separates words where no delimiter is given: the white space of Unicode and the ASCII
// separators 0x1c to 0x1f.
bool is_space_char(char32_t c);

// Unicode's full case mappings in the language of `locale` ("tr_TR"; the root's where ICU does not
// know it). Bytes that are no character stay as they are.
std::string lower_text(std::string_view text, const std::string& locale);
std::string upper_text(std::string_view text, const std::string& locale);

}  // namespace tessera::ops
