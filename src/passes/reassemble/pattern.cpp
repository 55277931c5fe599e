#include "passes/reassemble/pattern.h"

#include <algorithm>
#include <functional>

#include "passes/rewrite.h"

namespace tessera::passes::reassemble {

// A product or sum of many factors has many associations; patterns stay below this.
constexpr std::size_t kMaxParts = 5;

class Pattern {
 public:
  enum class Kind : std::uint8_t { kValue, kNumber, kOp, kProduct, kSum, kInverse, kOneOf, kNamed };
  Kind kind = Kind::kValue;
  std::string name;
  std::vector<std::string> types;  // kOp
  std::vector<PatternPtr> parts;  // operands, factors, terms, alternatives; one of kInverse, kNamed
};

namespace {

PatternPtr make(Pattern::Kind kind, std::string name, std::vector<PatternPtr> parts) {
  auto pattern = std::make_shared<Pattern>();
  pattern->kind = kind;
  pattern->name = std::move(name);
  pattern->parts = std::move(parts);
  return pattern;
}

// Every value of `from` is one of `to`.
bool holds_all(DType from, DType to) {
  const auto is_half = [](DType dtype) { return dtype == DType::kFp16 || dtype == DType::kBf16; };
  return from == to || (is_half(from) && (to == DType::kFp32 || to == DType::kFp64)) ||
         (from == DType::kFp32 && to == DType::kFp64);
}

bool is_noise(const ir::Graph& graph, const ir::Node* node) {
  if (is_op(node, "Identity")) return true;
  return is_op(node, "Cast") && holds_all(graph.value(node->inputs[0]).type.dtype,
                                          graph.value(node->outputs[0]).type.dtype);
}

// Depth first with continuations: what a part binds is taken back where the rest does not match.
class Matcher {
 public:
  using Next = std::function<bool()>;

  Matcher(const ir::Graph& graph, Match& match) : graph_(graph), match_(match) {}

  bool at(const Pattern& pattern, ir::ValueId id, const Next& next) {
    if (id == ir::kNoValue) return false;
    const Match before = match_;
    const bool matched = try_at(pattern, id, next);
    if (!matched) match_ = before;
    return matched;
  }

 private:
  bool try_at(const Pattern& pattern, ir::ValueId id, const Next& next) {
    switch (pattern.kind) {
      case Pattern::Kind::kValue: return bind(pattern.name, id) && next();
      case Pattern::Kind::kNumber: return bind_number(pattern.name, id, false) && next();
      case Pattern::Kind::kOp: return at_op(pattern, id, next);
      case Pattern::Kind::kProduct:
      case Pattern::Kind::kSum: {
        std::vector<const Pattern*> parts;
        for (const PatternPtr& part : pattern.parts) parts.push_back(part.get());
        return pattern.kind == Pattern::Kind::kSum ? at_sum(parts, id, next)
                                                   : at_product(parts, id, false, next);
      }
      case Pattern::Kind::kInverse: return at_inverse(*pattern.parts[0], id, next);
      case Pattern::Kind::kOneOf:
        return std::any_of(pattern.parts.begin(), pattern.parts.end(),
                           [&](const PatternPtr& part) { return at(*part, id, next); });
      case Pattern::Kind::kNamed: return at_named(pattern, id, next);
    }
    return false;
  }

  bool bind(const std::string& name, ir::ValueId id) {
    const auto [entry, is_new] = match_.values.emplace(name, id);
    return is_new || behind_noise(graph_, entry->second) == behind_noise(graph_, id);
  }

  bool bind_number(const std::string& name, ir::ValueId id, bool inverted) {
    const auto found = scalar_of(graph_, id);
    if (!found || (inverted && *found == 0)) return false;
    const double factor = inverted ? 1 / *found : *found;
    const auto [entry, is_new] = match_.numbers.emplace(name, factor);
    return is_new || entry->second == factor;
  }

  bool at_named(const Pattern& pattern, ir::ValueId id, const Next& next) {
    if (const auto bound = match_.values.find(pattern.name); bound != match_.values.end())
      return behind_noise(graph_, bound->second) == behind_noise(graph_, id) && next();
    return at(*pattern.parts[0], id,
              [&] { return match_.values.emplace(pattern.name, id).second && next(); });
  }

  // The node that computes the value, behind noise that counts as covered; null where there is
  // none.
  const ir::Node* node_at(ir::ValueId id) {
    const ir::Node* node = graph_.producer(id);
    while (is_noise(graph_, node)) {
      cover(node);
      node = graph_.producer(node->inputs[0]);
    }
    return node;
  }

  void cover(const ir::Node* node) {
    auto& covered = match_.covered;
    if (std::find(covered.begin(), covered.end(), node) == covered.end()) covered.push_back(node);
  }

  bool at_op(const Pattern& pattern, ir::ValueId id, const Next& next) {
    const ir::Node* node = node_at(id);
    // A Cast that a pattern names is none that is looked through.
    if (node == nullptr || !node->op->domain.empty() ||
        std::find(pattern.types.begin(), pattern.types.end(), node->op->name) ==
            pattern.types.end() ||
        node->inputs.size() < pattern.parts.size())
      return false;
    cover(node);
    if (!pattern.name.empty()) match_.nodes[pattern.name] = node;
    if (at_operands(pattern, *node, 0, false, next)) return true;
    return pattern.parts.size() == 2 && node->op->commutative &&
           at_operands(pattern, *node, 0, true, next);
  }

  bool at_operands(const Pattern& pattern, const ir::Node& node, std::size_t index, bool swapped,
                   const Next& next) {
    if (index == pattern.parts.size()) return next();
    const std::size_t input = swapped ? 1 - index : index;
    return at(*pattern.parts[index], node.inputs[input],
              [&] { return at_operands(pattern, node, index + 1, swapped, next); });
  }

  // Each way to give every part to one of the two operands, none left without.
  template <typename Left, typename Right>
  bool split(const std::vector<const Pattern*>& parts, const Left& left, const Right& right) {
    const std::size_t count = std::size_t{1} << parts.size();
    for (std::size_t mask = 1; mask + 1 < count; ++mask) {
      std::vector<const Pattern*> first;
      std::vector<const Pattern*> second;
      for (std::size_t i = 0; i < parts.size(); ++i)
        ((mask >> i & 1U) != 0 ? first : second).push_back(parts[i]);
      const Match before = match_;
      if (left(first, [&] { return right(second); })) return true;
      match_ = before;
    }
    return false;
  }

  bool at_sum(const std::vector<const Pattern*>& terms, ir::ValueId id, const Next& next) {
    if (terms.size() == 1) return at(*terms[0], id, next);
    const ir::Node* node = node_at(id);
    if (!is_op(node, "Add")) return false;
    cover(node);
    return split(
        terms,
        [&](const auto& first, const Next& rest) { return at_sum(first, node->inputs[0], rest); },
        [&](const auto& second) { return at_sum(second, node->inputs[1], next); });
  }

  bool at_product(const std::vector<const Pattern*>& factors, ir::ValueId id, bool inverted,
                  const Next& next) {
    if (factors.size() == 1) return at_factor(*factors[0], id, inverted, next);
    const ir::Node* node = node_at(id);
    const bool divides = is_op(node, "Div");
    if (!divides && !is_op(node, "Mul")) return false;
    cover(node);
    return split(
        factors,
        [&](const auto& first, const Next& rest) {
          return at_product(first, node->inputs[0], inverted, rest);
        },
        [&](const auto& second) {
          return at_product(second, node->inputs[1], inverted != divides, next);
        });
  }

  // One factor; where it is a divisor, only a number or an inverse can stand there.
  bool at_factor(const Pattern& factor, ir::ValueId id, bool inverted, const Next& next) {
    if (!inverted) return at(factor, id, next);
    if (factor.kind == Pattern::Kind::kNumber) return bind_number(factor.name, id, true) && next();
    if (factor.kind == Pattern::Kind::kOneOf) {
      for (const PatternPtr& part : factor.parts) {
        const Match before = match_;
        if (at_factor(*part, id, true, next)) return true;
        match_ = before;
      }
    }
    return factor.kind == Pattern::Kind::kInverse && at(*factor.parts[0], id, next);
  }

  bool at_inverse(const Pattern& denominator, ir::ValueId id, const Next& next) {
    const ir::Node* node = node_at(id);
    if (is_op(node, "Reciprocal")) {
      cover(node);
      return at(denominator, node->inputs[0], next);
    }
    if (!is_op(node, "Div") || scalar_of(graph_, node->inputs[0]) != 1) return false;
    cover(node);
    return at(denominator, node->inputs[1], next);
  }

  const ir::Graph& graph_;
  Match& match_;
};

}  // namespace

PatternPtr value(std::string name) {
  return make(Pattern::Kind::kValue, std::move(name), {});
}
PatternPtr number(std::string name) {
  return make(Pattern::Kind::kNumber, std::move(name), {});
}

PatternPtr op(std::string_view types, std::vector<PatternPtr> operands, std::string name) {
  auto pattern = std::make_shared<Pattern>();
  pattern->kind = Pattern::Kind::kOp;
  pattern->name = std::move(name);
  pattern->parts = std::move(operands);
  for (std::size_t begin = 0; begin <= types.size();) {
    const std::size_t end = std::min(types.find('|', begin), types.size());
    pattern->types.emplace_back(types.substr(begin, end - begin));
    begin = end + 1;
  }
  return pattern;
}

PatternPtr product(std::vector<PatternPtr> factors) {
  TESSERA_CHECK(factors.size() >= 2 && factors.size() <= kMaxParts);
  return make(Pattern::Kind::kProduct, {}, std::move(factors));
}
PatternPtr sum(std::vector<PatternPtr> terms) {
  TESSERA_CHECK(terms.size() >= 2 && terms.size() <= kMaxParts);
  return make(Pattern::Kind::kSum, {}, std::move(terms));
}
PatternPtr inverse(PatternPtr denominator) {
  return make(Pattern::Kind::kInverse, {}, {std::move(denominator)});
}
PatternPtr one_of(std::vector<PatternPtr> alternatives) {
  return make(Pattern::Kind::kOneOf, {}, std::move(alternatives));
}
PatternPtr named(std::string name, PatternPtr pattern) {
  return make(Pattern::Kind::kNamed, std::move(name), {std::move(pattern)});
}

ir::ValueId Match::value(std::string_view name) const {
  const auto found = values.find(name);
  return found == values.end() ? ir::kNoValue : found->second;
}

const ir::Node* Match::node(std::string_view name) const {
  const auto found = nodes.find(name);
  return found == nodes.end() ? nullptr : found->second;
}

double Match::number(std::string_view name) const {
  const auto found = numbers.find(name);
  TESSERA_CHECK(found != numbers.end());
  return found->second;
}

bool matches(const ir::Graph& graph, const Pattern& pattern, ir::ValueId root, Match& match) {
  match = {};
  return Matcher(graph, match).at(pattern, root, [] { return true; });
}

ir::ValueId behind_noise(const ir::Graph& graph, ir::ValueId id) {
  for (const ir::Node* node = graph.producer(id); is_noise(graph, node); node = graph.producer(id))
    id = node->inputs[0];
  return id;
}

std::optional<double> scalar_of(const ir::Graph& graph, ir::ValueId id) {
  const Tensor* tensor = constant_of(graph, id);
  return tensor != nullptr && tensor->numel() == 1 ? uniform_constant(graph, id) : std::nullopt;
}

}  // namespace tessera::passes::reassemble
