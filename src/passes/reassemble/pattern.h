#pragma once

// Patterns over what computes a value, for operators that exporters spell in pieces. A pattern says
// structure alone: names bind values, nodes and numbers, and the family that owns the pattern
// judges them afterwards, so that it can say what is wrong with one that nearly fits.
//
// Operands of commutative operators match in any order; factors of a product and terms of a sum in
// any association; Identity, and Cast to a type that holds every value of the first, are looked
// through.

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "passes/cover_builder.h"

namespace tessera::passes::reassemble {

class Pattern;
using PatternPtr = std::shared_ptr<const Pattern>;

// Any value. A name that stands twice is one value (that of an Identity is its input's).
PatternPtr value(std::string name);
// A constant of one element, bound as a number. A divisor is bound as the factor that it is.
PatternPtr number(std::string name);
// The result of a node of ai.onnx of one of these types ("Sqrt", or "Relu|Clip"). Inputs beyond
// `operands` are left to the owner, who finds the node by `name`.
PatternPtr op(std::string_view types, std::vector<PatternPtr> operands, std::string name = {});
// Mul of all factors; Div by a factor counts as multiplication by its inverse.
PatternPtr product(std::vector<PatternPtr> factors);
// Add of all terms.
PatternPtr sum(std::vector<PatternPtr> terms);
// 1 / denominator: as a divisor inside of a product, or Reciprocal, or 1 / denominator.
PatternPtr inverse(PatternPtr denominator);
// The first alternative that lets the whole match.
PatternPtr one_of(std::vector<PatternPtr> alternatives);
// One value matched by `pattern` where the name is not bound yet; the same value where it is.
PatternPtr named(std::string name, PatternPtr pattern);

struct Match {
  std::map<std::string, ir::ValueId, std::less<>> values;
  std::map<std::string, const ir::Node*, std::less<>> nodes;
  std::map<std::string, double, std::less<>> numbers;
  std::vector<const ir::Node*> covered;  // each once; those that were looked through as well

  [[nodiscard]] ir::ValueId value(std::string_view name) const;  // kNoValue where it is not bound
  [[nodiscard]] const ir::Node* node(std::string_view name) const;  // null where it is not bound
  [[nodiscard]] bool has_number(std::string_view name) const { return numbers.contains(name); }
  [[nodiscard]] double number(std::string_view name) const;  // which must be bound
};

// Whether the value is computed as the pattern says.
bool matches(const ir::Graph& graph, const Pattern& pattern, ir::ValueId root, Match& match);

// Behind Identity and Cast to a type that holds every value of the first.
ir::ValueId behind_noise(const ir::Graph& graph, ir::ValueId id);

// The element of a float or integer constant of one element.
std::optional<double> scalar_of(const ir::Graph& graph, ir::ValueId id);

}  // namespace tessera::passes::reassemble
