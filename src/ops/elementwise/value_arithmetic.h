#pragma once

// Shape arithmetic: elementwise operators over elements that are known as expressions.

#include <optional>

#include "ops/op.h"

namespace tessera::ops {

// One element of the result; nothing where it cannot be said.
using DimFunction = std::optional<Dim> (*)(const Dim& a, const Dim& b);

// Sets the value of output 0 from those of inputs 0 and 1, broadcast, where every element of the
// result is known.
void propagate_binary(InferContext& context, DimFunction function);

std::optional<Dim> dim_add(const Dim& a, const Dim& b);
std::optional<Dim> dim_sub(const Dim& a, const Dim& b);
std::optional<Dim> dim_mul(const Dim& a, const Dim& b);
// Truncates as ONNX does; known where neither side can be negative.
std::optional<Dim> dim_div(const Dim& a, const Dim& b);
// The sign of the divisor, as `fmod` = 0.
std::optional<Dim> dim_mod(const Dim& a, const Dim& b);
std::optional<Dim> dim_min(const Dim& a, const Dim& b);
std::optional<Dim> dim_max(const Dim& a, const Dim& b);
// 0 or 1 where the order of both is certain.
std::optional<Dim> dim_equal(const Dim& a, const Dim& b);
std::optional<Dim> dim_less(const Dim& a, const Dim& b);
std::optional<Dim> dim_less_or_equal(const Dim& a, const Dim& b);
std::optional<Dim> dim_greater(const Dim& a, const Dim& b);
std::optional<Dim> dim_greater_or_equal(const Dim& a, const Dim& b);
std::optional<Dim> dim_and(const Dim& a, const Dim& b);
std::optional<Dim> dim_or(const Dim& a, const Dim& b);

}  // namespace tessera::ops
