#pragma once

// Sliding windows of convolution and pooling: their attributes, the sizes that they give, and where
// each tap of a window lies.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/shape.h"
#include "ops/attributes.h"

namespace tessera::ops::nn {

enum class AutoPad : std::uint8_t { kNotSet, kSameUpper, kSameLower, kValid };

// One spatial axis. `extent` is what the dilated kernel spans.
struct WindowAxis {
  std::int64_t kernel = 1;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t pad_begin = 0;
  std::int64_t pad_end = 0;
  [[nodiscard]] std::int64_t extent() const { return dilation * (kernel - 1) + 1; }
};

struct Window {
  std::vector<WindowAxis> axes;
  AutoPad auto_pad = AutoPad::kNotSet;
  bool ceil_mode = false;
  [[nodiscard]] std::int64_t taps() const;
};

// Reads kernel_shape, strides, dilations, pads, auto_pad and ceil_mode for `spatial_rank` axes.
// `weight_kernel` is the kernel that the weight has, where it is known; kernel_shape must agree
// with it, and must be there without it. Errors start with the name of the operator and name the
// attribute: "Conv: strides[0]: expected at least 1, found 0".
Result<Window> read_window(std::string_view op, const Attributes& attributes,
                           std::size_t spatial_rank, const std::optional<Dims>& weight_kernel);

// The window of a weight [., ., kernel...]. A kernel whose size only the run tells counts as 1 in
// `window`; `extents`, of the dilated kernel, say it in symbols.
struct WeightWindow {
  Window window;
  Shape extents;
};
Result<WeightWindow> read_weight_window(std::string_view op, const Attributes& attributes,
                                        const Shape& weight);

// The number of windows of `extent` along `axis` of an input of that size. Windows that would start
// in the padding at the end are left out. An error where it is a number below 0: the padded input
// lacks more than a stride of one window.
Result<Dim> output_dim(std::string_view op, const Window& window, std::size_t axis,
                       const Dim& input, const Dim& extent);
Result<Dim> output_dim(std::string_view op, const Window& window, std::size_t axis,
                       const Dim& input);  // that of the axis

// The same for all axes of a concrete input.
Result<Dims> output_dims(std::string_view op, const Window& window, const Dims& spatial);

// SAME_UPPER, SAME_LOWER and VALID as explicit pads for an input of those sizes.
Window with_explicit_pads(Window window, const Dims& spatial);

// For a run of output positions (row-major over the spatial dims) and each tap of the window
// (row-major over the kernel): the offset of the input element in its plane, or -1 where the tap
// lies in the padding.
class TapTable {
 public:
  // `transposed` swaps the roles as ConvTranspose does: `spatial` is still what is read, `output`
  // what is written. The window has explicit pads.
  TapTable(Window window, Dims spatial, Dims output, bool transposed);

  void build(std::int64_t first, std::int64_t count);
  [[nodiscard]] std::int64_t first() const { return first_; }
  [[nodiscard]] const std::int64_t* offsets(std::int64_t tap) const {
    return offsets_.data() + tap * count_;
  }

 private:
  [[nodiscard]] std::int64_t source(std::size_t axis, std::int64_t position,
                                    std::int64_t tap) const;
  Window window_;
  Dims spatial_;
  Dims output_;
  bool transposed_;
  std::int64_t first_ = -1;
  std::int64_t count_ = 0;
  std::vector<std::int64_t> offsets_;
};

}  // namespace tessera::ops::nn
