// Activations that exporters spell in pieces: Gelu, QuickGelu, Swish, HardSwish, Mish; and the gate
// swish(x) * y, which is no operator of its own.

#include <fmt/format.h>

#include <cmath>

#include "passes/reassemble/assembler.h"
#include "passes/reassemble/expected_number.h"
#include "passes/rewrite.h"

namespace tessera::passes::reassemble {
namespace {

using Judged = std::optional<std::string>;

const PatternPtr kX = value("x");

// ---- Gelu ---------------------------------------------------------------------------------------

// 1 + f and 0.5 in any order around x; or (0.5 + 0.5 f) * x; or (x + x f) * 0.5.
std::vector<PatternPtr> around(const PatternPtr& f) {
  return {product({kX, number("half"), sum({number("one"), f})}),
          product({kX, sum({number("half"), product({number("half_of"), f})})}),
          product({number("half"), sum({kX, product({kX, f})})})};
}

Judged check_halves(const Match& match, DType dtype) {
  Expected expected(match, dtype);
  expected.number("half", 0.5);
  expected.number("half_of", 0.5);
  expected.number("one", 1);
  return expected.reason();
}

Judged check_type(const Assembler& assembler, const Match& match, ir::ValueId result) {
  const ir::ValueId x = match.value("x");
  if (same_type(assembler.graph(), x, result)) return std::string();
  return fmt::format("{} is {}, and the result {}", assembler.quoted(x),
                     assembler.type(x).to_string(), assembler.type(result).to_string());
}

Judged first_of(const Judged& a, const Judged& b) {
  return a && a->empty() ? b : a;
}

Judged check_gelu(const Assembler& assembler, const Match& match, ir::ValueId result) {
  const DType dtype = assembler.type(result).dtype;
  Expected expected(match, dtype);
  expected.number("root", std::sqrt(0.5));
  return first_of(first_of(check_halves(match, dtype), expected.reason()),
                  check_type(assembler, match, result));
}

Judged check_gelu_tanh(const Assembler& assembler, const Match& match, ir::ValueId result) {
  const DType dtype = assembler.type(result).dtype;
  Expected expected(match, dtype);
  expected.number("root", std::sqrt(2 / M_PI));
  expected.number("twice_root", 2 * std::sqrt(2 / M_PI));
  expected.number("inner_one", 1);
  expected.number("cubic", 0.044715);
  expected.number("three", 3);
  return first_of(first_of(check_halves(match, dtype), expected.reason()),
                  check_type(assembler, match, result));
}

void build_gelu(Assembler&, const Match& match, Program& program) {
  program.finish("", "Gelu", {}, {match.value("x")});
}

void build_gelu_tanh(Assembler&, const Match& match, Program& program) {
  ops::Attributes attributes;
  attributes.set("approximate", std::string("tanh"));
  program.finish("", "Gelu", std::move(attributes), {match.value("x")});
}

// root * (x + 0.044715 x^3), or root * x * (1 + 0.044715 x^2).
PatternPtr tanh_argument(const char* root) {
  const PatternPtr cube = one_of({product({number("cubic"), op("Pow", {kX, number("three")})}),
                                  product({number("cubic"), kX, kX, kX})});
  return one_of({product({number(root), sum({kX, cube})}),
                 product({number(root), kX,
                          sum({number("inner_one"), product({number("cubic"), kX, kX})})})});
}

void propose_gelus(Assembler& assembler) {
  propose(assembler, {"Gelu", "Mul|Div", around(op("Erf", {product({kX, number("root")})})),
                      check_gelu, build_gelu});
  auto spellings = around(op("Tanh", {tanh_argument("root")}));
  spellings.push_back(product({kX, op("Sigmoid", {tanh_argument("twice_root")})}));
  propose(assembler, {"Gelu", "Mul|Div", spellings, check_gelu_tanh, build_gelu_tanh});
}

// ---- Swish --------------------------------------------------------------------------------------

constexpr double kQuickAlpha = 1.702;

// x * sigmoid(alpha x), the sigmoid whole or 1 / (1 + exp(-alpha x)).
std::vector<PatternPtr> swish_spellings() {
  const PatternPtr scaled = one_of({product({kX, number("alpha")}), kX});
  const PatternPtr inverted = one_of({op("Neg", {scaled}), product({kX, number("minus_alpha")})});
  return {product({kX, op("Sigmoid", {scaled})}),
          product({kX, inverse(sum({number("one"), op("Exp", {inverted})}))})};
}

double alpha_of(const Match& match) {
  if (match.has_number("alpha")) return match.number("alpha");
  return match.has_number("minus_alpha") ? -match.number("minus_alpha") : 1;
}

Judged check_swish(const Assembler& assembler, const Match& match, ir::ValueId result) {
  Expected expected(match, assembler.type(result).dtype);
  expected.number("one", 1);
  return first_of(expected.reason(), check_type(assembler, match, result));
}

bool is_quick(const Assembler& assembler, const Match& match, ir::ValueId result) {
  return is_close(alpha_of(match), kQuickAlpha, assembler.type(result).dtype);
}

Judged check_quick(const Assembler& assembler, const Match& match, ir::ValueId result) {
  if (!is_quick(assembler, match, result)) return std::nullopt;
  return check_swish(assembler, match, result);
}

Judged check_other(const Assembler& assembler, const Match& match, ir::ValueId result) {
  if (is_quick(assembler, match, result)) return std::nullopt;
  return check_swish(assembler, match, result);
}

void build_quick(Assembler&, const Match& match, Program& program) {
  ops::Attributes attributes;
  attributes.set("alpha", static_cast<float>(alpha_of(match)));
  program.finish("com.microsoft", "QuickGelu", std::move(attributes), {match.value("x")});
}

void build_swish(Assembler&, const Match& match, Program& program) {
  ops::Attributes attributes;
  if (alpha_of(match) != 1) attributes.set("alpha", static_cast<float>(alpha_of(match)));
  program.finish("", "Swish", std::move(attributes), {match.value("x")});
}

// swish(x) * y, where both are products of one input in the models that have it.
void propose_gates(Assembler& assembler) {
  const PatternPtr gate = product({kX, op("Sigmoid", {kX}), value("y")});
  const auto& nodes = assembler.graph().nodes();
  for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
    if (!is_op(**node, "Mul") || !assembler.view().has_float_result(**node)) continue;
    Match match;
    const ir::ValueId result = (*node)->outputs[0];
    if (!matches(assembler.graph(), *gate, result, match)) continue;
    const Candidate candidate{"SwiGLU", match.covered, {result}};
    const bool one_type = same_type(assembler.graph(), match.value("x"), result) &&
                          same_type(assembler.graph(), match.value("y"), result);
    if (!one_type || constant_of(assembler.graph(), match.value("y")) != nullptr) continue;
    const std::string reason = assembler.open_reason(candidate);
    if (reason.empty()) {
      assembler.add_plain(candidate);
    } else {
      assembler.note(candidate, reason);
    }
  }
}

// ---- HardSwish, Mish ----------------------------------------------------------------------------

// x * clip(x + 3, 0, 6) / 6, the limits by Clip or by Max and Min; or x * HardSigmoid(x).
std::vector<PatternPtr> hard_swish_spellings() {
  const PatternPtr moved = sum({kX, number("three")});
  const PatternPtr clipped = one_of({op("Clip", {moved, number("zero"), number("six")}),
                                     op("Min", {op("Max", {moved, number("zero")}), number("six")}),
                                     op("Max", {op("Min", {moved, number("six")}), number("zero")}),
                                     op("Min", {op("Relu", {moved}), number("six")})});
  return {product({kX, number("sixth"), clipped}),
          product({kX, op("HardSigmoid", {kX}, "hard_sigmoid")})};
}

Judged check_hard_swish(const Assembler& assembler, const Match& match, ir::ValueId result) {
  const DType dtype = assembler.type(result).dtype;
  Expected expected(match, dtype);
  expected.number("three", 3);
  expected.number("zero", 0);
  expected.number("six", 6);
  expected.number("sixth", 1.0 / 6);
  if (const ir::Node* node = match.node("hard_sigmoid")) {
    expected.given("alpha", static_cast<double>(node->attributes.get_float("alpha", 0.2F)),
                   1.0 / 6);
    expected.given("beta", static_cast<double>(node->attributes.get_float("beta", 0.5F)), 0.5);
  }
  return first_of(expected.reason(), check_type(assembler, match, result));
}

void build_hard_swish(Assembler&, const Match& match, Program& program) {
  program.finish("", "HardSwish", {}, {match.value("x")});
}

// x * tanh(softplus(x)), softplus whole or log(1 + exp(x)).
std::vector<PatternPtr> mish_spellings() {
  return {
      product({kX, op("Tanh", {one_of({op("Softplus", {kX}),
                                       op("Log", {sum({number("one"), op("Exp", {kX})})})})})})};
}

void build_mish(Assembler&, const Match& match, Program& program) {
  program.finish("", "Mish", {}, {match.value("x")});
}

}  // namespace

void propose_activations(Assembler& assembler) {
  propose_gelus(assembler);
  propose(assembler, {"QuickGelu", "Mul|Div", swish_spellings(), check_quick, build_quick});
  propose(assembler, {"Swish", "Mul|Div", swish_spellings(), check_other, build_swish});
  propose_gates(assembler);
  propose(assembler,
          {"HardSwish", "Mul|Div", hard_swish_spellings(), check_hard_swish, build_hard_swish});
  propose(assembler, {"Mish", "Mul", mish_spellings(), check_swish, build_mish});
}

}  // namespace tessera::passes::reassemble
