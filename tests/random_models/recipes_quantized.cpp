// Recipes of quantised operators.

#include <algorithm>

#include "random_models/recipes.h"

namespace tessera::random_models {
namespace {

// Scale and zero point of a tensor: one for all, or one for each index of `axis`.
struct Parameters {
  ValueId scale = kOmitted;
  ValueId zero = kOmitted;
};

Parameters parameters(Draft& draft, DType scale_dtype, DType quantized, const Dims& dims) {
  std::vector<double> scales(static_cast<std::size_t>(numel(dims)));
  std::vector<double> zeros(scales.size());
  const bool is_signed = quantized == DType::kInt8 || quantized == DType::kInt16;
  const std::int64_t most = is_float(quantized) ? 0 : bits_of(quantized) == 2 ? 1 : 7;
  for (double& scale : scales) scale = draft.random().real(0.02, 0.2);
  for (double& zero : zeros)
    zero = static_cast<double>(draft.random().integer(is_signed ? -4 : 0, most));
  return {draft.constant(constant_tensor(scale_dtype, dims, scales)),
          draft.constant(constant_tensor(quantized, dims, zeros))};
}

// Per tensor, per index of an axis (attribute `axis`), or in blocks along it.
Dims parameter_dims(Draft& draft, Node& node, ValueId x) {
  const std::size_t rank = draft.rank(x);
  const bool single = draft.random().chance(0.5) || rank == 0;
  if (single) return draft.random().chance(0.7) ? Dims{} : Dims{1};
  const std::int64_t axis = rank > 1 && draft.random().chance(0.4) ? 1 : any_axis(draft, rank);
  const std::size_t front = from_front(axis, rank);
  if (axis != 1 || draft.random().chance(0.3)) node.attributes.set("axis", axis);
  Dims dims;
  for (const Size& size : draft.sizes(x)) dims.push_back(is_fixed(size) ? size[0] : -1);
  if (dims[front] < 1) return {};
  if (draft.random().chance(0.5) && *std::ranges::min_element(dims) > 0) {
    node.attributes.set("block_size", std::int64_t{2});
    dims[front] = (dims[front] + 1) / 2;
    return dims;
  }
  return {dims[front]};
}

bool quantize(Draft& draft, DType dtype, Node& node) {
  const ValueId x = draft.operand(dtype, {0, 4});
  const DType to =
      one_of(draft, {DType::kInt8, DType::kInt8, DType::kUInt8, DType::kUInt8, DType::kInt16,
                     DType::kUInt16, DType::kInt4, DType::kUInt4, DType::kInt2, DType::kUInt2,
                     DType::kFp8E4M3Fn, DType::kFp8E4M3FnUz, DType::kFp8E5M2, DType::kFp8E5M2FnUz,
                     DType::kFp4E2M1, DType::kFp6E2M3, DType::kFp6E3M2});
  const bool wide = dtype == DType::kInt32 || dtype == DType::kFp64;  // no scale has these
  const Parameters made =
      parameters(draft, wide ? DType::kFp32 : dtype, to, parameter_dims(draft, node, x));
  node.inputs = {x, made.scale};
  if (draft.random().chance(0.7)) node.inputs.push_back(made.zero);
  if (node.inputs.size() == 2 || draft.random().chance(0.2))
    maybe(draft, node, "output_dtype", static_cast<std::int64_t>(to), 0.6);
  maybe(draft, node, "saturate", std::int64_t{1}, 0.2);
  maybe(draft, node, "precision", std::int64_t{1}, 0.3);
  node.outputs = {0};
  return true;
}

bool dequantize(Draft& draft, DType dtype, Node& node) {
  const ValueId x = draft.operand(dtype, {0, 4});
  const DType to = one_of(draft, {DType::kFp32, DType::kFp32, DType::kFp16, DType::kBf16});
  const Parameters made = parameters(draft, to, dtype, parameter_dims(draft, node, x));
  node.inputs = {x, made.scale};
  if (dtype != DType::kInt32 && draft.random().chance(0.7)) node.inputs.push_back(made.zero);
  maybe(draft, node, "output_dtype", static_cast<std::int64_t>(to), 0.2);
  node.outputs = {0};
  return true;
}

bool dynamic_quantize(Draft& draft, DType dtype, Node& node) {
  node.inputs = {draft.operand(dtype, {1, 4})};
  node.outputs = {0, 0, 0};
  return true;
}

DType any_byte(Draft& draft) {
  return one_of(draft, {DType::kInt8, DType::kUInt8});
}

// [rows, depth] or [2, rows, depth] of bytes with a fixed depth.
ValueId left_operand(Draft& draft, DType dtype) {
  Sizes sizes = draft.draw_sizes(draft.random().chance(0.3) ? 3 : 2);
  sizes.back() = number(draft.random().integer(1, 6));
  return draft.fresh(dtype, sizes, {-20, 20});
}

bool matmul_integer(Draft& draft, DType dtype, Node& node) {
  const DType other = any_byte(draft);
  const ValueId a = left_operand(draft, dtype);
  const std::int64_t columns = draft.random().integer(1, 5);
  const Dims dims = {draft.size(a, draft.rank(a) - 1)[0], columns};
  node.inputs = {a, draft.weights(other, dims, {-20, 20}), kOmitted, kOmitted};
  if (draft.random().chance(0.6)) node.inputs[2] = draft.scalar(dtype, 3);
  if (draft.random().chance(0.6))
    node.inputs[3] = draft.random().chance(0.5) ? draft.scalar(other, 2)
                                                : draft.weights(other, {columns}, {0, 4});
  while (node.inputs.back() == kOmitted) node.inputs.pop_back();
  node.outputs = {0};
  return true;
}

bool qlinear_matmul(Draft& draft, DType dtype, Node& node) {
  const DType other = any_byte(draft);
  const DType result = any_byte(draft);
  const DType scale = one_of(draft, {DType::kFp32, DType::kFp32, DType::kFp16});
  const ValueId a = left_operand(draft, dtype);
  const std::int64_t columns = draft.random().integer(1, 5);
  const Dims dims = {draft.size(a, draft.rank(a) - 1)[0], columns};
  const Parameters of_a = parameters(draft, scale, dtype, {});
  const Parameters of_b =
      parameters(draft, scale, other, draft.random().chance(0.5) ? Dims{} : Dims{columns});
  const Parameters of_y = parameters(draft, scale, result, {});
  node.inputs = {a,          of_a.scale, of_a.zero,  draft.weights(other, dims, {-20, 20}),
                 of_b.scale, of_b.zero,  of_y.scale, of_y.zero};
  node.outputs = {0};
  return true;
}

// An image of bytes, and the attributes of a window over it.
ValueId byte_image(Draft& draft, DType dtype, std::int64_t channels) {
  Sizes sizes = draft.draw_sizes(1);
  sizes.push_back(number(channels));
  sizes.push_back(number(draft.random().integer(3, 7)));
  sizes.push_back(number(draft.random().integer(3, 7)));
  return draft.fresh(dtype, sizes, {-20, 20});
}

Dims window(Draft& draft, Node& node, std::int64_t out, std::int64_t channels, std::int64_t group) {
  const std::int64_t kernel = draft.random().integer(1, 3);
  maybe(draft, node, "kernel_shape", std::vector<std::int64_t>{kernel, kernel}, 0.6);
  maybe(draft, node, "strides", std::vector<std::int64_t>{1, 2}, 0.4);
  maybe(draft, node, "dilations", std::vector<std::int64_t>{1, 1}, 0.2);
  if (draft.random().chance(0.4))
    node.attributes.set("pads", std::vector<std::int64_t>{0, kernel - 1, kernel - 1, 0});
  else
    maybe(draft, node, "auto_pad", word(draft, {"SAME_UPPER", "SAME_LOWER", "VALID"}), 0.3);
  if (group != 1 || draft.random().chance(0.3)) node.attributes.set("group", group);
  return {out, channels / group, kernel, kernel};
}

bool conv_integer(Draft& draft, DType dtype, Node& node) {
  const DType other = any_byte(draft);
  const std::int64_t group = draft.random().integer(1, 2);
  const std::int64_t channels = group * draft.random().integer(1, 3);
  const std::int64_t out = group * draft.random().integer(1, 3);
  const ValueId x = byte_image(draft, dtype, channels);
  const Dims dims = window(draft, node, out, channels, group);
  node.inputs = {x, draft.weights(other, dims, {-20, 20}), kOmitted, kOmitted};
  if (draft.random().chance(0.6)) node.inputs[2] = draft.scalar(dtype, 3);
  if (draft.random().chance(0.6))
    node.inputs[3] =
        draft.random().chance(0.5) ? draft.scalar(other, 2) : draft.weights(other, {out}, {0, 4});
  while (node.inputs.back() == kOmitted) node.inputs.pop_back();
  node.outputs = {0};
  return true;
}

bool qlinear_conv(Draft& draft, DType dtype, Node& node) {
  const DType other = any_byte(draft);
  const DType result = any_byte(draft);
  const std::int64_t group = draft.random().integer(1, 2);
  const std::int64_t channels = group * draft.random().integer(1, 3);
  const std::int64_t out = group * draft.random().integer(1, 3);
  const ValueId x = byte_image(draft, dtype, channels);
  const Dims dims = window(draft, node, out, channels, group);
  const Parameters of_x = parameters(draft, DType::kFp32, dtype, {});
  const Parameters of_w =
      parameters(draft, DType::kFp32, other, draft.random().chance(0.5) ? Dims{} : Dims{out});
  const Parameters of_y = parameters(draft, DType::kFp32, result, {});
  node.inputs = {x,          of_x.scale, of_x.zero,  draft.weights(other, dims, {-20, 20}),
                 of_w.scale, of_w.zero,  of_y.scale, of_y.zero};
  if (draft.random().chance(0.5))
    node.inputs.push_back(draft.weights(DType::kInt32, {out}, {-50, 50}));
  node.outputs = {0};
  return true;
}

constexpr Recipe kRecipes[] = {
    {"ConvInteger", conv_integer},
    {"DequantizeLinear", dequantize},
    {"DynamicQuantizeLinear", dynamic_quantize},
    {"MatMulInteger", matmul_integer},
    {"QLinearConv", qlinear_conv},
    {"QLinearMatMul", qlinear_matmul},
    {"QuantizeLinear", quantize},
};

}  // namespace

std::span<const Recipe> quantized_recipes() {
  return kRecipes;
}

}  // namespace tessera::random_models
