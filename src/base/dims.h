#pragma once

// Concrete sizes of a tensor, outermost first. Symbolic ones are `Shape` (base/shape.h).

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "tessera/dtype.h"

namespace tessera {

using Dims = std::vector<std::int64_t>;

// Product of the sizes (1 for rank 0); an error names the dims when it overflows or one is
// negative.
Result<std::int64_t> checked_numel(const Dims& dims);

// Bytes of a dense tensor; types of less than 8 bits round up to whole bytes; strings count
// sizeof(std::string) each.
Result<std::int64_t> checked_nbytes(DType dtype, const Dims& dims);

// The same for dims that are known to be sound (checked when they were made).
std::int64_t numel(const Dims& dims);
std::int64_t nbytes(DType dtype, const Dims& dims);

std::string to_string(const Dims& dims);  // "1x3x640x640"; "scalar" for rank 0

}  // namespace tessera
