#pragma once

// Loops that measure bandwidth, dispatched to this processor's instruction set at run time.

#include <cstddef>

namespace tessera::backends::cpu {

// Reads all of `count` floats; gives their sum, so that no compiler leaves the reads out.
float read_all(const float* data, std::size_t count);

}  // namespace tessera::backends::cpu
