#include "ops/nn/window.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace tessera::ops::nn {
namespace {

// Far above any real window; keeps products of two attributes inside int64.
constexpr std::int64_t kLimit = std::int64_t{1} << 30;

tl::unexpected<Error> window_error(std::string_view op, std::string message) {
  return fail(ErrorCode::kInvalidArgument, fmt::format("{}: {}", op, message));
}

// The values of a list attribute, or `count` times `fallback`, each at least `minimum`.
Result<Dims> read_list(std::string_view op, const Attributes& attributes, std::string_view name,
                       std::size_t count, std::int64_t minimum, std::int64_t fallback) {
  if (!attributes.has(name)) return Dims(count, fallback);
  Dims values = attributes.get_ints(name);
  if (values.empty() && name != "kernel_shape") return Dims(count, fallback);
  if (values.size() != count) {
    return window_error(
        op, fmt::format("{}: expected {} values, found {}", name, count, values.size()));
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (values[i] < minimum) {
      return window_error(
          op, fmt::format("{}[{}]: expected at least {}, found {}", name, i, minimum, values[i]));
    }
    if (values[i] > kLimit) {
      return window_error(
          op, fmt::format("{}[{}]: expected at most {}, found {}", name, i, kLimit, values[i]));
    }
  }
  return values;
}

Result<Dims> read_kernel(std::string_view op, const Attributes& attributes,
                         std::size_t spatial_rank, const std::optional<Dims>& weight_kernel) {
  if (!attributes.has("kernel_shape")) {
    if (weight_kernel) return *weight_kernel;
    return window_error(op, "kernel_shape: expected one, found none");
  }
  TESSERA_ASSIGN(Dims kernel, read_list(op, attributes, "kernel_shape", spatial_rank, 1, 1));
  if (weight_kernel && kernel != *weight_kernel) {
    return window_error(op, fmt::format("kernel_shape: expected [{}] as the weight has, found [{}]",
                                        fmt::join(*weight_kernel, ", "), fmt::join(kernel, ", ")));
  }
  return kernel;
}

Result<AutoPad> read_auto_pad(std::string_view op, const Attributes& attributes) {
  const std::string text = attributes.get_string("auto_pad", "NOTSET");
  if (text == "NOTSET" || text.empty()) return AutoPad::kNotSet;
  if (text == "SAME_UPPER") return AutoPad::kSameUpper;
  if (text == "SAME_LOWER") return AutoPad::kSameLower;
  if (text == "VALID") return AutoPad::kValid;
  return window_error(
      op,
      fmt::format("auto_pad: expected NOTSET, SAME_UPPER, SAME_LOWER or VALID, found '{}'", text));
}

bool is_same(AutoPad pad) {
  return pad == AutoPad::kSameUpper || pad == AutoPad::kSameLower;
}

}  // namespace

std::int64_t Window::taps() const {
  std::int64_t product = 1;
  for (const WindowAxis& axis : axes) product *= axis.kernel;
  return product;
}

Result<Window> read_window(std::string_view op, const Attributes& attributes,
                           std::size_t spatial_rank, const std::optional<Dims>& weight_kernel) {
  Window window;
  TESSERA_ASSIGN(const Dims kernel, read_kernel(op, attributes, spatial_rank, weight_kernel));
  TESSERA_ASSIGN(const Dims strides, read_list(op, attributes, "strides", spatial_rank, 1, 1));
  TESSERA_ASSIGN(const Dims dilations, read_list(op, attributes, "dilations", spatial_rank, 1, 1));
  TESSERA_ASSIGN(const Dims pads, read_list(op, attributes, "pads", 2 * spatial_rank, 0, 0));
  TESSERA_ASSIGN(window.auto_pad, read_auto_pad(op, attributes));
  window.ceil_mode = attributes.get_int("ceil_mode", 0) != 0;
  const bool explicit_pads = window.auto_pad == AutoPad::kNotSet;
  std::int64_t taps = 1;
  for (const std::int64_t size : kernel) {
    if (size > 0 && taps > kLimit / size) {
      return window_error(op, fmt::format("kernel_shape: expected at most {} taps, found [{}]",
                                          kLimit, fmt::join(kernel, ", ")));
    }
    taps *= size;
  }
  for (std::size_t i = 0; i < spatial_rank; ++i) {
    window.axes.push_back({kernel[i], strides[i], dilations[i], explicit_pads ? pads[i] : 0,
                           explicit_pads ? pads[spatial_rank + i] : 0});
  }
  return window;
}

Result<WeightWindow> read_weight_window(std::string_view op, const Attributes& attributes,
                                        const Shape& weight) {
  const Shape kernel(weight.begin() + 2, weight.end());
  std::optional<Dims> known = constant_dims(kernel);
  const bool is_open = !known && !attributes.has("kernel_shape");
  if (is_open) known = Dims(kernel.size(), 1);
  WeightWindow result;
  TESSERA_ASSIGN(result.window, read_window(op, attributes, kernel.size(), known));
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    const WindowAxis& w = result.window.axes[i];
    result.extents.push_back(is_open ? Dim(w.dilation) * (kernel[i] - Dim(1)) + Dim(1)
                                     : Dim(w.extent()));
  }
  return result;
}

Result<Dim> output_dim(std::string_view op, const Window& window, std::size_t axis,
                       const Dim& input, const Dim& extent) {
  const WindowAxis& w = window.axes[axis];
  if (is_same(window.auto_pad)) return ceildiv(input, Dim(w.stride));
  Dim count;
  if (window.ceil_mode) {
    // The last window is the partial one, unless it would start at or after input + pad_begin.
    const Dim past = min(Dim(0), Dim(w.pad_end + w.stride) - extent);
    count = ceildiv(input + Dim(w.pad_begin) + past, Dim(w.stride));
  } else {
    count = floordiv(input + Dim(w.pad_begin + w.pad_end) - extent, Dim(w.stride)) + Dim(1);
  }
  if (const auto known = count.constant(); known && *known < 0) {
    return window_error(
        op, fmt::format("spatial axis {}: expected a padded size of at least {} (the dilated "
                        "kernel), found {}",
                        axis, w.extent(), *input.constant() + w.pad_begin + w.pad_end));
  }
  return count;
}

Result<Dim> output_dim(std::string_view op, const Window& window, std::size_t axis,
                       const Dim& input) {
  return output_dim(op, window, axis, input, Dim(window.axes[axis].extent()));
}

Result<Dims> output_dims(std::string_view op, const Window& window, const Dims& spatial) {
  Dims dims;
  for (std::size_t i = 0; i < spatial.size(); ++i) {
    TESSERA_ASSIGN(const Dim dim, output_dim(op, window, i, Dim(spatial[i])));
    dims.push_back(dim.constant().value());
  }
  return dims;
}

Window with_explicit_pads(Window window, const Dims& spatial) {
  if (is_same(window.auto_pad)) {
    for (std::size_t i = 0; i < spatial.size(); ++i) {
      WindowAxis& w = window.axes[i];
      const std::int64_t out = (spatial[i] + w.stride - 1) / w.stride;
      const std::int64_t total =
          std::max<std::int64_t>(0, (out - 1) * w.stride + w.extent() - spatial[i]);
      const std::int64_t smaller = total / 2;
      w.pad_begin = window.auto_pad == AutoPad::kSameUpper ? smaller : total - smaller;
      w.pad_end = total - w.pad_begin;
    }
  }
  window.auto_pad = AutoPad::kNotSet;
  return window;
}

TapTable::TapTable(Window window, Dims spatial, Dims output, bool transposed)
    : window_(std::move(window)),
      spatial_(std::move(spatial)),
      output_(std::move(output)),
      transposed_(transposed) {}

std::int64_t TapTable::source(std::size_t axis, std::int64_t position, std::int64_t tap) const {
  const WindowAxis& w = window_.axes[axis];
  std::int64_t at = 0;
  if (transposed_) {
    at = position + w.pad_begin - tap * w.dilation;
    if (at < 0 || at % w.stride != 0) return -1;
    at /= w.stride;
  } else {
    at = position * w.stride - w.pad_begin + tap * w.dilation;
  }
  return at >= 0 && at < spatial_[axis] ? at : -1;
}

void TapTable::build(std::int64_t first, std::int64_t count) {
  first_ = first;
  count_ = count;
  const std::int64_t taps = window_.taps();
  offsets_.assign(static_cast<std::size_t>(taps * count), 0);
  // Axis by axis, outermost first: offset = offset * size + index, and -1 stays -1.
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    std::int64_t* row = offsets_.data() + tap * count;
    std::int64_t tap_inner = taps;
    std::int64_t position_inner = 1;
    for (const std::int64_t size : output_) position_inner *= size;
    for (std::size_t axis = 0; axis < window_.axes.size(); ++axis) {
      tap_inner /= window_.axes[axis].kernel;
      position_inner /= output_[axis];
      const std::int64_t tap_index = tap / tap_inner % window_.axes[axis].kernel;
      for (std::int64_t p = 0; p < count; ++p) {
        const std::int64_t index =
            source(axis, (first + p) / position_inner % output_[axis], tap_index);
        row[p] = index < 0 || row[p] < 0 ? -1 : row[p] * spatial_[axis] + index;
      }
    }
  }
}

}  // namespace tessera::ops::nn
