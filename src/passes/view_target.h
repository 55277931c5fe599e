#pragma once

// Target shapes of Reshape nodes that passes make.

#include <optional>
#include <vector>

#include "base/shape.h"

namespace tessera::passes {

// The elements of a constant second input with which Reshape gives `shape`: one size that is no
// number becomes -1. Nothing where two are no numbers, or one is 0 (which Reshape reads as "as the
// input has").
std::optional<std::vector<std::int64_t>> reshape_target(const Shape& shape);

}  // namespace tessera::passes
