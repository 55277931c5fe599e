#pragma once

// Tensors of strings as bytes, for files: the length of each (8 bytes, little endian), then all
// characters.

#include <span>

#include "base/tensor.h"

namespace tessera {

// A uint8 tensor of rank 1. TESSERA_CHECKs the dtype.
Tensor encode_strings(const TensorView& strings);

// Errors: lengths that do not add up to the bytes there are.
Result<Tensor> decode_strings(std::span<const std::byte> bytes, const Dims& dims);

}  // namespace tessera
