#pragma once

// How large an expression is, for those who bound the memory that expressions take.

#include <cstdint>

#include "base/dim_expr.h"

namespace tessera {

// Symbols and constants in it, counted as a tree; 1 for a plain number.
std::int64_t expression_size(const Dim& dim);

}  // namespace tessera
