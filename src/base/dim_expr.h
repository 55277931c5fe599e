#pragma once

// A dimension: an integer expression over symbols ("batch", "2*h", "floordiv(w + 1, 2)").
//
// Kept in a canonical form, so that equal expressions built in different ways compare equal: a sum
// of monomials with integer coefficients, sorted; a factor is a symbol or an opaque term (floordiv,
// ceildiv, mod, min, max, broadcast) over canonical dims. Immutable and cheap to copy.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace tessera {

// Values of symbols at one point.
using SymbolBindings = std::map<std::string, std::int64_t, std::less<>>;

// The range of a symbol, both ends included. Sizes of ONNX are at least 0.
struct SymbolRange {
  std::int64_t min = 0;
  std::int64_t max = INT64_MAX;
  friend bool operator==(const SymbolRange&, const SymbolRange&) = default;
};

// Every symbol of a module with its range.
using SymbolTable = std::map<std::string, SymbolRange, std::less<>>;

class Dim {
 public:
  enum class Op : std::uint8_t { kFloorDiv, kCeilDiv, kMod, kMin, kMax, kBroadcast };
  struct Term;  // an opaque factor; defined in dim_expr.cpp
  struct Node;

  Dim() : Dim(0) {}
  Dim(std::int64_t constant);  // NOLINT(google-explicit-constructor): a size is a dimension
  static Dim symbol(std::string name);

  // floordiv and ceildiv round towards minus and plus infinity; mod has the sign of the divisor.
  // broadcast(a, b) is b where a is 1, else a: the size that ONNX broadcasting gives to two sizes
  // that agree.
  static Dim combine(Op op, const Dim& a, const Dim& b);
  friend Dim operator+(const Dim& a, const Dim& b);
  friend Dim operator-(const Dim& a, const Dim& b);
  friend Dim operator*(const Dim& a, const Dim& b);

  [[nodiscard]] std::optional<std::int64_t> constant() const;  // its value where it holds no symbol
  [[nodiscard]] bool is_constant() const { return constant().has_value(); }
  [[nodiscard]] std::optional<std::string> as_symbol()
      const;  // its name where it is one symbol alone
  void collect_symbols(std::set<std::string, std::less<>>& into) const;

  // a / b where that is exact for every value of the symbols (b a monomial that divides each
  // monomial of a), else nothing.
  [[nodiscard]] std::optional<Dim> exact_div(const Dim& divisor) const;

  // Its value at a point. Errors: a symbol without a value (named), division by zero, overflow.
  [[nodiscard]] Result<std::int64_t> evaluate(const SymbolBindings& bindings) const;

  // The interval that the expression can take (an outer bound).
  [[nodiscard]] SymbolRange range(const SymbolTable& symbols) const;

  [[nodiscard]] Dim substitute(const std::map<std::string, Dim, std::less<>>& values) const;

  // Text that parse_dim reads back to an equal dim: "2*h + floordiv(w + 1, 2)". A symbol that is
  // not an identifier stands in back quotes, as in `p2o.Dim.0`, with "\\`" and "\\\\" escaped.
  [[nodiscard]] std::string to_string() const;

  friend bool operator==(const Dim& a, const Dim& b);
  friend bool operator<(const Dim& a,
                        const Dim& b);  // a total order for canonical forms, not of sizes

 private:
  explicit Dim(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  std::shared_ptr<const Node> node_;  // null: constant_ holds the value
  std::int64_t constant_ = 0;
};

Result<Dim> parse_dim(std::string_view text);

Dim floordiv(const Dim& a, const Dim& b);
Dim ceildiv(const Dim& a, const Dim& b);
Dim mod(const Dim& a, const Dim& b);
Dim min(const Dim& a, const Dim& b);
Dim max(const Dim& a, const Dim& b);

// The broadcast size of two dims: folds where one is 1 or both are equal; an error where both are
// constants that disagree.
Result<Dim> broadcast(const Dim& a, const Dim& b);

}  // namespace tessera
