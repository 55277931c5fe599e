// Recipes of convolution, pooling and resizing.

#include <algorithm>

#include "random_models/recipes.h"

namespace tessera::random_models {
namespace {

using Ints = std::vector<std::int64_t>;

// An image: [batch, channels, spatial...], channels a number, the spatial sizes not too small.
struct Image {
  ValueId x = kOmitted;
  std::size_t spatial = 0;
  std::int64_t channels = 0;
};

Image image(Draft& draft, DType dtype, std::int64_t multiple = 1) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    const ValueId x = draft.operand(dtype, {3, 5});
    const Size channels = draft.size(x, 1);
    if (is_fixed(channels) && channels[0] > 0 && channels[0] % multiple == 0)
      return {x, draft.rank(x) - 2, channels[0]};
  }
  const std::size_t spatial = draft.random().chance(0.7) ? 2 : draft.random().chance(0.6) ? 1 : 3;
  const std::int64_t channels =
      draft.random().chance(0.3) ? 8 * multiple : multiple * draft.random().integer(1, 4);
  Sizes sizes = draft.draw_sizes(1);
  sizes.push_back({channels, channels});
  for (std::size_t i = 0; i < spatial; ++i) {
    const std::int64_t size = draft.random().integer(spatial > 2 ? 2 : 3, spatial > 2 ? 4 : 9);
    const Size symbolic = draft.draw_sizes(1)[0];
    sizes.push_back(draft.random().chance(0.2) && least(symbolic) > 1 ? symbolic
                                                                      : Size{size, size});
  }
  return {draft.fresh(dtype, sizes), spatial, channels};
}

Ints list(Draft& draft, std::size_t count, std::int64_t low, std::int64_t high) {
  Ints values(count);
  for (std::int64_t& value : values) value = draft.random().integer(low, high);
  return values;
}

void window_attributes(Draft& draft, Node& node, const Ints& kernel, bool transposed) {
  const std::size_t spatial = kernel.size();
  maybe(draft, node, "strides", list(draft, spatial, 1, 2));
  if (draft.random().chance(0.3)) node.attributes.set("dilations", list(draft, spatial, 1, 2));
  const auto kind = draft.random().integer(0, 3);
  if (kind == 0) {
    node.attributes.set("auto_pad", word(draft, {"SAME_UPPER", "SAME_LOWER", "VALID", "NOTSET"}));
  } else if (kind < 3) {
    Ints pads(2 * spatial);
    for (std::size_t i = 0; i < pads.size(); ++i)
      pads[i] = draft.random().integer(0, std::max<std::int64_t>(0, kernel[i % spatial] - 1));
    node.attributes.set("pads", pads);
  }
  if (transposed && draft.random().chance(0.2))
    node.attributes.set("output_padding", list(draft, spatial, 0, 1));
}

Ints draw_kernel(Draft& draft, const Image& in) {
  Ints kernel;
  for (std::size_t i = 0; i < in.spatial; ++i)
    kernel.push_back(
        draft.random().integer(1, std::clamp<std::int64_t>(least(draft.size(in.x, i + 2)), 1, 3)));
  return kernel;
}

bool conv(Draft& draft, DType dtype, Node& node) {
  const std::int64_t group = draft.random().chance(0.6) ? 1 : draft.random().integer(1, 3);
  const Image in = image(draft, dtype, group);
  const bool depthwise = draft.random().chance(0.15);
  const std::int64_t groups = depthwise ? in.channels : group;
  const Ints kernel = draw_kernel(draft, in);
  const std::int64_t out = groups * draft.random().integer(1, depthwise ? 2 : 4);
  Dims dims = {out, in.channels / groups};
  dims.insert(dims.end(), kernel.begin(), kernel.end());
  if (groups != 1 || draft.random().chance(0.3)) node.attributes.set("group", groups);
  maybe(draft, node, "kernel_shape", kernel, 0.6);
  window_attributes(draft, node, kernel, false);
  node.inputs = {in.x, draft.weights(dtype, dims)};
  if (draft.random().chance(0.5)) node.inputs.push_back(draft.weights(dtype, {out}));
  node.outputs = {0};
  return true;
}

bool conv_transpose(Draft& draft, DType dtype, Node& node) {
  const std::int64_t group = draft.random().chance(0.7) ? 1 : 2;
  const Image in = image(draft, dtype, group);
  const Ints kernel = draw_kernel(draft, in);
  const std::int64_t out = draft.random().integer(1, 3);
  Dims dims = {in.channels, out};
  dims.insert(dims.end(), kernel.begin(), kernel.end());
  if (group != 1 || draft.random().chance(0.3)) node.attributes.set("group", group);
  maybe(draft, node, "kernel_shape", kernel, 0.6);
  window_attributes(draft, node, kernel, true);
  bool fixed = true;
  Ints wanted;
  for (std::size_t i = 0; i < in.spatial; ++i) {
    fixed = fixed && is_fixed(draft.size(in.x, i + 2));
    wanted.push_back(draft.size(in.x, i + 2)[0] + draft.random().integer(0, 2));
  }
  if (fixed && draft.random().chance(0.15)) node.attributes.set("output_shape", wanted);
  node.inputs = {in.x, draft.weights(dtype, dims)};
  if (draft.random().chance(0.5)) node.inputs.push_back(draft.weights(dtype, {out * group}));
  node.outputs = {0};
  return true;
}

bool pool(Draft& draft, DType dtype, Node& node) {
  const std::string_view op = node.op->name;
  const Image in = image(draft, dtype);
  const Ints kernel = draw_kernel(draft, in);
  node.attributes.set("kernel_shape", kernel);
  window_attributes(draft, node, kernel, false);
  maybe(draft, node, "ceil_mode", flag(draft), 0.4);
  if (op == "AveragePool") maybe(draft, node, "count_include_pad", flag(draft));
  if (op == "LpPool") maybe(draft, node, "p", draft.random().integer(1, 3));
  if (op == "MaxPool") maybe(draft, node, "storage_order", flag(draft), 0.3);
  node.inputs = {in.x};
  node.outputs = {0};
  if (op == "MaxPool" && draft.random().chance(0.3)) node.outputs.push_back(0);
  return true;
}

bool global_pool(Draft& draft, DType dtype, Node& node) {
  node.inputs = {draft.operand(dtype, {3, 5})};
  if (node.op->name == "GlobalLpPool") maybe(draft, node, "p", draft.random().integer(1, 3));
  node.outputs = {0};
  return true;
}

// ---- Resize

void resize_attributes(Draft& draft, Node& node, const std::string& mode) {
  if (mode != "nearest" || draft.random().chance(0.5)) node.attributes.set("mode", mode);
  maybe(draft, node, "coordinate_transformation_mode",
        word(draft, {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                     "asymmetric"}),
        0.7);
  if (mode == "nearest")
    maybe(draft, node, "nearest_mode",
          word(draft, {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}));
  if (mode == "cubic") maybe(draft, node, "cubic_coeff_a", -0.5F);
  if (mode == "cubic") maybe(draft, node, "exclude_outside", flag(draft));
  if (mode != "nearest") maybe(draft, node, "antialias", flag(draft), 0.3);
}

// Factors that are exact in binary, so that ties of the nearest mode are ties everywhere.
float factor(Draft& draft) {
  return one_of<float>(draft, {1, 1, 2, 2, 0.5F, 1.5F, 3});
}

// Crops as well: the one mode that reads `roi`, which is counted by the axes.
ValueId crop(Draft& draft, Node& node, std::size_t axes) {
  node.attributes.set("coordinate_transformation_mode", std::string("tf_crop_and_resize"));
  maybe(draft, node, "extrapolation_value", 0.5F, 0.9);
  std::vector<float> roi(axes, 0.125F);
  for (std::size_t i = 0; i < axes; ++i) roi.push_back(draft.random().chance(0.5) ? 0.875F : 1.25F);
  return draft.constant(
      Tensor::of<float>(DType::kFp32, {static_cast<std::int64_t>(roi.size())}, roi));
}

bool resize(Draft& draft, DType dtype, Node& node) {
  const Image in = image(draft, dtype);
  const std::size_t rank = in.spatial + 2;
  const bool real = is_float(dtype);
  const std::string mode = real ? word(draft, {"nearest", "linear", "cubic"}) : "nearest";
  resize_attributes(draft, node, mode);
  const bool by_axes = draft.random().chance(0.3);
  const std::size_t first = by_axes ? 2 : 0;
  if (by_axes) {
    Ints axes;
    for (std::size_t axis = first; axis < rank; ++axis)
      axes.push_back(static_cast<std::int64_t>(axis));
    node.attributes.set("axes", axes);
  }
  const bool crops = real && mode != "nearest" && draft.random().chance(0.15);
  node.inputs = {in.x, crops ? crop(draft, node, rank - first) : kOmitted, kOmitted, kOmitted};
  bool fixed = true;
  for (std::size_t axis = first; axis < rank; ++axis)
    fixed = fixed && is_fixed(draft.size(in.x, axis));
  if (fixed && draft.random().chance(0.4)) {
    Ints sizes;
    for (std::size_t axis = first; axis < rank; ++axis)
      sizes.push_back(axis < 2 ? draft.size(in.x, axis)[0] : draft.random().integer(1, 7));
    if (by_axes && !crops)
      maybe(draft, node, "keep_aspect_ratio_policy",
            word(draft, {"stretch", "not_larger", "not_smaller"}));
    node.inputs[3] = draft.ints(sizes);
  } else {
    std::vector<float> scales;
    for (std::size_t axis = first; axis < rank; ++axis)
      scales.push_back(axis < 2 ? 1.0F : factor(draft));
    node.inputs[2] = draft.constant(
        Tensor::of<float>(DType::kFp32, {static_cast<std::int64_t>(scales.size())}, scales));
    node.inputs.pop_back();
  }
  node.outputs = {0};
  return true;
}

constexpr Recipe kRecipes[] = {
    {"AveragePool", pool},
    {"Conv", conv},
    {"ConvTranspose", conv_transpose},
    {"GlobalAveragePool", global_pool},
    {"GlobalLpPool", global_pool},
    {"GlobalMaxPool", global_pool},
    {"LpPool", pool},
    {"MaxPool", pool},
    {"Resize", resize},
};

}  // namespace

std::span<const Recipe> window_recipes() {
  return kRecipes;
}

}  // namespace tessera::random_models
