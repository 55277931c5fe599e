#pragma once

// Text encodings of array files.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace tessera::io {

// Nothing where `text` is not valid UTF-8 (overlong forms and surrogates included) or UTF-32.
std::optional<std::u32string> utf8_to_utf32(std::string_view text);
std::optional<std::string> utf32_to_utf8(std::span<const char32_t> text);

}  // namespace tessera::io
