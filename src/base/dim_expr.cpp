#include "base/dim_expr.h"

#include <algorithm>
#include <utility>

#include "base/checked.h"
#include "base/dim_node.h"
#include "base/dim_size.h"

namespace tessera {
namespace detail {

std::strong_ordering compare(const Dim::Term& a, const Dim::Term& b) {
  if (&a == &b) return std::strong_ordering::equal;
  if (a.op != b.op) {
    if (!a.op || !b.op) return a.op.has_value() <=> b.op.has_value();
    return *a.op <=> *b.op;
  }
  if (!a.op) return a.name.compare(b.name) <=> 0;
  if (const auto order = compare(a.a, b.a); order != 0) return order;
  return compare(a.b, b.b);
}

std::strong_ordering compare(const Factors& a, const Factors& b) {
  if (a.size() != b.size()) return b.size() <=> a.size();
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (const auto order = compare(*a[i], *b[i]); order != 0) return order;
  }
  return std::strong_ordering::equal;
}

std::strong_ordering compare(const Dim& a, const Dim& b) {
  const auto* left = Dim::Node::node_of(a);
  const auto* right = Dim::Node::node_of(b);
  if (left == nullptr && right == nullptr) return *a.constant() <=> *b.constant();
  if (left == nullptr || right == nullptr) return (left == nullptr) <=> (right == nullptr);
  if (left == right) return std::strong_ordering::equal;
  if (left->too_large || right->too_large) return left->too_large <=> right->too_large;
  for (std::size_t i = 0; i < std::min(left->sum.size(), right->sum.size()); ++i) {
    const Monomial& x = left->sum[i];
    const Monomial& y = right->sum[i];
    if (const auto order = compare(x.factors, y.factors); order != 0) return order;
    if (const auto order = x.coefficient <=> y.coefficient; order != 0) return order;
  }
  return left->sum.size() <=> right->sum.size();
}

Factors multiply(const Factors& a, const Factors& b) {
  Factors product;
  product.reserve(a.size() + b.size());
  std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(product),
             [](const Factor& x, const Factor& y) { return compare(*x, *y) < 0; });
  return product;
}

std::optional<Factors> divide(const Factors& factors, const Factors& divisor) {
  Factors quotient;
  auto next = divisor.begin();
  for (const Factor& factor : factors) {
    if (next != divisor.end() && compare(*factor, **next) == 0) {
      ++next;
    } else {
      quotient.push_back(factor);
    }
  }
  if (next != divisor.end()) return std::nullopt;
  return quotient;
}

}  // namespace detail

using detail::Factors;
using detail::Monomial;

Dim::Dim(std::int64_t constant) : constant_(constant) {}

Dim Dim::Node::make_too_large() {
  auto node = std::make_shared<Node>();
  node->too_large = true;
  return Dim(std::move(node));
}

Dim Dim::Node::from_monomials(std::vector<Monomial> monomials) {
  std::sort(monomials.begin(), monomials.end(), [](const Monomial& a, const Monomial& b) {
    return detail::compare(a.factors, b.factors) < 0;
  });
  std::vector<Monomial> merged;
  for (Monomial& monomial : monomials) {
    if (merged.empty() || detail::compare(merged.back().factors, monomial.factors) != 0) {
      if (!merged.empty() && merged.back().coefficient == 0) merged.pop_back();
      merged.push_back(std::move(monomial));
      continue;
    }
    const auto sum = checked_add(merged.back().coefficient, monomial.coefficient);
    if (!sum) return make_too_large();
    merged.back().coefficient = *sum;
  }
  if (!merged.empty() && merged.back().coefficient == 0) merged.pop_back();
  if (merged.empty()) return Dim(0);
  if (merged.front().factors.empty()) return Dim(merged.front().coefficient);
  auto node = std::make_shared<Node>();
  for (const Monomial& monomial : merged) {
    ++node->size;
    for (const auto& factor : monomial.factors) node->size += factor->size;
  }
  if (node->size > kMaxSize) return make_too_large();
  node->sum = std::move(merged);
  return Dim(std::move(node));
}

Dim Dim::Node::from_term(std::shared_ptr<const Term> term) {
  std::vector<Monomial> sum;
  sum.push_back({1, {std::move(term)}});
  return from_monomials(std::move(sum));
}

Dim Dim::Node::opaque(Op op, const Dim& a, const Dim& b) {
  if (is_too_large(a) || is_too_large(b)) return make_too_large();
  return from_term(std::make_shared<const Term>(Term{op, {}, a, b, size_of(a) + size_of(b)}));
}

std::vector<Monomial> Dim::Node::monomials(const Dim& dim) {
  if (dim.node_ != nullptr) return dim.node_->sum;
  if (dim.constant_ == 0) return {};
  return {Monomial{dim.constant_, {}}};
}

std::int64_t expression_size(const Dim& dim) {
  return Dim::Node::size_of(dim);
}

Dim Dim::symbol(std::string name) {
  return Node::from_term(std::make_shared<const Term>(Term{{}, std::move(name), {}, {}, 1}));
}

Dim Dim::combine(Op op, const Dim& a, const Dim& b) {
  if (Node::is_too_large(a) || Node::is_too_large(b)) return Node::make_too_large();
  return detail::simplify(op, a, b);
}

Dim operator+(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) {
    const auto sum = checked_add(a.constant_, b.constant_);
    return sum ? Dim(*sum) : Dim::Node::make_too_large();
  }
  if (Dim::Node::is_too_large(a) || Dim::Node::is_too_large(b)) return Dim::Node::make_too_large();
  auto sum = Dim::Node::monomials(a);
  for (Monomial& monomial : Dim::Node::monomials(b)) sum.push_back(std::move(monomial));
  return Dim::Node::from_monomials(std::move(sum));
}

Dim operator-(const Dim& a, const Dim& b) {
  return a + b * Dim(-1);
}

Dim operator*(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) {
    const auto product = checked_mul(a.constant_, b.constant_);
    return product ? Dim(*product) : Dim::Node::make_too_large();
  }
  if (Dim::Node::is_too_large(a) || Dim::Node::is_too_large(b)) return Dim::Node::make_too_large();
  const auto left = Dim::Node::monomials(a);
  const auto right = Dim::Node::monomials(b);
  if (static_cast<std::int64_t>(left.size() * right.size()) > Dim::Node::kMaxSize) {
    return Dim::Node::make_too_large();
  }
  std::vector<Monomial> product;
  product.reserve(left.size() * right.size());
  for (const Monomial& x : left) {
    for (const Monomial& y : right) {
      const auto coefficient = checked_mul(x.coefficient, y.coefficient);
      if (!coefficient) return Dim::Node::make_too_large();
      product.push_back({*coefficient, detail::multiply(x.factors, y.factors)});
    }
  }
  return Dim::Node::from_monomials(std::move(product));
}

std::optional<std::int64_t> Dim::constant() const {
  if (node_ != nullptr) return std::nullopt;
  return constant_;
}

std::optional<std::string> Dim::as_symbol() const {
  if (node_ == nullptr || node_->sum.size() != 1) return std::nullopt;
  const Monomial& monomial = node_->sum.front();
  if (monomial.coefficient != 1 || monomial.factors.size() != 1) return std::nullopt;
  if (monomial.factors.front()->op) return std::nullopt;
  return monomial.factors.front()->name;
}

void Dim::collect_symbols(std::set<std::string, std::less<>>& into) const {
  if (node_ == nullptr) return;
  for (const Monomial& monomial : node_->sum) {
    for (const auto& factor : monomial.factors) {
      if (!factor->op) {
        into.insert(factor->name);
      } else {
        factor->a.collect_symbols(into);
        factor->b.collect_symbols(into);
      }
    }
  }
}

// Division of polynomials: the largest monomial of what is left must divide by the largest of the
// divisor.
std::optional<Dim> Dim::exact_div(const Dim& divisor) const {
  if (Node::is_too_large(*this) || Node::is_too_large(divisor)) return std::nullopt;
  const auto by = Node::monomials(divisor);
  if (by.empty()) return std::nullopt;
  const Monomial& lead = by.front();
  Dim rest = *this;
  Dim quotient = 0;
  for (std::int64_t step = 0; step <= Node::kMaxSize; ++step) {
    const auto left = Node::monomials(rest);
    if (left.empty()) return Node::is_too_large(rest) ? std::nullopt : std::optional(quotient);
    const auto factors = detail::divide(left.front().factors, lead.factors);
    if (!factors || (lead.coefficient == -1 && left.front().coefficient == INT64_MIN)) break;
    if (left.front().coefficient % lead.coefficient != 0) break;
    const Dim part =
        Node::from_monomials({{left.front().coefficient / lead.coefficient, *factors}});
    quotient = quotient + part;
    rest = rest - part * divisor;
  }
  return std::nullopt;
}

Dim Dim::substitute(const std::map<std::string, Dim, std::less<>>& values) const {
  if (node_ == nullptr || node_->too_large) return *this;
  Dim result = 0;
  for (const Monomial& monomial : node_->sum) {
    Dim product = monomial.coefficient;
    for (const auto& factor : monomial.factors) {
      if (factor->op) {
        product = product *
                  combine(*factor->op, factor->a.substitute(values), factor->b.substitute(values));
      } else if (const auto value = values.find(factor->name); value != values.end()) {
        product = product * value->second;
      } else {
        product = product * Node::from_term(factor);
      }
    }
    result = result + product;
  }
  return result;
}

bool operator==(const Dim& a, const Dim& b) {
  return detail::compare(a, b) == 0;
}

bool operator<(const Dim& a, const Dim& b) {
  return detail::compare(a, b) < 0;
}

Dim floordiv(const Dim& a, const Dim& b) {
  return Dim::combine(Dim::Op::kFloorDiv, a, b);
}
Dim ceildiv(const Dim& a, const Dim& b) {
  return Dim::combine(Dim::Op::kCeilDiv, a, b);
}
Dim mod(const Dim& a, const Dim& b) {
  return Dim::combine(Dim::Op::kMod, a, b);
}
Dim min(const Dim& a, const Dim& b) {
  return Dim::combine(Dim::Op::kMin, a, b);
}
Dim max(const Dim& a, const Dim& b) {
  return Dim::combine(Dim::Op::kMax, a, b);
}

Result<Dim> broadcast(const Dim& a, const Dim& b) {
  const auto x = a.constant();
  const auto y = b.constant();
  if (x && y && *x != *y && *x != 1 && *y != 1) {
    return fail(ErrorCode::kInvalidArgument,
                "sizes " + std::to_string(*x) + " and " + std::to_string(*y) + " do not broadcast");
  }
  return Dim::combine(Dim::Op::kBroadcast, a, b);
}

}  // namespace tessera
