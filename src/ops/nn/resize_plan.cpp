#include "ops/nn/resize_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "ops/infer_util.h"
#include "ops/nn/nn_util.h"

namespace tessera::ops::nn {
namespace {

constexpr std::string_view kName = "Resize";

template <typename E>
struct Named {
  std::string_view name;
  E value;
};

// The value of a string attribute among `choices`; the error lists them.
template <typename E, std::size_t N>
Result<E> choose(const Attributes& attributes, std::string_view name,
                 const Named<E> (&choices)[N]) {
  const std::string text = attributes.get_string(name, std::string(choices[0].name));
  std::string list;
  for (std::size_t i = 0; i < N; ++i) {
    if (choices[i].name == text) return choices[i].value;
    list += (i == 0 ? "" : i + 1 == N ? " or " : ", ") + std::string(choices[i].name);
  }
  return op_error(kName, fmt::format("{}: expected {}, found '{}'", name, list, text));
}

using Options = ResizeOptions;
constexpr Named<Options::Mode> kModes[] = {{"nearest", Options::Mode::kNearest},
                                           {"linear", Options::Mode::kLinear},
                                           {"cubic", Options::Mode::kCubic}};
constexpr Named<Options::Nearest> kNearestModes[] = {
    {"round_prefer_floor", Options::Nearest::kRoundPreferFloor},
    {"round_prefer_ceil", Options::Nearest::kRoundPreferCeil},
    {"floor", Options::Nearest::kFloor},
    {"ceil", Options::Nearest::kCeil}};
constexpr Named<Options::Coordinates> kCoordinates[] = {
    {"half_pixel", Options::Coordinates::kHalfPixel},
    {"half_pixel_symmetric", Options::Coordinates::kHalfPixelSymmetric},
    {"pytorch_half_pixel", Options::Coordinates::kPytorchHalfPixel},
    {"align_corners", Options::Coordinates::kAlignCorners},
    {"asymmetric", Options::Coordinates::kAsymmetric},
    {"tf_half_pixel_for_nn", Options::Coordinates::kTfHalfPixelForNn},
    {"tf_crop_and_resize", Options::Coordinates::kTfCropAndResize}};
constexpr Named<Options::Aspect> kAspects[] = {{"stretch", Options::Aspect::kStretch},
                                               {"not_larger", Options::Aspect::kNotLarger},
                                               {"not_smaller", Options::Aspect::kNotSmaller}};

Status check_count(std::string_view name, std::size_t expected, std::size_t found) {
  if (expected == found) return {};
  return op_error(kName,
                  fmt::format("input '{}': expected {} elements, found {}", name, expected, found));
}

// The largest size that a result may have along an axis; beyond it no tensor fits anyway.
constexpr float kSizeLimit = 1e15F;

// Sets the size that the axis has after scaling.
Status scale_axis(const Options& options, float scale, ResizeAxis& axis) {
  axis.scale = scale;
  float exact = static_cast<float>(axis.in) * axis.scale;
  if (options.coordinates == Options::Coordinates::kTfCropAndResize)
    exact *= axis.roi_end - axis.roi_start;
  if (!(exact >= 0 && exact < kSizeLimit))
    return op_error(kName, fmt::format("expected a size of at least 0, found {}", exact));
  axis.length = exact;
  axis.out = static_cast<std::int64_t>(std::floor(exact));
  return {};
}

Status apply_scales(const Options& options, const std::vector<std::int64_t>& axes,
                    const std::vector<float>& scales, std::vector<ResizeAxis>& plan) {
  TESSERA_TRY(check_count("scales", axes.size(), scales.size()));
  for (std::size_t i = 0; i < axes.size(); ++i) {
    ResizeAxis& axis = plan[static_cast<std::size_t>(axes[i])];
    if (!(scales[i] > 0))
      return op_error(kName,
                      fmt::format("scales[{}]: expected more than 0, found {}", i, scales[i]));
    TESSERA_TRY(scale_axis(options, scales[i], axis));
  }
  return {};
}

Status apply_sizes(const Options& options, const std::vector<std::int64_t>& axes,
                   const std::vector<std::int64_t>& sizes, std::vector<ResizeAxis>& plan) {
  TESSERA_TRY(check_count("sizes", axes.size(), sizes.size()));
  std::optional<float> common;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    ResizeAxis& axis = plan[static_cast<std::size_t>(axes[i])];
    if (sizes[i] < 0)
      return op_error(kName, fmt::format("sizes[{}]: expected at least 0, found {}", i, sizes[i]));
    axis.out = sizes[i];
    axis.length = static_cast<float>(axis.out);
    axis.scale = static_cast<float>(axis.out) / static_cast<float>(axis.in);
    const bool smaller = common && axis.scale < *common;
    if (!common || smaller == (options.aspect == Options::Aspect::kNotLarger)) common = axis.scale;
  }
  if (options.aspect == Options::Aspect::kStretch) return {};
  for (const std::int64_t a : axes) {
    ResizeAxis& axis = plan[static_cast<std::size_t>(a)];
    axis.scale = *common;
    axis.out = static_cast<std::int64_t>(std::floor(*common * static_cast<float>(axis.in) + 0.5F));
    axis.length = static_cast<float>(axis.out);
  }
  return {};
}

// Where output position `at` lies in the input. In fp32, as runtimes compute it: ties of the
// nearest modes depend on it.
float source_coordinate(const Options& options, const ResizeAxis& axis, std::int64_t at) {
  const auto x = static_cast<float>(at);
  const auto in = static_cast<float>(axis.in);
  const auto out = static_cast<float>(axis.out);
  switch (options.coordinates) {
    case Options::Coordinates::kHalfPixel: return (x + 0.5F) / axis.scale - 0.5F;
    case Options::Coordinates::kHalfPixelSymmetric: {
      const float adjustment = out / (axis.scale * in);
      return in / 2 * (1 - adjustment) + (x + 0.5F) / axis.scale - 0.5F;
    }
    case Options::Coordinates::kPytorchHalfPixel:
      return axis.out > 1 ? (x + 0.5F) / axis.scale - 0.5F : 0.0F;
    case Options::Coordinates::kAlignCorners:
      return axis.length != 1.0F ? x * (in - 1) / (axis.length - 1) : 0.0F;
    case Options::Coordinates::kAsymmetric: return x / axis.scale;
    case Options::Coordinates::kTfHalfPixelForNn: return (x + 0.5F) / axis.scale;
    case Options::Coordinates::kTfCropAndResize:
      return axis.out > 1 ? axis.roi_start * (in - 1) +
                                x * (axis.roi_end - axis.roi_start) * (in - 1) / (out - 1)
                          : 0.5F * (axis.roi_start + axis.roi_end) * (in - 1);
  }
  return x;
}

std::int64_t nearest_index(Options::Nearest mode, float x) {
  switch (mode) {
    case Options::Nearest::kRoundPreferFloor: return static_cast<std::int64_t>(std::ceil(x - 0.5F));
    case Options::Nearest::kRoundPreferCeil: return static_cast<std::int64_t>(std::floor(x + 0.5F));
    case Options::Nearest::kFloor: return static_cast<std::int64_t>(std::floor(x));
    case Options::Nearest::kCeil: return static_cast<std::int64_t>(std::ceil(x));
  }
  return 0;
}

double linear_filter(double distance) {
  return std::max(0.0, 1.0 - std::abs(distance));
}

// Keys' cubic convolution kernel with free parameter a.
double cubic_filter(double distance, double a) {
  const double d = std::abs(distance);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  if (d < 2) return ((d - 5) * d + 8) * d * a - 4 * a;
  return 0;
}

// Appends the taps of one position: all within the filter's support around x, wider where
// antialiasing shrinks.
void append_filtered(const Options& options, const ResizeAxis& axis, double x, AxisTaps& taps) {
  const bool cubic = options.mode == Options::Mode::kCubic;
  const double stretch = options.antialias ? std::min(1.0, static_cast<double>(axis.scale)) : 1.0;
  const double support = (cubic ? 2.0 : 1.0) / stretch;
  const std::size_t start = taps.index.size();
  double sum = 0;
  for (auto i = static_cast<std::int64_t>(std::ceil(x - support));
       static_cast<double>(i) <= x + support; ++i) {
    const double distance = (static_cast<double>(i) - x) * stretch;
    const double weight = cubic ? cubic_filter(distance, static_cast<double>(options.cubic_coeff_a))
                                : linear_filter(distance);
    const bool outside = i < 0 || i >= axis.in;
    if (weight == 0 || (outside && options.exclude_outside)) continue;
    taps.index.push_back(std::clamp<std::int64_t>(i, 0, axis.in - 1));
    taps.weight.push_back(weight);
    sum += weight;
  }
  for (std::size_t t = start; t < taps.weight.size(); ++t) taps.weight[t] /= sum;
}

}  // namespace

Result<ResizeOptions> read_resize(const Attributes& attributes) {
  ResizeOptions options;
  TESSERA_ASSIGN(options.mode, choose(attributes, "mode", kModes));
  TESSERA_ASSIGN(options.nearest, choose(attributes, "nearest_mode", kNearestModes));
  TESSERA_ASSIGN(options.coordinates,
                 choose(attributes, "coordinate_transformation_mode", kCoordinates));
  TESSERA_ASSIGN(options.aspect, choose(attributes, "keep_aspect_ratio_policy", kAspects));
  options.antialias = attributes.get_int("antialias", 0) != 0;
  options.exclude_outside = attributes.get_int("exclude_outside", 0) != 0;
  options.cubic_coeff_a = attributes.get_float("cubic_coeff_a", -0.75F);
  options.extrapolation_value = attributes.get_float("extrapolation_value", 0.0F);
  options.axes = attributes.get_ints("axes");
  return options;
}

Result<std::vector<std::int64_t>> resized_axes(const ResizeOptions& options, std::int64_t rank) {
  if (!options.axes.empty()) return normalize_axes(options.axes, rank);
  std::vector<std::int64_t> all;
  for (std::int64_t axis = 0; axis < rank; ++axis) all.push_back(axis);
  return all;
}

std::optional<Dim> scaled_size(const Dim& size, float scale) {
  constexpr float kDenominator = 1024;
  constexpr float kExact = 1 << 24;
  if (!(scale > 0)) return std::nullopt;
  if (const auto known = size.constant()) {
    const float exact = static_cast<float>(*known) * scale;
    if (!(exact < kSizeLimit)) return std::nullopt;
    return Dim(static_cast<std::int64_t>(std::floor(exact)));
  }
  const float numerator = scale * kDenominator;
  if (numerator != std::floor(numerator) || numerator > kExact) return std::nullopt;
  const auto num = static_cast<std::int64_t>(numerator);
  const std::int64_t common = num & -num;  // the largest power of 2 in it
  const std::int64_t divisor =
      std::min<std::int64_t>(common, static_cast<std::int64_t>(kDenominator));
  return floordiv(size * Dim(num / divisor),
                  Dim(static_cast<std::int64_t>(kDenominator) / divisor));
}

Result<std::vector<ResizeAxis>> plan_resize(const ResizeOptions& options, const Dims& dims,
                                            const std::vector<float>& roi,
                                            const std::vector<float>& scales,
                                            const std::vector<std::int64_t>& sizes) {
  TESSERA_ASSIGN(const auto axes, resized_axes(options, static_cast<std::int64_t>(dims.size())));
  std::vector<ResizeAxis> plan;
  for (const std::int64_t size : dims)
    plan.push_back({size, size, 1, 0, 1, static_cast<float>(size)});
  if (options.coordinates == Options::Coordinates::kTfCropAndResize) {
    TESSERA_TRY(check_count("roi", 2 * axes.size(), roi.size()));
    for (std::size_t i = 0; i < axes.size(); ++i) {
      plan[static_cast<std::size_t>(axes[i])].roi_start = roi[i];
      plan[static_cast<std::size_t>(axes[i])].roi_end = roi[axes.size() + i];
    }
  }
  if (scales.empty() == sizes.empty() && !axes.empty()) {
    return op_error(kName, fmt::format("expected either scales or sizes, found {}",
                                       scales.empty() ? "none" : "both"));
  }
  if (!scales.empty()) {
    TESSERA_TRY(apply_scales(options, axes, scales, plan));
  } else {
    TESSERA_TRY(apply_sizes(options, axes, sizes, plan));
  }
  for (std::size_t d = 0; d < plan.size(); ++d) {
    if (plan[d].in == 0 && plan[d].out != 0) {
      return op_error(
          kName, fmt::format("axis {}: expected at least 1 element to resize to {}, found 0", d,
                             plan[d].out));
    }
  }
  return plan;
}

bool AxisTaps::is_identity(const ResizeAxis& axis) const {
  if (axis.in != axis.out || index.size() != static_cast<std::size_t>(axis.out)) return false;
  for (std::size_t i = 0; i < index.size(); ++i) {
    if (index[i] != static_cast<std::int64_t>(i) || weight[i] != 1.0 || outside[i]) return false;
  }
  return true;
}

AxisTaps axis_taps(const ResizeOptions& options, const ResizeAxis& axis) {
  AxisTaps taps;
  const bool crop = options.coordinates == Options::Coordinates::kTfCropAndResize;
  for (std::int64_t at = 0; at < axis.out; ++at) {
    const float x = source_coordinate(options, axis, at);
    taps.begin.push_back(taps.index.size());
    taps.outside.push_back(crop && (x < 0 || x > static_cast<float>(axis.in - 1)));
    // Far outside, all taps are the edge; this also bounds the work.
    const float near = std::clamp(x, -4.0F, static_cast<float>(axis.in) + 4.0F);
    if (options.mode == Options::Mode::kNearest) {
      taps.index.push_back(
          std::clamp<std::int64_t>(nearest_index(options.nearest, near), 0, axis.in - 1));
      taps.weight.push_back(1.0);
    } else {
      append_filtered(options, axis, static_cast<double>(near), taps);
    }
  }
  taps.begin.push_back(taps.index.size());
  return taps;
}

}  // namespace tessera::ops::nn
