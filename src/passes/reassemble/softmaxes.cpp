// Softmax spelled out: exp(x - max(x)) / sum(exp(x - max(x))).

#include <fmt/format.h>

#include "passes/reassemble/assembler.h"
#include "passes/reassemble/reduction.h"
#include "passes/rewrite.h"

namespace tessera::passes::reassemble {
namespace {

using Judged = std::optional<std::string>;

std::vector<PatternPtr> spellings() {
  const PatternPtr x = value("x");
  const auto quotient = [](const PatternPtr& exponential) {
    return product({exponential, inverse(op("ReduceSum", {exponential}, "sum"))});
  };
  return {
      quotient(named("exponential", op("Exp", {op("Sub", {x, op("ReduceMax", {x}, "maximum")})}))),
      quotient(named("exponential", op("Exp", {x})))};
}

Judged check(const Assembler& assembler, const Match& match, ir::ValueId result) {
  const ir::Graph& graph = assembler.view().graph();
  if (!same_type(graph, match.value("x"), result)) return std::nullopt;
  std::optional<std::int64_t> axis;
  for (const char* name : {"sum", "maximum"}) {
    const ir::Node* node = match.node(name);
    if (node == nullptr) return std::string("no maximum is subtracted: exp may overflow");
    const Reduction reduction = read_reduction(graph, *node);
    if (!reduction.reason.empty()) return reduction.reason;
    if (!reduction.keepdims)
      return fmt::format("'{}' has keepdims=0: the result stands in other places of its rows",
                         node->name);
    if (reduction.axes.size() != 1)
      return fmt::format("'{}' has axes {}: expected one axis", node->name,
                         to_string(reduction.axes));
    if (axis && *axis != reduction.axes.front())
      return fmt::format("'{}' and '{}' have other axes", match.node("sum")->name, node->name);
    axis = reduction.axes.front();
  }
  return std::string();
}

void build(Assembler& assembler, const Match& match, Program& program) {
  const Reduction reduction = read_reduction(assembler.graph(), *match.node("sum"));
  ops::Attributes attributes;
  if (reduction.axes.front() != reduction.rank - 1) attributes.set("axis", reduction.axes.front());
  program.finish("", "Softmax", std::move(attributes), {match.value("x")});
}

}  // namespace

void propose_softmaxes(Assembler& assembler) {
  propose(assembler, {"Softmax", "Mul|Div", spellings(), check, build});
}

}  // namespace tessera::passes::reassemble
