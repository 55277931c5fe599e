#include "passes/reassemble/attention_parts.h"

#include <fmt/format.h>

#include "ops/nn/attention_plan.h"
#include "passes/rewrite.h"

namespace tessera::passes::reassemble {
namespace {

// A score this low stays what it is when another score is added to it.
constexpr double kAbsorbs = -1e30;
constexpr std::size_t kMaxScoreSteps = 8;

class Reader {
 public:
  Reader(const Assembler& assembler, const ir::Node& softmax)
      : assembler_(assembler), graph_(assembler.view().graph()), softmax_(softmax) {}

  std::optional<AttentionParts> read() {
    if (!reads_last_axis() || !read_weights() || !read_scores(softmax_.inputs[0], 0))
      return std::nullopt;
    parts_.nodes.push_back(&softmax_);
    read_operands();
    return std::move(parts_);
  }

 private:
  [[nodiscard]] const std::optional<Shape>& shape(ir::ValueId id) const {
    return assembler_.type(id).shape;
  }

  [[nodiscard]] bool reads_last_axis() const {
    const auto& dims = shape(softmax_.outputs[0]);
    if (!dims || (dims->size() != 3 && dims->size() != 4)) return false;
    const std::int64_t axis = softmax_.attributes.get_int("axis", -1);
    return axis == -1 || axis == static_cast<std::int64_t>(dims->size()) - 1;
  }

  [[nodiscard]] const ir::Node* sole_reader(ir::ValueId id) const {
    return assembler_.view().uses().sole_reader(id);
  }

  // The node that makes a value which only what is looked through reads; else null. Noise counts.
  [[nodiscard]] const ir::Node* inner(ir::ValueId id) const {
    const ir::Node* node = graph_.producer(id);
    return node != nullptr && sole_reader(id) != nullptr ? node : nullptr;
  }

  void add(const ir::Node* node) { parts_.nodes.push_back(node); }
  void miss(std::string reason) {
    if (parts_.reason.empty()) parts_.reason = std::move(reason);
  }

  // From the Softmax to the product with V; a guard against rows without any key in between.
  bool read_weights() {
    ir::ValueId weights = softmax_.outputs[0];
    const auto uses = assembler_.view().uses().uses(weights);
    if (uses.size() == 2 && !assembler_.view().uses().is_output(weights)) {
      const ir::Node* is_nan = uses[0].node;
      const ir::Node* guard = uses[1].node;
      if (!is_op(*is_nan, "IsNaN")) std::swap(is_nan, guard);
      const bool guarded = is_op(*is_nan, "IsNaN") && is_op(*guard, "Where") &&
                           guard->inputs[0] == is_nan->outputs[0] && guard->inputs[2] == weights &&
                           scalar_of(graph_, guard->inputs[1]) == 0 &&
                           sole_reader(is_nan->outputs[0]) == guard;
      if (guarded) {
        add(is_nan);
        add(guard);
        weights = guard->outputs[0];
        guarded_ = true;
      }
    }
    const ir::Node* cast = sole_reader(weights);
    if (is_op(cast, "Cast")) {  // back to the type of the products
      add(cast);
      weights = cast->outputs[0];
    }
    const auto readers = assembler_.view().uses().uses(weights);
    for (const ir::Graph::Use& use : readers) {
      if (!is_op(*use.node, "MatMul") || use.index != 0) continue;
      add(use.node);
      parts_.result = use.node->outputs[0];
      value_ = use.node->inputs[1];
      return true;
    }
    return false;
  }

  // From the Softmax up to the product of Q and K: scales, masks, a transpose, in any order.
  bool read_scores(ir::ValueId id, std::size_t depth) {
    const ir::Node* node = graph_.producer(id);
    if (node == nullptr || depth > kMaxScoreSteps) return false;
    if (is_op(*node, "MatMul")) {
      add(node);
      parts_.scores = node;
      return true;
    }
    if (is_op(*node, "Mul") || is_op(*node, "Div")) return read_scale(*node, depth);
    if (is_op(*node, "Add") || is_op(*node, "Where")) return read_mask(*node, depth);
    if (is_op(*node, "Transpose") && swaps_last_two(*node)) {
      if (!read_scores(node->inputs[0], depth + 1)) return false;
      add(node);
      parts_.scores_are_turned = !parts_.scores_are_turned;
      if (mask_is_below_) miss(fmt::format("'{}' turns the mask as well", node->name));
      return true;
    }
    return is_op(*node, "Cast") && read_cast(*node, depth);
  }

  // Softmax in a wider type than its products.
  bool read_cast(const ir::Node& node, std::size_t depth) {
    const ir::ValueId from = node.inputs[0];
    if (behind_noise(graph_, node.outputs[0]) != behind_noise(graph_, from) ||
        !read_scores(from, depth + 1))
      return false;
    add(&node);
    parts_.softmax_dtype = assembler_.type(node.outputs[0]).dtype;
    return true;
  }

  bool read_scale(const ir::Node& node, std::size_t depth) {
    const bool divides = is_op(node, "Div");
    for (const std::size_t at : {1U, 0U}) {
      const auto factor = scalar_of(graph_, node.inputs[at]);
      if (!factor || (divides && (at == 0 || *factor == 0))) continue;
      if (!read_scores(node.inputs[1 - at], depth + 1)) return false;
      add(&node);
      if (mask_is_below_) miss(fmt::format("'{}' scales the mask as well", node.name));
      parts_.scale *= divides ? 1 / *factor : *factor;
      return true;
    }
    return false;
  }

  bool read_mask(const ir::Node& node, std::size_t depth) {
    const bool is_where = is_op(node, "Where");
    const std::size_t first = is_where ? 1 : 0;
    for (const std::size_t at : {first, first + 1}) {
      const AttentionParts before = parts_;
      if (!read_scores(node.inputs[at], depth + 1)) {
        parts_ = before;
        continue;
      }
      add(&node);
      if (mask_is_below_) {
        miss(fmt::format("'{}' adds a second mask", node.name));
        return true;
      }
      mask_is_below_ = true;
      const ir::ValueId other = node.inputs[2 * first + 1 - at];
      if (is_where) {
        parts_.mask = {at == 1 ? Mask::Kind::kKept : Mask::Kind::kDropped, node.inputs[0], 0};
        read_low(node, other);
      } else {
        parts_.mask = {Mask::Kind::kAdded, other, 0};
      }
      check_mask(node, node.inputs[at]);
      return true;
    }
    return false;
  }

  void read_low(const ir::Node& node, ir::ValueId id) {
    const auto low = scalar_of(graph_, id);
    if (!low || !(*low <= kAbsorbs)) {
      return miss(fmt::format("'{}' puts {} in the place of masked scores: expected minus infinity",
                              node.name, low ? fmt::format("{:.7g}", *low) : "no constant"));
    }
    parts_.mask.low = *low;
  }

  // The mask has the scores' last size, and does not widen them.
  void check_mask(const ir::Node& node, ir::ValueId scores) {
    const ir::ValueId id = parts_.mask.value;
    const auto& mask = shape(id);
    if (!mask || !shape(scores))
      return miss(fmt::format("the rank of mask {} is unknown", assembler_.quoted(id)));
    if (shape(scores) != shape(node.outputs[0]))
      return miss(fmt::format("mask {} widens the scores", assembler_.quoted(id)));
    const Dim& last = shape(scores)->back();
    if (mask->empty() || mask->back() != last)
      miss(fmt::format("mask {} of shape {} has not the scores' last size {}",
                       assembler_.quoted(id), to_string(*mask), last.to_string()));
  }

  [[nodiscard]] bool swaps_last_two(const ir::Node& transpose) const {
    const auto perm = transpose.attributes.get_ints("perm");
    for (std::size_t i = 0; i < perm.size(); ++i) {
      const std::size_t wanted = i + 2 == perm.size() ? i + 1 : i + 1 == perm.size() ? i - 1 : i;
      if (perm[i] != static_cast<std::int64_t>(wanted)) return false;
    }
    return perm.size() >= 2;
  }

  void read_operands() {
    parts_.nan_rows = guarded_                                ? ops::nn::kNanIsZero
                      : parts_.mask.kind != Mask::Kind::kNone ? ops::nn::kNanRowsStay
                                                              : ops::nn::kMaskedRowsAreZero;
    const std::size_t query = parts_.scores_are_turned ? 1 : 0;
    // The left factor of a product is read as it is, the right one with its last two axes swapped.
    parts_.query = read_operand(parts_.scores->inputs[query], query == 1);
    parts_.key = read_operand(parts_.scores->inputs[1 - query], query == 0);
    share_heads(parts_.key);
    parts_.value.source = value_;
    share_heads(parts_.value);
  }

  // Scales, then the transpose that swaps the last two axes where there is to be one.
  Operand read_operand(ir::ValueId id, bool swapped) {
    id = behind_scale(id);
    if (!swapped) return {id, std::nullopt};
    const auto rank = static_cast<std::int64_t>(shape(id)->size());
    std::vector<std::int64_t> perm;
    for (std::int64_t axis = 0; axis < rank; ++axis) perm.push_back(axis);
    const ir::Node* node = inner(id);
    if (is_op(node, "Transpose")) {
      add(node);
      perm = node->attributes.get_ints("perm");
      id = node->inputs[0];
    }
    std::swap(perm[perm.size() - 2], perm[perm.size() - 1]);
    bool stays = true;
    for (std::size_t axis = 0; axis < perm.size(); ++axis)
      stays = stays && perm[axis] == static_cast<std::int64_t>(axis);
    if (stays) id = behind_scale(id);
    Operand operand{id, std::nullopt};
    if (!stays) operand.perm = std::move(perm);
    return operand;
  }

  ir::ValueId behind_scale(ir::ValueId id) {
    while (const ir::Node* node = inner(id)) {
      const bool divides = is_op(*node, "Div");
      if (!divides && !is_op(*node, "Mul")) break;
      std::size_t at = 1;
      auto factor = scalar_of(graph_, node->inputs[1]);
      if (!factor && !divides) factor = scalar_of(graph_, node->inputs[at = 0]);
      if (!factor || (divides && *factor == 0)) break;
      add(node);
      parts_.scale *= divides ? 1 / *factor : *factor;
      id = node->inputs[1 - at];
    }
    return id;
  }

  // Heads repeated for a group of queries: [b, h, t, d] -> [b, h, 1, t, d] -> [b, h, g, t, d] ->
  // [b, h * g, t, d]; or one head spread by Expand.
  void share_heads(Operand& operand) {
    if (operand.perm) return;
    const ir::Node* node = inner(operand.source);
    if (node == nullptr || !shape(node->outputs[0]) || shape(node->outputs[0])->size() != 4) return;
    if (is_op(*node, "Expand")) {
      const auto& from = shape(node->inputs[0]);
      const Shape& to = *shape(node->outputs[0]);
      const bool spreads = from && from->size() == 4 && (*from)[1] == Dim(1) &&
                           (*from)[0] == to[0] && (*from)[2] == to[2] && (*from)[3] == to[3];
      if (!spreads) return;
      add(node);
      operand.source = node->inputs[0];
      return;
    }
    if (!is_op(*node, "Reshape")) return;
    const ir::Node* expand = inner(node->inputs[0]);
    if (!is_op(expand, "Expand")) return;
    const auto& wide = shape(expand->outputs[0]);
    const auto& thin = shape(expand->inputs[0]);
    const Shape& joined = *shape(node->outputs[0]);
    if (!wide || !thin || wide->size() != 5 || thin->size() != 5) return;
    const auto& w = *wide;
    const auto& t = *thin;
    if (joined != Shape{w[0], w[1] * w[2], w[3], w[4]}) return;
    if (t[1] == Dim(1) && t[2] == w[2] && w[1] != Dim(1))
      return miss(
          fmt::format("'{}' repeats all heads one after the other: expected each beside "
                      "its own",
                      expand->name));
    if (t != Shape{w[0], w[1], Dim(1), w[3], w[4]}) return;
    const ir::Node* view = inner(expand->inputs[0]);
    const bool adds_axis = (is_op(view, "Unsqueeze") || is_op(view, "Reshape")) &&
                           shape(view->inputs[0]) == Shape{t[0], t[1], t[3], t[4]};
    if (!adds_axis) return;
    for (const ir::Node* part : {node, expand, view}) add(part);
    operand.source = view->inputs[0];
  }

  const Assembler& assembler_;
  const ir::Graph& graph_;
  const ir::Node& softmax_;
  AttentionParts parts_;
  ir::ValueId value_ = ir::kNoValue;
  bool guarded_ = false;
  bool mask_is_below_ = false;
};

}  // namespace

std::optional<AttentionParts> read_attention(const Assembler& assembler, const ir::Node& softmax) {
  return Reader(assembler, softmax).read();
}

}  // namespace tessera::passes::reassemble
