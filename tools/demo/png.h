#pragma once

// Pictures as PNG, so that every viewer shows them.

#include <string>

#include "demo/picture.h"

namespace tessera::demo {

// The bytes of a PNG file (ISO/IEC 15948): 8-bit RGB, no filter, one IDAT chunk.
std::string to_png(const Picture& picture);

}  // namespace tessera::demo
