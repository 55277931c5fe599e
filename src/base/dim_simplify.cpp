// Rules that bring floordiv, ceildiv, mod, min, max and broadcast to their canonical form. A rule
// holds at every point where the expression has a value; where it has none (a division by zero,
// sizes that do not broadcast) the simpler form may.

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/checked.h"
#include "base/dim_node.h"

namespace tessera::detail {
namespace {

using Op = Dim::Op;

// The only factor of a dim that is `op` alone, plus the constant that is added to it.
struct Sole {
  Factor term;
  std::int64_t offset = 0;
};

std::optional<Sole> sole_term(const Dim& dim, Op op) {
  const auto sum = Dim::Node::monomials(dim);
  if (sum.empty() || sum.size() > 2) return std::nullopt;
  const Monomial& first = sum.front();
  if (first.coefficient != 1 || first.factors.size() != 1 || first.factors.front()->op != op) {
    return std::nullopt;
  }
  if (sum.size() == 2 && !sum.back().factors.empty()) return std::nullopt;
  return Sole{first.factors.front(), sum.size() == 2 ? sum.back().coefficient : 0};
}

// dim = divisor * quotient + rest, with each coefficient of rest in [0, divisor).
struct Split {
  Dim quotient;
  std::vector<Monomial> rest;
  std::int64_t rest_constant = 0;
  std::int64_t rest_gcd = 0;  // of the coefficients with factors; 0 where there is none
};

Split split_by(const Dim& dim, std::int64_t divisor) {
  Split split;
  std::vector<Monomial> quotient;
  for (const Monomial& monomial : Dim::Node::monomials(dim)) {
    const std::int64_t whole = floor_quotient(monomial.coefficient, divisor);
    const std::int64_t left = floor_remainder(monomial.coefficient, divisor);
    quotient.push_back({whole, monomial.factors});
    if (monomial.factors.empty()) {
      split.rest_constant = left;
    } else if (left != 0) {
      split.rest.push_back({left, monomial.factors});
      split.rest_gcd = std::gcd(split.rest_gcd, left);
    }
  }
  split.quotient = Dim::Node::from_monomials(std::move(quotient));
  return split;
}

// (rest + rest_constant) / by, each coefficient rounded down: exact for those with factors where
// `by` divides rest_gcd.
Dim divided_rest(const Split& split, std::int64_t by) {
  std::vector<Monomial> sum = split.rest;
  for (Monomial& monomial : sum) monomial.coefficient /= by;
  sum.push_back({split.rest_constant / by, {}});
  return Dim::Node::from_monomials(std::move(sum));
}

Dim floordiv_by_constant(const Dim& a, std::int64_t divisor) {
  const Split split = split_by(a, divisor);
  if (split.rest.empty()) return split.quotient;
  // floor((g x + k) / (g c)) = floor((x + floor(k / g)) / c).
  const std::int64_t common = std::gcd(split.rest_gcd, divisor);
  const Dim inner = divided_rest(split, common);
  const std::int64_t left_divisor = divisor / common;
  // floor((floor(x / a) + k) / b) = floor((x + k a) / (a b)).
  if (const auto nested = sole_term(inner, Op::kFloorDiv)) {
    const auto inner_divisor = nested->term->b.constant();
    if (inner_divisor && *inner_divisor > 0) {
      const auto product = checked_mul(*inner_divisor, left_divisor);
      const auto offset = checked_mul(*inner_divisor, nested->offset);
      if (product && offset) {
        return split.quotient + floordiv_by_constant(nested->term->a + Dim(*offset), *product);
      }
    }
  }
  return split.quotient + Dim::Node::opaque(Op::kFloorDiv, inner, left_divisor);
}

Dim mod_by_constant(const Dim& a, std::int64_t divisor) {
  Split split = split_by(a, divisor);
  if (split.rest.empty()) return split.rest_constant;
  // mod(g x + k, g c) = g mod(x + floor(k / g), c) + k mod g.
  const std::int64_t common = std::gcd(split.rest_gcd, divisor);
  const Dim inner = divided_rest(split, common);
  const std::int64_t left_divisor = divisor / common;
  Dim reduced = Dim::Node::opaque(Op::kMod, inner, left_divisor);
  if (const auto nested = sole_term(inner, Op::kMod)) {
    const auto inner_divisor = nested->term->b.constant();
    if (inner_divisor && *inner_divisor > 0 && *inner_divisor % left_divisor == 0) {
      reduced = mod_by_constant(nested->term->a + Dim(nested->offset), left_divisor);
    } else if (inner_divisor && *inner_divisor > 0 && nested->offset == 0 &&
               *inner_divisor <= left_divisor) {
      reduced = inner;
    }
  }
  return Dim(common) * reduced + Dim(split.rest_constant % common);
}

// Monomials of `a` that `b` divides, as quotient, and the others. Where b is one monomial c*m with
// c > 0, a coefficient of a multiple of m splits as that of a division by c.
std::pair<Dim, Dim> split_by_dim(const Dim& a, const Dim& b) {
  if (const auto exact = a.exact_div(b)) return {*exact, Dim(0)};
  const auto by = Dim::Node::monomials(b);
  if (by.size() != 1) return {Dim(0), a};
  std::vector<Monomial> quotient;
  std::vector<Monomial> rest;
  for (const Monomial& monomial : Dim::Node::monomials(a)) {
    const auto factors = divide(monomial.factors, by.front().factors);
    if (!factors) {
      rest.push_back(monomial);
      continue;
    }
    const std::int64_t whole = floor_quotient(monomial.coefficient, by.front().coefficient);
    quotient.push_back({whole, *factors});
    rest.push_back(
        {floor_remainder(monomial.coefficient, by.front().coefficient), monomial.factors});
  }
  return {Dim::Node::from_monomials(std::move(quotient)),
          Dim::Node::from_monomials(std::move(rest))};
}

bool leads_negative(const Dim& dim) {
  const auto sum = Dim::Node::monomials(dim);
  return !sum.empty() && sum.front().coefficient < 0;
}

Dim simplify_division(Op op, const Dim& a, const Dim& b) {
  if (b == Dim(0)) return Dim::Node::opaque(op, a, b);
  if (leads_negative(b)) {
    if (op == Op::kMod) return Dim(-1) * simplify(op, Dim(-1) * a, Dim(-1) * b);
    return simplify(op, Dim(-1) * a, Dim(-1) * b);
  }
  if (Dim::Node::is_too_large(a) || Dim::Node::is_too_large(b)) return Dim::Node::make_too_large();
  if (const auto divisor = b.constant()) {
    if (op == Op::kMod) return mod_by_constant(a, *divisor);
    // ceil(x / c) = floor((x + c - 1) / c).
    return floordiv_by_constant(op == Op::kCeilDiv ? a + Dim(*divisor - 1) : a, *divisor);
  }
  const auto [quotient, rest] = split_by_dim(a, b);
  const bool exact = rest == Dim(0);
  if (op == Op::kMod) return exact ? Dim(0) : Dim::Node::opaque(op, rest, b);
  return exact ? quotient : quotient + Dim::Node::opaque(op, rest, b);
}

// The operands of nested applications of an associative `op`.
void flatten(Op op, const Dim& dim, std::vector<Dim>& into) {
  const auto sole = sole_term(dim, op);
  if (!sole || sole->offset != 0) {
    into.push_back(dim);
    return;
  }
  flatten(op, sole->term->a, into);
  flatten(op, sole->term->b, into);
}

// Which of two operands of min or max the result is, where their difference is a constant.
std::optional<Dim> pick(Op op, const Dim& a, const Dim& b) {
  const auto difference = (a - b).constant();
  if (!difference) return std::nullopt;
  return (*difference < 0) == (op == Op::kMin) ? a : b;
}

Dim nest(Op op, std::vector<Dim> operands) {
  std::sort(operands.begin(), operands.end());
  Dim result = operands.front();
  for (std::size_t i = 1; i < operands.size(); ++i) {
    result = Dim::Node::opaque(op, result, operands[i]);
  }
  return result;
}

Dim simplify_min_max(Op op, const Dim& a, const Dim& b) {
  std::vector<Dim> operands;
  flatten(op, a, operands);
  flatten(op, b, operands);
  std::vector<Dim> kept;
  for (const Dim& operand : operands) {
    bool merged = false;
    for (Dim& other : kept) {
      if (const auto picked = pick(op, other, operand)) {
        other = *picked;
        merged = true;
        break;
      }
    }
    if (!merged) kept.push_back(operand);
  }
  return nest(op, std::move(kept));
}

Dim simplify_broadcast(const Dim& a, const Dim& b) {
  std::vector<Dim> operands;
  flatten(Op::kBroadcast, a, operands);
  flatten(Op::kBroadcast, b, operands);
  std::sort(operands.begin(), operands.end());
  operands.erase(std::unique(operands.begin(), operands.end()), operands.end());
  std::erase(operands, Dim(1));
  if (operands.empty()) return 1;
  // A constant that is not 1 is the result wherever the sizes agree.
  std::vector<Dim> constants;
  for (const Dim& operand : operands) {
    if (operand.is_constant()) constants.push_back(operand);
  }
  return nest(Op::kBroadcast, constants.empty() ? std::move(operands) : std::move(constants));
}

}  // namespace

Dim simplify(Op op, const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) {
    if (const auto value = apply(op, *a.constant(), *b.constant())) return *value;
  }
  switch (op) {
    case Op::kFloorDiv:
    case Op::kCeilDiv:
    case Op::kMod: return simplify_division(op, a, b);
    case Op::kMin:
    case Op::kMax: return simplify_min_max(op, a, b);
    case Op::kBroadcast: return simplify_broadcast(a, b);
  }
  return Dim::Node::make_too_large();
}

}  // namespace tessera::detail
