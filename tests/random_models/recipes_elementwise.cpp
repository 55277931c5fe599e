// Recipes of the elementwise operators.

#include <algorithm>

#include "random_models/recipes.h"

namespace tessera::random_models {
namespace {

// Where a function is defined, and flat enough that rounding does not matter.
Range domain_of(std::string_view op) {
  if (op == "Acos" || op == "Asin" || op == "Atanh") return {-0.9, 0.9};
  if (op == "Acosh") return {1.1, 4};
  if (op == "Log") return {0.1, 4};
  if (op == "Sqrt") return {0, 4};
  if (op == "Reciprocal") return {0.2, 3};
  if (op == "Tan") return {-1.2, 1.2};
  if (op == "Exp" || op == "Sinh" || op == "Cosh") return {-5, 5};
  return {-1e300, 1e300};
}

void float_attributes(Draft& draft, Node& node) {
  for (const auto& attribute : node.op->attributes)
    if (attribute.type == ops::AttrType::kFloat)
      maybe(draft, node, std::string(attribute.name).c_str(),
            static_cast<float>(draft.random().real(0.1, 1.5)));
}

bool unary(Draft& draft, DType dtype, Node& node) {
  const bool outside = draft.random().chance(0.05);  // NaN and infinities, now and then
  node.inputs = {outside ? draft.operand(dtype)
                         : draft.operand(dtype, {0, 5}, domain_of(node.op->name))};
  float_attributes(draft, node);
  node.outputs = {0};
  return true;
}

bool gelu(Draft& draft, DType dtype, Node& node) {
  maybe(draft, node, "approximate", word(draft, {"none", "tanh"}), 0.7);
  return unary(draft, dtype, node);
}

bool is_inf(Draft& draft, DType dtype, Node& node) {
  maybe(draft, node, "detect_negative", flag(draft));
  maybe(draft, node, "detect_positive", flag(draft));
  return unary(draft, dtype, node);
}

bool binary_in(Draft& draft, DType dtype, Node& node, Range second) {
  const ValueId x = draft.operand(dtype);
  const auto y = draft.partner(x, dtype, second);
  if (!y) return false;
  node.inputs = {x, *y};
  const bool both_free = second.high > 1e299;
  if (both_free && draft.random().chance(0.3)) std::swap(node.inputs[0], node.inputs[1]);
  node.outputs = {0};
  return true;
}

bool binary(Draft& draft, DType dtype, Node& node) {
  return binary_in(draft, dtype, node, {-1e300, 1e300});
}

bool divide(Draft& draft, DType dtype, Node& node) {
  if (is_integer(dtype) && draft.random().chance(0.2)) return binary(draft, dtype, node);
  return binary_in(draft, dtype, node, is_integer(dtype) ? Range{1, 7} : Range{0.3, 3});
}

bool power(Draft& draft, DType dtype, Node& node) {
  const bool real = is_float(dtype);
  const DType other = draft.random().chance(0.7)
                          ? dtype
                          : one_of(draft, {DType::kFp32, DType::kInt64, DType::kInt32});
  const ValueId x = draft.operand(dtype, {}, real ? Range{0.3, 2.5} : Range{0, 5});
  if (draft.random().chance(0.4)) {
    node.inputs = {x, draft.scalar(other, one_of<double>(draft, {2, 3, 1, 0, 0.5, -1}))};
  } else {
    const auto y = draft.partner(x, other, is_float(other) && real ? Range{-2, 2} : Range{0, 3});
    if (!y) return false;
    node.inputs = {x, *y};
  }
  node.outputs = {0};
  return true;
}

bool modulo(Draft& draft, DType dtype, Node& node) {
  if (is_float(dtype))
    node.attributes.set("fmod", std::int64_t{1});
  else
    maybe(draft, node, "fmod", flag(draft));
  return divide(draft, dtype, node);
}

bool bit_shift(Draft& draft, DType dtype, Node& node) {
  node.attributes.set("direction", word(draft, {"LEFT", "RIGHT"}));
  return binary_in(draft, dtype, node, {0, 7});
}

bool variadic(Draft& draft, DType dtype, Node& node) {
  node.inputs = {draft.operand(dtype)};
  for (std::int64_t more = draft.random().integer(0, 3); more > 0; --more) {
    const auto other = draft.partner(node.inputs[0], dtype);
    if (!other) return false;
    node.inputs.push_back(*other);
  }
  node.outputs = {0};
  return true;
}

bool clip(Draft& draft, DType dtype, Node& node) {
  const bool no_sign = !is_float(dtype) && !draft.random().chance(0.5);
  const double low = no_sign ? 0 : draft.random().real(-1.5, 1);
  const double high = draft.random().chance(0.9) ? low + draft.random().real(0, 3) : low - 1;
  node.inputs = {draft.operand(dtype), kOmitted, kOmitted};
  if (draft.random().chance(0.8)) node.inputs[1] = draft.scalar(dtype, low);
  if (draft.random().chance(0.8)) node.inputs[2] = draft.scalar(dtype, high);
  while (node.inputs.back() == kOmitted) node.inputs.pop_back();
  node.outputs = {0};
  return true;
}

bool prelu(Draft& draft, DType dtype, Node& node) {
  const ValueId x = draft.operand(dtype);
  Dims dims;
  for (const Size& size : draft.sizes(x))
    dims.push_back(is_fixed(size) && draft.random().chance(0.6) ? size[0] : 1);
  if (draft.random().chance(0.4))
    dims.erase(dims.begin(),
               dims.begin() + draft.random().integer(0, static_cast<std::int64_t>(dims.size())));
  node.inputs = {x, draft.weights(dtype, dims)};
  node.outputs = {0};
  return true;
}

bool where(Draft& draft, DType dtype, Node& node) {
  const ValueId x = draft.operand(dtype);
  const auto y = draft.partner(x, dtype);
  const auto condition = draft.partner(x, DType::kBool);
  if (!y || !condition) return false;
  node.inputs = {*condition, x, *y};
  if (draft.random().chance(0.3)) std::swap(node.inputs[1], node.inputs[2]);
  node.outputs = {0};
  return true;
}

DType any_dtype(Draft& draft) {
  return kDrawnDtypes[draft.random().index(kDrawnDtypes.size())];
}

void cast_attributes(Draft& draft, Node& node) {
  maybe(draft, node, "saturate", flag(draft), 0.2);
  maybe(draft, node, "round_mode", std::string("up"), 0.1);
}

bool cast(Draft& draft, DType dtype, Node& node) {
  node.inputs = {draft.operand(dtype)};
  const DType to = draft.random().chance(0.4)
                       ? one_of(draft, {DType::kFp32, DType::kInt64, DType::kFp16, DType::kBool})
                       : any_dtype(draft);
  node.attributes.set("to", static_cast<std::int64_t>(to));
  cast_attributes(draft, node);
  node.outputs = {0};
  return true;
}

bool cast_like(Draft& draft, DType dtype, Node& node) {
  node.inputs = {draft.operand(dtype), draft.operand(any_dtype(draft))};
  cast_attributes(draft, node);
  node.outputs = {0};
  return true;
}

bool dropout(Draft& draft, DType dtype, Node& node) {
  node.inputs = {draft.operand(dtype)};
  if (draft.random().chance(0.5))
    node.inputs.push_back(draft.scalar(DType::kFp32, draft.random().real(0, 0.9)));
  if (node.inputs.size() == 2 && draft.random().chance(0.5))
    node.inputs.push_back(draft.scalar(DType::kBool, 0));
  maybe(draft, node, "seed", draft.random().integer(0, 9), 0.3);
  node.outputs = {0};
  if (draft.random().chance(0.3)) node.outputs.push_back(0);
  return true;
}

constexpr Recipe kRecipes[] = {
    {"Abs", unary},
    {"Acos", unary},
    {"Acosh", unary},
    {"Add", binary},
    {"And", binary},
    {"Asin", unary},
    {"Asinh", unary},
    {"Atan", unary},
    {"Atanh", unary},
    {"BitShift", bit_shift},
    {"BitwiseAnd", binary},
    {"BitwiseNot", unary},
    {"BitwiseOr", binary},
    {"BitwiseXor", binary},
    {"Cast", cast},
    {"CastLike", cast_like},
    {"Ceil", unary},
    {"Celu", unary},
    {"Clip", clip},
    {"Cos", unary},
    {"Cosh", unary},
    {"Div", divide},
    {"Dropout", dropout},
    {"Elu", unary},
    {"Equal", binary},
    {"Erf", unary},
    {"Exp", unary},
    {"Floor", unary},
    {"Gelu", gelu},
    {"Greater", binary},
    {"GreaterOrEqual", binary},
    {"HardSigmoid", unary},
    {"HardSwish", unary},
    {"Identity", unary},
    {"IsInf", is_inf},
    {"IsNaN", unary},
    {"LeakyRelu", unary},
    {"Less", binary},
    {"LessOrEqual", binary},
    {"Log", unary},
    {"Max", variadic},
    {"Mean", variadic},
    {"Min", variadic},
    {"Mish", unary},
    {"Mod", modulo},
    {"Mul", binary},
    {"Neg", unary},
    {"Not", unary},
    {"Or", binary},
    {"PRelu", prelu},
    {"Pow", power},
    {"Reciprocal", unary},
    {"Relu", unary},
    {"Round", unary},
    {"Selu", unary},
    {"Shrink", unary},
    {"Sigmoid", unary},
    {"Sign", unary},
    {"Sin", unary},
    {"Sinh", unary},
    {"Softplus", unary},
    {"Softsign", unary},
    {"Sqrt", unary},
    {"Sub", binary},
    {"Sum", variadic},
    {"Swish", unary},
    {"Tan", unary},
    {"Tanh", unary},
    {"ThresholdedRelu", unary},
    {"Where", where, 1},
    {"Xor", binary},
};

}  // namespace

std::span<const Recipe> elementwise_recipes() {
  return kRecipes;
}

}  // namespace tessera::random_models
