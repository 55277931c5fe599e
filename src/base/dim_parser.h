#pragma once

// Reads dims that stand inside a longer text, such as a type.

#include <string_view>

#include "base/dim_expr.h"

namespace tessera {

// Reads the longest dim at the start of `text` and removes it (and the spaces before it). Errors
// name what was expected.
Result<Dim> parse_dim_prefix(std::string_view& text);

}  // namespace tessera
