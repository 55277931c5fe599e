#pragma once

// Bools that come from files.

#include "base/tensor.h"

namespace tessera::io {

// A bool tensor whose bytes are 0 or 1, any other byte as 1; another dtype unchanged. Kernels rely
// on it.
Tensor normalized_bools(Tensor tensor);

}  // namespace tessera::io
