#pragma once

// Wildcards over names, as users write them.

#include <string_view>

namespace tessera {

// Whether `glob` matches the whole of `text`: '*' any run of characters, '?' any one. At worst as
// many steps as the product of both lengths.
bool glob_matches(std::string_view glob, std::string_view text);

}  // namespace tessera
