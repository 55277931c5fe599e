#pragma once

// Casts between strings and numbers.

#include "base/error.h"
#include "base/tensor.h"

namespace tessera::ops {

// Numbers as their shortest decimal text ("1.5", "1e-05", "NaN", "INF", "-INF"), bool as "True" and
// "False".
Status cast_to_strings(const TensorView& from, const MutableTensorView& to);

// Decimal and scientific notation, and the words above in any case. An error shows the text that is
// no number.
Status cast_from_strings(const TensorView& from, const MutableTensorView& to, bool saturate);

}  // namespace tessera::ops
