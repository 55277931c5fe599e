#pragma once

// Contents for tensors that nobody gave.

#include <cstdint>
#include <functional>

#include "base/tensor.h"

namespace tessera::compiler {

// Row-major. Each element, and each part of a complex one, is what `next` gives, as its dtype holds
// it; strings are empty. Errors: out of memory.
Result<Tensor> tensor_of(DType dtype, const Dims& dims, const std::function<float()>& next);

// Row-major. Floats and parts of complex numbers in [-1, 1] from `seed`; integers and booleans are
// all `integer`; strings are empty. Errors: out of memory.
Result<Tensor> drawn_tensor(DType dtype, const Dims& dims, std::uint32_t seed,
                            std::int64_t integer = 0);

}  // namespace tessera::compiler
