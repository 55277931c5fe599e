#pragma once

// Resize: options, the sizes of the result, and which input elements each output position of an
// axis takes, with which weights.

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/shape.h"
#include "ops/attributes.h"

namespace tessera::ops::nn {

struct ResizeOptions {
  enum class Mode : std::uint8_t { kNearest, kLinear, kCubic } mode = Mode::kNearest;
  enum class Nearest : std::uint8_t {
    kRoundPreferFloor,
    kRoundPreferCeil,
    kFloor,
    kCeil
  } nearest = Nearest::kRoundPreferFloor;
  enum class Coordinates : std::uint8_t {
    kHalfPixel,
    kHalfPixelSymmetric,
    kPytorchHalfPixel,
    kAlignCorners,
    kAsymmetric,
    kTfHalfPixelForNn,
    kTfCropAndResize
  } coordinates = Coordinates::kHalfPixel;
  enum class Aspect : std::uint8_t { kStretch, kNotLarger, kNotSmaller } aspect = Aspect::kStretch;
  bool antialias = false;
  bool exclude_outside = false;
  float cubic_coeff_a = -0.75F;
  float extrapolation_value = 0;
  std::vector<std::int64_t> axes;  // empty: all of them, in order
};

// Errors name the attribute and list what it may be: "Resize: mode: expected nearest, linear or
// cubic, found 'area'".
Result<ResizeOptions> read_resize(const Attributes& attributes);

// The axes that scales, sizes and roi speak of, counted from the front.
Result<std::vector<std::int64_t>> resized_axes(const ResizeOptions& options, std::int64_t rank);

// floor(size * scale) in fp32, as runtimes compute it. Symbolic sizes: where the scale is a binary
// fraction with a small denominator; nothing for other scales.
std::optional<Dim> scaled_size(const Dim& size, float scale);

// One axis of a concrete call.
struct ResizeAxis {
  std::int64_t in = 1;
  std::int64_t out = 1;
  float scale = 1;
  float roi_start = 0;
  float roi_end = 1;
  float length = 1;  // the size of the result before rounding down: what align_corners divides by
};

// Exactly one of scales and sizes is given (the other is empty); roi may be empty. One ResizeAxis
// for each dim.
Result<std::vector<ResizeAxis>> plan_resize(const ResizeOptions& options, const Dims& dims,
                                            const std::vector<float>& roi,
                                            const std::vector<float>& scales,
                                            const std::vector<std::int64_t>& sizes);

// For each output position: taps [begin[o], begin[o + 1]) of index and weight; weights sum to 1.
struct AxisTaps {
  std::vector<std::size_t> begin;
  std::vector<std::int64_t> index;
  std::vector<double> weight;
  std::vector<bool>
      outside;  // the position lies outside of the input (tf_crop_and_resize fills it)
  [[nodiscard]] bool is_identity(const ResizeAxis& axis) const;
};
AxisTaps axis_taps(const ResizeOptions& options, const ResizeAxis& axis);

}  // namespace tessera::ops::nn
