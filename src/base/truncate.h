#pragma once

// Floats to integers, as every cast here does it.

#include <cmath>
#include <limits>

namespace tessera {

// Towards zero. Where ONNX leaves it undefined: the nearest integer of the type for a value out of
// range, 0 for NaN.
template <typename Integer>
Integer saturating_truncate(double value) {
  if (std::isnan(value)) return 0;
  const double truncated = std::trunc(value);
  // The bounds as doubles: `above` is one more than the largest, exact for every width.
  const double above = std::ldexp(1.0, std::numeric_limits<Integer>::digits);
  if (truncated >= above) return std::numeric_limits<Integer>::max();
  if (truncated < static_cast<double>(std::numeric_limits<Integer>::min()))
    return std::numeric_limits<Integer>::min();
  return static_cast<Integer>(truncated);
}

}  // namespace tessera
