#pragma once

// The inside of a Dim: a sum of monomials over factors. Only the dim_*.cpp files read this.

#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/dim_expr.h"

namespace tessera {

// A factor of a monomial: a symbol (no op; its name), or an opaque operation over two canonical
// dims.
struct Dim::Term {
  std::optional<Op> op;
  std::string name;
  Dim a;
  Dim b;
  std::int64_t size = 1;  // symbols and constants below it, counted as a tree
};

namespace detail {

using Factor = std::shared_ptr<const Dim::Term>;
using Factors = std::vector<Factor>;  // sorted; a power is a repeated factor

struct Monomial {
  std::int64_t coefficient = 0;  // not 0
  Factors factors;               // empty: the constant of the sum
};

// Dims with symbols first, by their monomials; constants by value.
std::strong_ordering compare(const Dim& a, const Dim& b);
std::strong_ordering compare(const Dim::Term& a, const Dim::Term& b);

// Graded lexicographic: more factors first, then the factors in order. Products keep the order,
// which is what division needs.
std::strong_ordering compare(const Factors& a, const Factors& b);

// The product of two monomials' factors, and the quotient where `divisor` is contained in
// `factors`.
Factors multiply(const Factors& a, const Factors& b);
std::optional<Factors> divide(const Factors& factors, const Factors& divisor);

// Simplifies `op` over two dims that are not too large; in dim_simplify.cpp.
Dim simplify(Dim::Op op, const Dim& a, const Dim& b);

// The value of `op` at two constants. Errors: division by zero, overflow, a broadcast of sizes that
// disagree.
Result<std::int64_t> apply(Dim::Op op, std::int64_t a, std::int64_t b);

// Rounding towards minus infinity; b is not 0 and the quotient fits.
constexpr std::int64_t floor_quotient(std::int64_t a, std::int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

// What floor_quotient leaves, in [0, b); b > 0.
constexpr std::int64_t floor_remainder(std::int64_t a, std::int64_t b) {
  return a % b < 0 ? a % b + b : a % b;
}

// The name of an operation in the text form: "floordiv".
const char* to_string(Dim::Op op);

}  // namespace detail

// A dim that holds a symbol, or one that is too large to keep. A size above kMaxSize, or a
// coefficient that does not fit 64 bits, makes the dim `too_large`: so is every dim built from it,
// and its evaluation is an error. This bounds the work that a hostile model can ask for.
struct Dim::Node {
  static constexpr std::int64_t kMaxSize = 2048;

  std::vector<detail::Monomial>
      sum;  // sorted by factors, largest first; at least one with factors unless too_large
  std::int64_t size = 0;
  bool too_large = false;

  // Sorts, merges and drops zeros.
  static Dim from_monomials(std::vector<detail::Monomial> monomials);
  static Dim from_term(std::shared_ptr<const Term> term);
  static Dim opaque(Op op, const Dim& a, const Dim& b);  // without simplification
  static Dim make_too_large();

  static bool is_too_large(const Dim& dim) { return dim.node_ != nullptr && dim.node_->too_large; }
  static std::int64_t size_of(const Dim& dim) { return dim.node_ == nullptr ? 1 : dim.node_->size; }
  static std::vector<detail::Monomial> monomials(const Dim& dim);  // none for 0 and for too_large
  static const Node* node_of(const Dim& dim) { return dim.node_.get(); }  // null for a constant
};

}  // namespace tessera
