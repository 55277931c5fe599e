// Recipes of operators that read between elements, and of those that undo windows.

#include <algorithm>

#include "random_models/recipes.h"

namespace tessera::random_models {
namespace {

using Ints = std::vector<std::int64_t>;

// [batch, channels, spatial...] with a fixed batch where `fixed_batch`, all else fixed.
ValueId image(Draft& draft, DType dtype, std::size_t spatial, std::int64_t channels,
              bool fixed_batch = false) {
  Sizes sizes = fixed_batch ? Sizes{number(draft.random().integer(1, 3))} : draft.draw_sizes(1);
  sizes.push_back(number(channels));
  for (std::size_t i = 0; i < spatial; ++i)
    sizes.push_back(number(draft.random().integer(2, spatial > 2 ? 4 : 6)));
  return draft.fresh(dtype, sizes);
}

bool affine_grid(Draft& draft, DType dtype, Node& node) {
  const std::int64_t axes = draft.random().chance(0.7) ? 2 : 3;
  const std::int64_t batch = draft.random().integer(1, 3);
  Ints sizes = {batch, 2};
  for (std::int64_t i = 0; i < axes; ++i) sizes.push_back(draft.random().integer(1, 5));
  node.inputs = {draft.fresh(dtype, {number(batch), number(axes), number(axes + 1)}),
                 draft.ints(sizes)};
  maybe(draft, node, "align_corners", flag(draft));
  node.outputs = {0};
  return true;
}

DType place_dtype(Draft& draft) {
  return one_of(draft, {DType::kFp32, DType::kFp32, DType::kFp64, DType::kFp16, DType::kBf16});
}

bool grid_sample(Draft& draft, DType dtype, Node& node) {
  const std::size_t spatial = draft.random().chance(0.75) ? 2 : 3;
  const ValueId x = image(draft, dtype, spatial, draft.random().integer(1, 3));
  Sizes grid = {draft.size(x, 0)};
  for (std::size_t i = 0; i < spatial; ++i) grid.push_back(number(draft.random().integer(1, 4)));
  grid.push_back(number(static_cast<std::int64_t>(spatial)));
  node.inputs = {x, draft.fresh(place_dtype(draft), grid, {-1.3, 1.3})};
  maybe(draft, node, "mode", word(draft, {"linear", "nearest", "cubic"}), 0.7);
  maybe(draft, node, "padding_mode", word(draft, {"zeros", "border", "reflection"}), 0.6);
  maybe(draft, node, "align_corners", flag(draft));
  node.outputs = {0};
  return true;
}

struct Steps {
  Ints strides, dilations, pads;
};

// Attributes of a window over axes; each but the kernel maybe left out.
Steps steps(Draft& draft, Node& node, std::size_t axes, std::int64_t most_pad) {
  Steps drawn{Ints(axes, 1), Ints(axes, 1), Ints(2 * axes, 0)};
  if (draft.random().chance(0.5)) {
    for (auto& step : drawn.strides) step = draft.random().integer(1, 2);
    node.attributes.set("strides", drawn.strides);
  }
  if (draft.random().chance(0.3)) {
    for (auto& step : drawn.dilations) step = draft.random().integer(1, 2);
    node.attributes.set("dilations", drawn.dilations);
  }
  if (draft.random().chance(0.4)) {
    for (auto& pad : drawn.pads) pad = draft.random().integer(0, most_pad);
    node.attributes.set("pads", drawn.pads);
  }
  return drawn;
}

// How often a window fits along each axis; nothing where it does not.
std::optional<Ints> counts(const Ints& sizes, const Ints& kernel, const Steps& steps) {
  Ints all;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    const std::int64_t room = sizes[d] + steps.pads[d] + steps.pads[d + sizes.size()] -
                              (kernel[d] - 1) * steps.dilations[d] - 1;
    if (room < 0) return std::nullopt;
    all.push_back(room / steps.strides[d] + 1);
  }
  return all;
}

Ints spatial_sizes(Draft& draft, ValueId x) {
  Ints sizes;
  for (std::size_t d = 2; d < draft.rank(x); ++d) sizes.push_back(draft.size(x, d)[0]);
  return sizes;
}

bool deform_conv(Draft& draft, DType dtype, Node& node) {
  const std::int64_t group = draft.random().integer(1, 2);
  const std::int64_t offset_group = draft.random().integer(1, 2);
  const std::int64_t channels = 2 * draft.random().integer(1, 2);
  const ValueId x = image(draft, dtype, 2, channels);
  const Ints kernel = {draft.random().integer(1, 2), draft.random().integer(1, 2)};
  const auto out = counts(spatial_sizes(draft, x), kernel, steps(draft, node, 2, 1));
  if (!out) return false;
  if (group != 1 || draft.random().chance(0.3)) node.attributes.set("group", group);
  if (offset_group != 1 || draft.random().chance(0.3))
    node.attributes.set("offset_group", offset_group);
  maybe(draft, node, "kernel_shape", kernel);
  const std::int64_t taps = offset_group * kernel[0] * kernel[1];
  const std::int64_t outputs = group * draft.random().integer(1, 2);
  const Size batch = draft.size(x, 0);
  node.inputs = {x, draft.weights(dtype, {outputs, channels / group, kernel[0], kernel[1]}),
                 draft.fresh(dtype, {batch, number(2 * taps), number((*out)[0]), number((*out)[1])},
                             {-1.5, 1.5}),
                 kOmitted, kOmitted};
  if (draft.random().chance(0.5)) node.inputs[3] = draft.weights(dtype, {outputs});
  if (draft.random().chance(0.5))
    node.inputs[4] =
        draft.fresh(dtype, {batch, number(taps), number((*out)[0]), number((*out)[1])}, {0, 1});
  while (node.inputs.back() == kOmitted) node.inputs.pop_back();
  node.outputs = {0};
  return true;
}

bool max_roi_pool(Draft& draft, DType dtype, Node& node) {
  const ValueId x = image(draft, dtype, 2, draft.random().integer(1, 3), true);
  const std::int64_t count = draft.random().integer(0, 3);
  std::vector<double> regions;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto left = static_cast<double>(draft.random().integer(-1, 3));
    const auto top = static_cast<double>(draft.random().integer(-1, 3));
    const auto image = static_cast<double>(draft.random().integer(0, draft.size(x, 0)[0] - 1));
    regions.insert(regions.end(),
                   {image, left, top, left + static_cast<double>(draft.random().integer(-1, 4)),
                    top + static_cast<double>(draft.random().integer(-1, 4))});
  }
  node.inputs = {x, draft.constant(constant_tensor(dtype, {count, 5}, regions))};
  node.attributes.set("pooled_shape",
                      Dims{draft.random().integer(1, 3), draft.random().integer(1, 3)});
  maybe(draft, node, "spatial_scale", one_of<float>(draft, {0.5F, 1, 2}));
  node.outputs = {0};
  return true;
}

bool roi_align(Draft& draft, DType dtype, Node& node) {
  const ValueId x = image(draft, dtype, 2, draft.random().integer(1, 3), true);
  const std::int64_t count = draft.random().integer(0, 3);
  std::vector<double> regions;
  std::vector<double> images;
  for (std::int64_t i = 0; i < count; ++i) {
    const double left = draft.random().real(-0.5, 3);
    const double top = draft.random().real(-0.5, 3);
    regions.insert(regions.end(), {left, top, left + draft.random().real(0.5, 4),
                                   top + draft.random().real(0.5, 4)});
    images.push_back(static_cast<double>(draft.random().integer(0, draft.size(x, 0)[0] - 1)));
  }
  node.inputs = {x, draft.constant(constant_tensor(dtype, {count, 4}, regions)),
                 draft.constant(constant_tensor(DType::kInt64, {count}, images))};
  maybe(draft, node, "mode", word(draft, {"avg", "max"}));
  maybe(draft, node, "coordinate_transformation_mode",
        word(draft, {"half_pixel", "output_half_pixel"}));
  maybe(draft, node, "output_height", draft.random().integer(1, 3));
  maybe(draft, node, "output_width", draft.random().integer(1, 3));
  maybe(draft, node, "sampling_ratio", draft.random().integer(0, 2));
  maybe(draft, node, "spatial_scale", one_of<float>(draft, {0.5F, 1, 0.75F}));
  node.outputs = {0};
  return true;
}

bool col2im(Draft& draft, DType dtype, Node& node) {
  const std::size_t axes = draft.random().chance(0.7) ? 2 : draft.random().chance(0.5) ? 1 : 3;
  Ints sizes;
  Ints kernel;
  std::int64_t taps = 1;
  for (std::size_t i = 0; i < axes; ++i) {
    sizes.push_back(draft.random().integer(2, 5));
    kernel.push_back(draft.random().integer(1, 2));
    taps *= kernel.back();
  }
  const auto blocks = counts(sizes, kernel, steps(draft, node, axes, 1));
  if (!blocks) return false;
  std::int64_t count = 1;
  for (const std::int64_t size : *blocks) count *= size;
  node.inputs = {draft.fresh(dtype, {draft.draw_sizes(1)[0],
                                     number(taps * draft.random().integer(1, 3)), number(count)}),
                 draft.ints(sizes), draft.ints(kernel)};
  node.outputs = {0};
  return true;
}

// Puts back what a pooling took: with its own indices, at its own sizes or larger ones.
bool max_unpool(Draft& draft, DType dtype, Node& node) {
  const std::size_t axes = draft.random().chance(0.7) ? 2 : 1;
  Sizes sizes = draft.draw_sizes(2);
  if (!is_fixed(sizes[1])) sizes[1] = number(2);
  Ints wanted;
  for (std::size_t i = 0; i < axes; ++i) {
    const std::int64_t size = 2 * draft.random().integer(1, 3);
    sizes.push_back(number(size / 2));
    wanted.push_back(size + draft.random().integer(0, 1));
  }
  if (!is_fixed(sizes[0])) sizes[0] = number(2);
  wanted.insert(wanted.begin(), {sizes[0][0], sizes[1][0]});
  const ValueId x = draft.fresh(dtype, sizes);
  // One element of each window of 2, somewhere in it.
  const Dims dims = draft.tensor(x).dims();
  std::vector<double> indices(static_cast<std::size_t>(numel(dims)));
  for (std::size_t i = 0; i < indices.size(); ++i) {
    auto rest = static_cast<std::int64_t>(i);
    std::int64_t index = 0;
    std::int64_t stride = 1;
    for (std::size_t d = dims.size(); d-- > 0;) {
      const std::int64_t at = rest % dims[d];
      rest /= dims[d];
      const std::int64_t scale = d < 2 ? 1 : 2;
      index += (at * scale + (d < 2 ? 0 : flag(draft))) * stride;
      stride *= dims[d] * scale;
    }
    indices[i] = static_cast<double>(index);
  }
  node.inputs = {x, draft.constant(constant_tensor(DType::kInt64, dims, indices))};
  node.attributes.set("kernel_shape", Ints(axes, 2));
  node.attributes.set("strides", Ints(axes, 2));
  maybe(draft, node, "pads", Ints(2 * axes, 0), 0.2);
  if (draft.random().chance(0.4)) node.inputs.push_back(draft.ints(wanted));
  node.outputs = {0};
  return true;
}

constexpr Recipe kRecipes[] = {
    {"AffineGrid", affine_grid}, {"Col2Im", col2im},        {"DeformConv", deform_conv},
    {"GridSample", grid_sample}, {"MaxUnpool", max_unpool}, {"MaxRoiPool", max_roi_pool},
    {"RoiAlign", roi_align},
};

}  // namespace

std::span<const Recipe> sampling_recipes() {
  return kRecipes;
}

}  // namespace tessera::random_models
