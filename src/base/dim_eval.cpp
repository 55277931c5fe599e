// Values and intervals of dims.

#include <algorithm>
#include <array>
#include <utility>

#include "base/checked.h"
#include "base/dim_node.h"

namespace tessera {
namespace detail {
namespace {

__extension__ using Int128 = __int128;

tl::unexpected<Error> overflow() {
  return fail(ErrorCode::kOutOfRange, "the value of a dimension exceeds 64 bits");
}

Result<std::int64_t> divide_constants(Dim::Op op, std::int64_t a, std::int64_t b) {
  if (b == 0) {
    return fail(ErrorCode::kInvalidArgument, "division by zero in " + std::string(to_string(op)) +
                                                 "(" + std::to_string(a) + ", 0)");
  }
  if (b == -1) {  // the one divisor whose quotient may not fit
    if (op == Dim::Op::kMod) return 0;
    if (a == INT64_MIN) return overflow();
    return -a;
  }
  const std::int64_t floor = floor_quotient(a, b);
  if (op == Dim::Op::kFloorDiv) return floor;
  if (op == Dim::Op::kMod) return a - floor * b;
  return a % b == 0 ? floor : floor + 1;
}

}  // namespace

Result<std::int64_t> apply(Dim::Op op, std::int64_t a, std::int64_t b) {
  switch (op) {
    case Dim::Op::kFloorDiv:
    case Dim::Op::kCeilDiv:
    case Dim::Op::kMod: return divide_constants(op, a, b);
    case Dim::Op::kMin: return std::min(a, b);
    case Dim::Op::kMax: return std::max(a, b);
    case Dim::Op::kBroadcast:
      if (a == b || b == 1) return a;
      if (a == 1) return b;
      return fail(ErrorCode::kInvalidArgument,
                  "sizes " + std::to_string(a) + " and " + std::to_string(b) + " do not broadcast");
  }
  return overflow();
}

namespace {

// Intervals: INT64_MIN and INT64_MAX stand for the infinities, and stay infinite.
constexpr std::int64_t kMinusInfinity = INT64_MIN;
constexpr std::int64_t kInfinity = INT64_MAX;

bool is_infinite(std::int64_t bound) {
  return bound == kInfinity || bound == kMinusInfinity;
}

std::int64_t clamp(Int128 value) {
  return static_cast<std::int64_t>(std::clamp<Int128>(value, kMinusInfinity, kInfinity));
}

std::int64_t signed_infinity(bool negative) {
  return negative ? kMinusInfinity : kInfinity;
}

std::int64_t add_bounds(std::int64_t a, std::int64_t b) {
  if (is_infinite(a)) return a;
  if (is_infinite(b)) return b;
  return clamp(static_cast<Int128>(a) + b);
}

std::int64_t mul_bounds(std::int64_t a, std::int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (is_infinite(a) || is_infinite(b)) return signed_infinity((a < 0) != (b < 0));
  return clamp(static_cast<Int128>(a) * b);
}

SymbolRange hull(const std::vector<std::int64_t>& points) {
  const auto [low, high] = std::minmax_element(points.begin(), points.end());
  return {*low, *high};
}

SymbolRange mul_ranges(const SymbolRange& a, const SymbolRange& b) {
  return hull({mul_bounds(a.min, b.min), mul_bounds(a.min, b.max), mul_bounds(a.max, b.min),
               mul_bounds(a.max, b.max)});
}

// The quotient is monotone in the dividend, and in the divisor on either side of 0: its extremes
// are at the corners.
SymbolRange divide_ranges(Dim::Op op, const SymbolRange& a, const SymbolRange& b) {
  std::vector<std::int64_t> divisors;
  for (const std::int64_t candidate : {b.min, b.max, std::int64_t{-1}, std::int64_t{1}}) {
    if (candidate != 0 && candidate >= b.min && candidate <= b.max) divisors.push_back(candidate);
  }
  std::vector<std::int64_t> points;
  for (const std::int64_t divisor : divisors) {
    for (const std::int64_t bound : {a.min, a.max}) {
      points.push_back(divide_constants(op, bound, divisor).value_or(kInfinity));
      if (is_infinite(bound)) points.push_back(signed_infinity((bound < 0) != (divisor < 0)));
    }
  }
  if (points.empty()) return {kMinusInfinity, kInfinity};
  return hull(points);
}

SymbolRange mod_range(const SymbolRange& a, const SymbolRange& b) {
  if (b.min > 0 && a.min >= 0) {
    if (a.max < b.min) return a;
    return {0, std::min(a.max, is_infinite(b.max) ? b.max : b.max - 1)};
  }
  SymbolRange range{0, 0};
  if (b.max > 1) range.max = is_infinite(b.max) ? b.max : b.max - 1;
  if (b.min < -1) range.min = is_infinite(b.min) ? b.min : b.min + 1;
  return range;
}

SymbolRange apply_to_ranges(Dim::Op op, const SymbolRange& a, const SymbolRange& b) {
  switch (op) {
    case Dim::Op::kFloorDiv:
    case Dim::Op::kCeilDiv: return divide_ranges(op, a, b);
    case Dim::Op::kMod: return mod_range(a, b);
    case Dim::Op::kMin: return {std::min(a.min, b.min), std::min(a.max, b.max)};
    case Dim::Op::kMax: return {std::max(a.min, b.min), std::max(a.max, b.max)};
    case Dim::Op::kBroadcast:
      // Sizes of at least 1 broadcast to the larger; a 0 and a 1 broadcast to 0.
      if (a.min >= 1 && b.min >= 1) return {std::max(a.min, b.min), std::max(a.max, b.max)};
      return {std::min(a.min, b.min), std::max(a.max, b.max)};
  }
  return {kMinusInfinity, kInfinity};
}

Result<std::int64_t> evaluate_factor(const Dim::Term& term, const SymbolBindings& bindings) {
  if (!term.op) {
    const auto value = bindings.find(term.name);
    if (value == bindings.end()) {
      return fail(ErrorCode::kNotFound, "symbol '" + term.name + "' has no value");
    }
    return value->second;
  }
  TESSERA_ASSIGN(const std::int64_t a, term.a.evaluate(bindings));
  TESSERA_ASSIGN(const std::int64_t b, term.b.evaluate(bindings));
  return apply(*term.op, a, b);
}

}  // namespace
}  // namespace detail

Result<std::int64_t> Dim::evaluate(const SymbolBindings& bindings) const {
  if (node_ == nullptr) return constant_;
  if (node_->too_large) {
    return fail(ErrorCode::kOutOfRange, "the expression of a dimension is too large");
  }
  detail::Int128 sum = 0;  // at most kMaxSize summands of 64 bits
  for (const detail::Monomial& monomial : node_->sum) {
    std::int64_t product = monomial.coefficient;
    for (const auto& factor : monomial.factors) {
      TESSERA_ASSIGN(const std::int64_t value, detail::evaluate_factor(*factor, bindings));
      const auto next = checked_mul(product, value);
      if (!next) return detail::overflow();
      product = *next;
    }
    sum += product;
  }
  if (sum < INT64_MIN || sum > INT64_MAX) return detail::overflow();
  return static_cast<std::int64_t>(sum);
}

SymbolRange Dim::range(const SymbolTable& symbols) const {
  if (node_ == nullptr) return {constant_, constant_};
  if (node_->too_large) return {INT64_MIN, INT64_MAX};
  SymbolRange sum{0, 0};
  for (const detail::Monomial& monomial : node_->sum) {
    SymbolRange product{monomial.coefficient, monomial.coefficient};
    for (const auto& factor : monomial.factors) {
      SymbolRange range;
      if (factor->op) {
        range = detail::apply_to_ranges(*factor->op, factor->a.range(symbols),
                                        factor->b.range(symbols));
      } else if (const auto found = symbols.find(factor->name); found != symbols.end()) {
        range = found->second;
      }
      product = detail::mul_ranges(product, range);
    }
    sum = {detail::add_bounds(sum.min, product.min), detail::add_bounds(sum.max, product.max)};
  }
  return sum;
}

}  // namespace tessera
