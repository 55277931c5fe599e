#include "passes/simplify_algebra.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "passes/float_elements.h"
#include "passes/rewrite.h"

namespace tessera::passes {
namespace {

// The operand that the node passes through, because the other one is neutral.
ir::ValueId neutral_operand(const ir::Graph& graph, const ir::Node& node) {
  const bool is_mul = is_op(node, "Mul");
  const bool is_add = is_op(node, "Add");
  const bool has_unit = is_mul || is_op(node, "Div") || is_op(node, "Pow");
  if (!has_unit && !is_add && !is_op(node, "Sub")) return ir::kNoValue;
  const double neutral = has_unit ? 1 : 0;
  for (const std::size_t constant : {1U, 0U}) {
    if (constant == 0 && !is_mul && !is_add) break;
    const ir::ValueId kept = node.inputs[1 - constant];
    if (uniform_constant(graph, node.inputs[constant]) == neutral &&
        same_type(graph, kept, node.outputs[0]))
      return kept;
  }
  return ir::kNoValue;
}

// 1 / x for every element, where all of them are good enough; else nothing.
std::optional<Tensor> reciprocal(const Tensor& divisor, bool exact) {
  if (!has_float_elements(divisor.dtype()) || divisor.numel() == 0) return std::nullopt;
  const bool is_short = divisor.dtype() == DType::kFp16 || divisor.dtype() == DType::kBf16;
  const double smallest = divisor.dtype() == DType::kFp16 ? 0x1p-14
                          : divisor.dtype() == DType::kFp64
                              ? std::numeric_limits<double>::min()
                              : static_cast<double>(std::numeric_limits<float>::min());
  std::vector<double> elements = float_elements(divisor.view());
  for (double& element : elements) {
    int exponent = 0;
    const bool is_power_of_two = std::abs(std::frexp(element, &exponent)) == 0.5;
    if (!is_power_of_two && (exact || is_short)) return std::nullopt;
    element = round_to(divisor.dtype(), 1 / element);
    if (!std::isfinite(element) || std::abs(element) < smallest) return std::nullopt;
  }
  return from_float_elements(divisor.dtype(), divisor.dims(), elements);
}

Result<bool> simplify_division(PassContext& context, ir::Graph& graph, ir::Node& node) {
  const Tensor* divisor = constant_of(graph, node.inputs[1]);
  if (divisor == nullptr) return false;
  auto factor = reciprocal(*divisor, context.options.exact);
  if (!factor) return false;
  const ir::ValueId constant =
      graph.add_constant(graph.fresh_name(graph.value(node.inputs[1]).name), *std::move(factor));
  TESSERA_TRY(replace_node(context, graph, node, {"Mul", {}, {node.inputs[0], constant}}));
  return true;
}

Result<bool> simplify_power(PassContext& context, ir::Graph& graph, ir::Node& node) {
  const auto exponent = uniform_constant(graph, node.inputs[1]);
  if (!exponent || !same_type(graph, node.inputs[0], node.outputs[0])) return false;
  const ir::ValueId base = node.inputs[0];
  if (*exponent == 2) {
    TESSERA_TRY(replace_node(context, graph, node, {"Mul", {}, {base, base}}));
    return true;
  }
  if (*exponent != 0.5 || context.options.exact ||
      !has_float_elements(graph.value(base).type.dtype))
    return false;
  TESSERA_TRY(replace_node(context, graph, node, {"Sqrt", {}, {base}}));
  return true;
}

// A bias of zeros is none.
bool drop_zero_bias(ir::Graph& graph, ir::Node& node) {
  constexpr std::size_t kBias = 2;
  if (!is_op(node, "LayerNormalization") || node.inputs.size() != kBias + 1 ||
      uniform_constant(graph, node.inputs[kBias]) != 0)
    return false;
  graph.set_inputs(node, {node.inputs[0], node.inputs[1]});
  return true;
}

}  // namespace

Result<bool> simplify_algebra(PassContext& context, ir::Graph& graph) {
  bool changed = false;
  for (const ir::NodeId id : node_ids(graph)) {
    ir::Node& node = *graph.find_node(id);
    const ir::ValueId kept = neutral_operand(graph, node);
    if (kept != ir::kNoValue && eliminate(graph, node, kept)) {
      changed = true;
    } else if (is_op(node, "Div")) {
      TESSERA_ASSIGN(const bool simplified, simplify_division(context, graph, node));
      changed = changed || simplified;
    } else if (is_op(node, "Pow")) {
      TESSERA_ASSIGN(const bool simplified, simplify_power(context, graph, node));
      changed = changed || simplified;
    } else {
      changed = drop_zero_bias(graph, node) || changed;
    }
  }
  return changed;
}

}  // namespace tessera::passes
