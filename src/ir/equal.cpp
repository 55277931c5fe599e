#include <algorithm>

#include "ir/text.h"

namespace tessera::ir {
namespace {

bool equal_tensors(const Tensor& a, const Tensor& b) {
  if (!a.is_defined() || !b.is_defined()) return a.is_defined() == b.is_defined();
  return a.equals(b);
}

bool equal_values(const Value& a, const Value& b) {
  return a.name == b.name && a.type == b.type && a.kind == b.kind &&
         equal_tensors(a.constant, b.constant) && a.producer_output == b.producer_output &&
         a.known == b.known;
}

bool equal_graphs(const Graph& a, const Graph& b);

// Compares lists of values of two graphs by what they name. Producers agree where all nodes and
// their outputs do.
class ValueLists {
 public:
  ValueLists(const Graph& a, const Graph& b) : a_(a), b_(b) {}
  [[nodiscard]] bool equal(const std::vector<ValueId>& left,
                           const std::vector<ValueId>& right) const {
    return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                      [&](ValueId x, ValueId y) {
                        if (x == kNoValue || y == kNoValue) return x == y;
                        return equal_values(a_.value(x), b_.value(y));
                      });
  }

 private:
  const Graph& a_;
  const Graph& b_;
};

bool equal_nodes(const Node& a, const Node& b, const ValueLists& values) {
  if (a.op != b.op || a.name != b.name || !a.attributes.equals(b.attributes) ||
      a.origins != b.origins)
    return false;
  if (!values.equal(a.inputs, b.inputs) || !values.equal(a.outputs, b.outputs)) return false;
  if (a.bodies.size() != b.bodies.size() || a.captures.size() != b.captures.size()) return false;
  for (std::size_t i = 0; i < a.captures.size(); ++i) {
    if (!values.equal(a.captures[i], b.captures[i])) return false;
  }
  return std::equal(a.bodies.begin(), a.bodies.end(), b.bodies.begin(),
                    [](const auto& x, const auto& y) { return equal_graphs(*x, *y); });
}

bool equal_graphs(const Graph& a, const Graph& b) {
  const ValueLists values(a, b);
  return a.name == b.name && values.equal(a.inputs, b.inputs) &&
         values.equal(a.outputs, b.outputs) &&
         std::equal(a.nodes().begin(), a.nodes().end(), b.nodes().begin(), b.nodes().end(),
                    [&](const auto& x, const auto& y) { return equal_nodes(*x, *y, values); });
}

bool equal_states(const StatePair& a, const StatePair& b) {
  return a.input == b.input && a.output == b.output && equal_tensors(a.initial, b.initial);
}

bool equal_methods(const Method& a, const Method& b) {
  return a.name == b.name && a.weight == b.weight && equal_graphs(a.graph, b.graph) &&
         std::equal(a.states.begin(), a.states.end(), b.states.begin(), b.states.end(),
                    equal_states);
}

}  // namespace

bool equal(const Module& a, const Module& b) {
  const auto same_source = [](const SourceNode& x, const SourceNode& y) {
    return x.name == y.name && x.op_type == y.op_type;
  };
  return a.name == b.name && a.symbols == b.symbols && a.metadata == b.metadata &&
         std::equal(a.source_nodes.begin(), a.source_nodes.end(), b.source_nodes.begin(),
                    b.source_nodes.end(), same_source) &&
         std::equal(a.methods.begin(), a.methods.end(), b.methods.begin(), b.methods.end(),
                    equal_methods);
}

}  // namespace tessera::ir
