// Recipes of products and recurrent layers.

#include <algorithm>

#include "random_models/recipes.h"

namespace tessera::random_models {
namespace {

// A second operand [batch..., rows, columns], where its sizes can be drawn.
std::optional<ValueId> matrix(Draft& draft, DType dtype, Sizes sizes) {
  if (!draft.can_be_input(sizes)) return std::nullopt;
  const bool fixed = std::ranges::all_of(sizes, is_fixed);
  if (!fixed || draft.random().chance(0.3)) return draft.fresh(dtype, sizes);
  Dims dims;
  for (const Size& size : sizes) dims.push_back(size[0]);
  return draft.weights(dtype, dims);
}

bool matmul(Draft& draft, DType dtype, Node& node) {
  const ValueId a = draft.operand(dtype, {1, 4});
  const Sizes left = draft.sizes(a);
  Sizes right = {left.back()};
  if (draft.random().chance(0.85)) {
    right.push_back(number(draft.random().integer(1, 6)));
    if (left.size() > 2 && draft.random().chance(0.5))
      for (std::size_t d = left.size() - 2; d-- > 0;)
        right.insert(right.begin(), draft.random().chance(0.3) ? number(1) : left[d]);
    else if (draft.random().chance(0.1))
      right.insert(right.begin(), number(2));
  }
  const auto b = matrix(draft, dtype, right);
  if (!b) return false;
  node.inputs = {a, *b};
  node.outputs = {0};
  return true;
}

bool gemm(Draft& draft, DType dtype, Node& node) {
  const ValueId a = draft.operand(dtype, {2, 2});
  const std::int64_t trans_a = flag(draft);
  const std::int64_t trans_b = flag(draft);
  const Size depth = draft.size(a, trans_a != 0 ? 0 : 1);
  const Size rows = draft.size(a, trans_a != 0 ? 1 : 0);
  const Size columns = number(draft.random().integer(1, 6));
  const auto b = matrix(draft, dtype, trans_b != 0 ? Sizes{columns, depth} : Sizes{depth, columns});
  if (!b) return false;
  if (trans_a != 0 || draft.random().chance(0.2)) node.attributes.set("transA", trans_a);
  if (trans_b != 0 || draft.random().chance(0.2)) node.attributes.set("transB", trans_b);
  const bool real = is_float(dtype);
  if (real) maybe(draft, node, "alpha", static_cast<float>(draft.random().real(0.2, 1.5)), 0.4);
  if (real) maybe(draft, node, "beta", static_cast<float>(draft.random().real(0.2, 1.5)), 0.4);
  node.inputs = {a, *b};
  if (draft.random().chance(0.6)) {
    const std::vector<Sizes> shapes = {
        {columns}, {number(1), columns}, {rows, columns}, {rows, number(1)}, {}, {number(1)}};
    const auto c = matrix(draft, dtype, draft.random().pick(shapes));
    if (c) node.inputs.push_back(*c);
  }
  node.outputs = {0};
  return true;
}

struct Equation {
  const char* text;
  std::vector<const char*> terms;
};

bool einsum(Draft& draft, DType dtype, Node& node) {
  static const std::vector<Equation> equations = {{"ij,jk->ik", {"ij", "jk"}},
                                                  {"bij,bjk->bik", {"bij", "bjk"}},
                                                  {"bhid,bhjd->bhij", {"bhid", "bhjd"}},
                                                  {"ij->ji", {"ij"}},
                                                  {"ij->i", {"ij"}},
                                                  {"ii->i", {"ii"}},
                                                  {"i,j->ij", {"i", "j"}},
                                                  {"ij,ij->", {"ij", "ij"}},
                                                  {"...ij,...jk->...ik", {"bij", "bjk"}},
                                                  {"ij,jk,kl->il", {"ij", "jk", "kl"}},
                                                  {"bi, oi -> bo", {"bi", "oi"}},
                                                  {"ij,jk", {"ij", "jk"}}};
  const Equation& equation = draft.random().pick(equations);
  std::map<char, Size> letters;
  for (const char* term : equation.terms) {
    Sizes sizes;
    for (const char* letter = term; *letter != '\0'; ++letter) {
      if (!letters.contains(*letter)) letters[*letter] = draft.draw_sizes(1)[0];
      sizes.push_back(letters[*letter]);
    }
    const auto operand = matrix(draft, dtype, sizes);
    if (!operand) return false;
    node.inputs.push_back(*operand);
  }
  node.attributes.set("equation", std::string(equation.text));
  node.outputs = {0};
  return true;
}

// ---- LSTM, GRU, RNN

struct Cell {
  std::int64_t gates;
  std::vector<const char*> activations;  // of one direction
};

Cell cell_of(std::string_view op) {
  if (op == "LSTM") return {4, {"Sigmoid", "Tanh", "HardSigmoid"}};
  if (op == "GRU") return {3, {"Sigmoid", "Tanh"}};
  return {1, {"Relu"}};
}

void cell_attributes(Draft& draft, Node& node, const Cell& cell, std::int64_t directions) {
  if (draft.random().chance(0.3)) {
    std::vector<std::string> names;
    for (std::int64_t d = 0; d < directions; ++d)
      names.insert(names.end(), cell.activations.begin(), cell.activations.end());
    if (draft.random().chance(0.4)) {
      for (std::string& name : names) name = "LeakyRelu";
      node.attributes.set("activation_alpha", std::vector<float>(names.size(), 0.1F));
    } else if (draft.random().chance(0.4)) {
      for (std::string& name : names) name = "ScaledTanh";
      node.attributes.set("activation_alpha", std::vector<float>(names.size(), 0.9F));
      node.attributes.set("activation_beta", std::vector<float>(names.size(), 0.8F));
    }
    node.attributes.set("activations", names);
  }
  maybe(draft, node, "clip", 0.9F, 0.2);
  if (node.op->name == "GRU") maybe(draft, node, "linear_before_reset", flag(draft));
  if (node.op->name == "LSTM") maybe(draft, node, "input_forget", flag(draft), 0.3);
}

void state_inputs(Draft& draft, DType dtype, Node& node, const Sizes& state, std::int64_t hidden,
                  std::int64_t directions) {
  if (draft.can_be_input(state) && draft.random().chance(0.4)) {
    node.inputs[5] = draft.fresh(dtype, state);
    if (node.op->name == "LSTM" && draft.random().chance(0.6))
      node.inputs.push_back(draft.fresh(dtype, state));
  }
  if (node.op->name != "LSTM" || !draft.random().chance(0.3)) return;
  if (node.inputs.size() == 6) node.inputs.push_back(kOmitted);
  node.inputs.push_back(draft.weights(dtype, {directions, 3 * hidden}));
}

bool recurrent(Draft& draft, DType dtype, Node& node) {
  const Cell cell = cell_of(node.op->name);
  const ValueId x = draft.operand(dtype, {3, 3});
  const Sizes sizes = draft.sizes(x);
  if (!is_fixed(sizes[2])) return false;
  const bool batch_first = draft.random().chance(0.3);
  const Size batch = sizes[batch_first ? 0 : 1];
  const Size steps = sizes[batch_first ? 1 : 0];
  const std::string direction = word(draft, {"forward", "reverse", "bidirectional"});
  const std::int64_t directions = direction == "bidirectional" ? 2 : 1;
  const std::int64_t hidden = draft.random().integer(1, 4);
  if (direction != "forward" || draft.random().chance(0.3))
    node.attributes.set("direction", direction);
  maybe(draft, node, "hidden_size", hidden, 0.7);
  if (batch_first) node.attributes.set("layout", std::int64_t{1});
  cell_attributes(draft, node, cell, directions);
  node.inputs = {x,
                 draft.weights(dtype, {directions, cell.gates * hidden, sizes[2][0]}),
                 draft.weights(dtype, {directions, cell.gates * hidden, hidden}),
                 kOmitted,
                 kOmitted,
                 kOmitted};
  if (draft.random().chance(0.5))
    node.inputs[3] = draft.weights(dtype, {directions, 2 * cell.gates * hidden});
  if (is_fixed(batch) && draft.random().chance(0.3)) {
    std::vector<double> lengths;
    for (std::int64_t i = 0; i < batch[0]; ++i)
      lengths.push_back(static_cast<double>(draft.random().integer(0, least(steps))));
    node.inputs[4] = draft.constant(constant_tensor(DType::kInt32, {batch[0]}, lengths));
  }
  const Sizes state = batch_first ? Sizes{batch, number(directions), number(hidden)}
                                  : Sizes{number(directions), batch, number(hidden)};
  state_inputs(draft, dtype, node, state, hidden, directions);
  while (node.inputs.back() == kOmitted) node.inputs.pop_back();
  node.outputs = {draft.random().chance(0.8) ? 0 : kOmitted, 0};
  if (node.op->name == "LSTM" && draft.random().chance(0.5)) node.outputs.push_back(0);
  return true;
}

// ---- Attention and rotary embedding

// Heads of rank 4, or rank 3 with the heads side by side.
struct Heads {
  Size batch, length;
  std::int64_t heads, size;
};

ValueId heads_value(Draft& draft, DType dtype, const Heads& h, bool flat) {
  if (flat) return draft.fresh(dtype, {h.batch, h.length, number(h.heads * h.size)});
  return draft.fresh(dtype, {h.batch, number(h.heads), h.length, number(h.size)});
}

void attention_attributes(Draft& draft, Node& node) {
  maybe(draft, node, "is_causal", flag(draft));
  maybe(draft, node, "scale", static_cast<float>(draft.random().real(0.2, 1)), 0.4);
  maybe(draft, node, "left_window_size", draft.random().integer(-1, 3), 0.2);
  maybe(draft, node, "right_window_size", draft.random().integer(-1, 3), 0.2);
  maybe(draft, node, "softcap", static_cast<float>(draft.random().real(1, 4)), 0.2);
  maybe(draft, node, "softmax_precision", std::int64_t{1}, 0.1);
}

bool attention(Draft& draft, DType dtype, Node& node) {
  const bool flat = draft.random().chance(0.3);
  const std::int64_t shared = draft.random().integer(1, 2);
  Heads keys{draft.draw_sizes(1)[0], draft.draw_sizes(1)[0], draft.random().integer(1, 2),
             draft.random().integer(1, 4)};
  Heads queries = keys;
  queries.heads *= shared;
  if (draft.random().chance(0.5)) queries.length = draft.draw_sizes(1)[0];
  Heads values = keys;
  if (draft.random().chance(0.3)) values.size = draft.random().integer(1, 4);
  node.inputs = {heads_value(draft, dtype, queries, flat), heads_value(draft, dtype, keys, flat),
                 heads_value(draft, dtype, values, flat)};
  if (flat) {
    node.attributes.set("q_num_heads", queries.heads);
    node.attributes.set("kv_num_heads", keys.heads);
  }
  attention_attributes(draft, node);
  const Sizes mask = {queries.length, keys.length};
  if (draft.random().chance(0.4))
    node.inputs.push_back(draft.random().chance(0.5) ? draft.fresh(dtype, mask)
                                                     : draft.fresh(DType::kBool, mask));
  node.outputs = {0};
  if (!flat && draft.random().chance(0.25)) {
    if (node.inputs.size() == 3) node.inputs.push_back(kOmitted);
    node.inputs[3] = kOmitted;  // a mask would have to cover the past too
    Heads past = keys;
    past.length = draft.draw_sizes(1)[0];
    node.inputs.push_back(heads_value(draft, dtype, past, false));
    past.size = values.size;
    node.inputs.push_back(heads_value(draft, dtype, past, false));
    node.outputs = {0, 0, 0};
  } else if (draft.random().chance(0.2)) {
    node.outputs = {0, kOmitted, kOmitted, 0};
    maybe(draft, node, "qk_matmul_output_mode", draft.random().integer(0, 3), 0.7);
  }
  return true;
}

bool rotary_embedding(Draft& draft, DType dtype, Node& node) {
  const bool flat = draft.random().chance(0.4);
  const Heads x{draft.draw_sizes(1)[0], draft.draw_sizes(1)[0], draft.random().integer(1, 3),
                2 * draft.random().integer(1, 3)};
  const bool part = x.size > 2 && draft.random().chance(0.3);
  const std::int64_t turned = part ? 2 : x.size;
  node.inputs = {heads_value(draft, dtype, x, flat)};
  if (flat) node.attributes.set("num_heads", x.heads);
  if (part) node.attributes.set("rotary_embedding_dim", turned);
  maybe(draft, node, "interleaved", flag(draft));
  if (is_fixed(x.batch) && is_fixed(x.length) && draft.random().chance(0.5)) {
    const Dims rows = {x.batch[0], x.length[0]};
    std::vector<double> positions(static_cast<std::size_t>(numel(rows)));
    for (double& at : positions) at = static_cast<double>(draft.random().integer(0, 6));
    for (int i = 0; i < 2; ++i) node.inputs.push_back(draft.weights(dtype, {7, turned / 2}));
    node.inputs.push_back(draft.constant(constant_tensor(DType::kInt64, rows, positions)));
  } else {
    for (int i = 0; i < 2; ++i)
      node.inputs.push_back(draft.fresh(dtype, {x.batch, x.length, number(turned / 2)}));
  }
  node.outputs = {0};
  return true;
}

constexpr Recipe kRecipes[] = {
    {"Attention", attention}, {"RotaryEmbedding", rotary_embedding},
    {"Einsum", einsum},       {"GRU", recurrent},
    {"Gemm", gemm},           {"LSTM", recurrent},
    {"MatMul", matmul},       {"RNN", recurrent},
};

}  // namespace

std::span<const Recipe> product_recipes() {
  return kRecipes;
}

}  // namespace tessera::random_models
