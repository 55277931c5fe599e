#pragma once

// Foreign text for people to read: names of a model, parts of a file.

#include <cstddef>
#include <string>
#include <string_view>

namespace tessera {

// Length of the UTF-8 sequence that `text` starts with, 0 where its bytes are none (overlong forms
// and surrogates included). `text` is not empty.
std::size_t utf8_length(std::string_view text);

// The same, and 0 for a control character too.
std::size_t visible_length(std::string_view text);

// "\x1b" for a byte.
void append_hex(char c, std::string& into);

// `text` on one line of bounded length: control characters and bytes that are not UTF-8 as "\x1b",
// of a long list in brackets its first items ("[1, 2, ... (998 more)]"), of a long word its two
// ends ("abc...(900 more)...xyz"), and so of what is too long all the same.
std::string shown(std::string_view text);

}  // namespace tessera
