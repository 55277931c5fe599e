#include "ops/elementwise/value_arithmetic.h"

#include <algorithm>
#include <limits>

#include "ops/infer_util.h"

namespace tessera::ops {
namespace {

bool at_least(const Dim& dim, std::int64_t least) {
  return dim.range({}).min >= least;
}

// A number that the dtype of the output cannot hold would have wrapped around.
bool fits(const Dim& dim, DType dtype) {
  const auto number = dim.constant();
  return !number || dtype != DType::kInt32 ||
         (*number >= std::numeric_limits<std::int32_t>::min() &&
          *number <= std::numeric_limits<std::int32_t>::max());
}

}  // namespace

void propagate_binary(InferContext& context, DimFunction function) {
  if (context.inputs.size() != 2 || context.outputs.empty()) return;
  const auto a = known_value(context.inputs[0]);
  const auto b = known_value(context.inputs[1]);
  if (!a || !b) return;
  const std::size_t na = a->elements.size();
  const std::size_t nb = b->elements.size();
  if (na != nb && na != 1 && nb != 1) return;
  DimTensor result{a->scalar && b->scalar, {}};
  const std::size_t count = na == 1 ? nb : na;
  for (std::size_t i = 0; i < count; ++i) {
    const auto element = function(a->elements[na == 1 ? 0 : i], b->elements[nb == 1 ? 0 : i]);
    if (!element || !fits(*element, context.outputs[0].dtype)) return;
    result.elements.push_back(*element);
  }
  set_value(context, 0, std::move(result));
}

std::optional<Dim> dim_add(const Dim& a, const Dim& b) {
  return a + b;
}
std::optional<Dim> dim_sub(const Dim& a, const Dim& b) {
  return a - b;
}
std::optional<Dim> dim_mul(const Dim& a, const Dim& b) {
  return a * b;
}

std::optional<Dim> dim_div(const Dim& a, const Dim& b) {
  const auto x = a.constant();
  const auto y = b.constant();
  if (y && *y == 0) return std::nullopt;
  if (x && y) return *y == -1 ? Dim(0) - a : Dim(*x / *y);
  if (auto exact = a.exact_div(b)) return exact;
  if (at_least(a, 0) && at_least(b, 1)) return floordiv(a, b);
  return std::nullopt;
}

std::optional<Dim> dim_mod(const Dim& a, const Dim& b) {
  if (b.constant() == 0) return std::nullopt;
  return mod(a, b);
}

std::optional<Dim> dim_min(const Dim& a, const Dim& b) {
  return min(a, b);
}
std::optional<Dim> dim_max(const Dim& a, const Dim& b) {
  return max(a, b);
}

std::optional<Dim> dim_less(const Dim& a, const Dim& b) {
  const SymbolRange difference = (b - a).range({});
  if (difference.min > 0) return Dim(1);
  if (difference.max <= 0) return Dim(0);
  return std::nullopt;
}

std::optional<Dim> dim_equal(const Dim& a, const Dim& b) {
  if (a == b) return Dim(1);
  const SymbolRange difference = (b - a).range({});
  if (difference.min > 0 || difference.max < 0) return Dim(0);
  return std::nullopt;
}

std::optional<Dim> dim_less_or_equal(const Dim& a, const Dim& b) {
  const auto greater = dim_less(b, a);
  return greater ? std::optional(Dim(1) - *greater) : std::nullopt;
}

std::optional<Dim> dim_greater(const Dim& a, const Dim& b) {
  return dim_less(b, a);
}
std::optional<Dim> dim_greater_or_equal(const Dim& a, const Dim& b) {
  return dim_less_or_equal(b, a);
}

std::optional<Dim> dim_and(const Dim& a, const Dim& b) {
  return a * b;
}
std::optional<Dim> dim_or(const Dim& a, const Dim& b) {
  return max(a, b);
}

}  // namespace tessera::ops
