// AffineGrid and GridSample: positions in an image, and its values there.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/nn/nn_util.h"
#include "ops/nn/reals.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

// ---- AffineGrid ---------------------------------------------------------------------------------

// Axes of space that a theta of [batch, axes, axes + 1] is for.
Result<std::size_t> affine_axes(std::int64_t rows) {
  if (rows == 2 || rows == 3) return static_cast<std::size_t>(rows);
  return nn::op_error("AffineGrid",
                      fmt::format("input 'theta': expected 2 or 3 rows, found {}", rows));
}

Status infer_affine_grid(InferContext& context) {
  TESSERA_TRY(require_rank(context, 0, 3));
  TESSERA_TRY(require_dtype(context, 1, kInt64Type));
  const ValueType& theta = context.inputs[0].type;
  const auto sizes = known_value(context.inputs[1]);
  std::size_t axes = sizes && sizes->elements.size() > 2 ? sizes->elements.size() - 2 : 0;
  if (theta.shape) {
    if (const auto rows = (*theta.shape)[1].constant()) {
      TESSERA_ASSIGN(const std::size_t by_theta, affine_axes(*rows));
      if (sizes && axes != by_theta)
        return input_error(context, 1,
                           fmt::format("expected {} sizes beside {} rows, found {}", by_theta + 2,
                                       by_theta, sizes->elements.size()));
      axes = by_theta;
    }
  }
  std::optional<Shape> output;
  if (axes != 0) {
    output.emplace();
    output->push_back(theta.shape ? (*theta.shape)[0] : context.fresh_symbol("batch"));
    for (std::size_t i = 0; i < axes; ++i)
      output->push_back(sizes ? sizes->elements[i + 2] : context.fresh_symbol("grid"));
    output->emplace_back(static_cast<std::int64_t>(axes));
  }
  set_output(context, 0, theta.dtype, std::move(output));
  return {};
}

// The place of element `at` of `size` between -1 and 1: these are centres of the outer elements
// where `align`, else their outer edges. One element alone lies in the middle.
double place_between(std::int64_t at, std::int64_t size, bool align) {
  const auto i = static_cast<double>(at);
  const auto n = static_cast<double>(size);
  if (!align) return (2 * i + 1) / n - 1;
  return size == 1 ? 0 : 2 * i / (n - 1) - 1;
}

Status affine_grid_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* theta_view, kernel_input(context, 0));
  TESSERA_ASSIGN(const TensorView* size_view, kernel_input(context, 1));
  const std::vector<std::int64_t> sizes = to_int64_vector(*size_view);
  const std::int64_t rows = theta_view->dims.size() == 3 ? theta_view->dims[1] : 0;
  TESSERA_ASSIGN(const std::size_t axes, affine_axes(rows));
  if (sizes.size() != axes + 2 || theta_view->dims[2] != rows + 1 ||
      sizes[0] != theta_view->dims[0]) {
    return nn::op_error(
        "AffineGrid", fmt::format("expected theta of {0} rows and {1} columns beside sizes of a "
                                  "batch of {2}, found {3} beside {4} sizes",
                                  rows, rows + 1, theta_view->dims[0], to_string(theta_view->dims),
                                  sizes.size()));
  }
  Dims dims{sizes[0]};
  dims.insert(dims.end(), sizes.begin() + 2, sizes.end());
  dims.push_back(rows);
  TESSERA_TRY(checked_nbytes(theta_view->dtype, dims).map([](std::int64_t) {}));
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, theta_view->dtype, dims));
  const bool align = context.attributes().get_int("align_corners", 0) != 0;
  const nn::Reals<double> theta(*theta_view);
  nn::RealResult<double> result(output);
  const std::int64_t points = output.numel() / std::max<std::int64_t>(1, rows);
  for (std::int64_t point = 0; point < points; ++point) {
    std::array<double, 4> place{};  // x first, then y, z; behind them a 1
    std::int64_t rest = point;
    for (std::size_t d = axes; d-- > 0;) {
      place[axes - 1 - d] = place_between(rest % dims[d + 1], dims[d + 1], align);
      rest /= dims[d + 1];
    }
    place[axes] = 1;
    const double* matrix = theta.data() + rest * rows * (rows + 1);
    for (std::int64_t row = 0; row < rows; ++row) {
      double sum = 0;
      for (std::int64_t i = 0; i <= rows; ++i)
        sum += matrix[row * (rows + 1) + i] * place[static_cast<std::size_t>(i)];
      result.data()[point * rows + row] = sum;
    }
  }
  result.finish();
  return {};
}

// ---- GridSample ---------------------------------------------------------------------------------

enum class Mode : std::uint8_t { kNearest, kLinear, kCubic };
enum class Outside : std::uint8_t { kZeros, kBorder, kReflection };

struct Sampling {
  Mode mode = Mode::kLinear;
  Outside outside = Outside::kZeros;
  bool align = false;
};

Result<Sampling> sampling_of(const Attributes& attributes) {
  Sampling sampling;
  const std::string mode = attributes.get_string("mode", "linear");
  const std::string outside = attributes.get_string("padding_mode", "zeros");
  sampling.align = attributes.get_int("align_corners", 0) != 0;
  if (mode == "nearest") {
    sampling.mode = Mode::kNearest;
  } else if (mode == "cubic") {
    sampling.mode = Mode::kCubic;
  } else if (mode != "linear") {
    return attribute_error(
        "mode", fmt::format("expected 'linear', 'nearest' or 'cubic', found '{}'", mode));
  }
  if (outside == "border") {
    sampling.outside = Outside::kBorder;
  } else if (outside == "reflection") {
    sampling.outside = Outside::kReflection;
  } else if (outside != "zeros") {
    return attribute_error(
        "padding_mode",
        fmt::format("expected 'zeros', 'border' or 'reflection', found '{}'", outside));
  }
  return sampling;
}

Status infer_grid_sample(InferContext& context) {
  TESSERA_TRY(sampling_of(context.attributes).map([](const Sampling&) {}));
  TESSERA_ASSIGN(const InferInput* x, tensor_input(context, 0));
  TESSERA_ASSIGN(const InferInput* grid, tensor_input(context, 1));
  TESSERA_TRY(require_rank_at_least(context, 0, 3));
  std::optional<Shape> output;
  if (x->type.shape) {
    const Shape& shape = *x->type.shape;
    TESSERA_TRY(require_rank(context, 1, static_cast<std::int64_t>(shape.size())));
    output = Shape{shape[0], shape[1]};
    for (std::size_t d = 2; d < shape.size(); ++d)
      output->push_back(grid->type.shape ? (*grid->type.shape)[d - 1]
                                         : context.fresh_symbol("grid"));
  }
  set_output(context, 0, x->type.dtype, std::move(output));
  return {};
}

// Mirrors a place at the borders until it lies between them.
double reflected(double place, double low, double high) {
  const double span = high - low;
  if (span <= 0) return low;
  const double distance = place < low ? low - place : place - high;
  if (distance <= 0) return place;
  const double turns = std::floor(distance / span);
  const double rest = distance - turns * span;
  const bool even = std::fmod(turns, 2) == 0;
  return (place < low) == even ? low + rest : high - rest;
}

// Elements along one axis that a sample is made of.
struct Taps {
  std::array<std::int64_t, 4> index{};  // -1: outside, where all is 0
  std::array<double, 4> weight{};
  std::size_t count = 0;
};

class AxisSampler {
 public:
  AxisSampler(const Sampling& sampling, std::int64_t size)
      : sampling_(sampling),
        size_(size),
        low_(sampling.align ? 0 : -0.5),
        high_(static_cast<double>(size) - (sampling.align ? 1 : 0.5)) {}

  [[nodiscard]] Taps taps(double coordinate) const {
    const auto n = static_cast<double>(size_);
    double place =
        sampling_.align ? (coordinate + 1) / 2 * (n - 1) : ((coordinate + 1) * n - 1) / 2;
    if (!std::isfinite(place)) place = low_ - 1;
    if (sampling_.mode == Mode::kNearest) place = std::nearbyint(place);
    if (place < low_ || place > high_) {
      if (sampling_.outside == Outside::kBorder) place = std::clamp(place, 0.0, n - 1);
      if (sampling_.outside == Outside::kReflection) place = reflected(place, low_, high_);
    }
    Taps taps;
    if (sampling_.mode == Mode::kNearest) {
      add(taps, std::nearbyint(place), 1);
      return taps;
    }
    const double base = std::floor(place);
    const double part = place - base;
    if (sampling_.mode == Mode::kLinear) {
      add(taps, base, 1 - part);
      add(taps, base + 1, part);
      return taps;
    }
    for (int i = -1; i <= 2; ++i) add(taps, base + i, cubic(std::fabs(part - i)));
    return taps;
  }

 private:
  // Keys' kernel with the coefficient -0.75.
  static double cubic(double x) {
    constexpr double kA = -0.75;
    if (x <= 1) return ((kA + 2) * x - (kA + 3)) * x * x + 1;
    return ((kA * x - 5 * kA) * x + 8 * kA) * x - 4 * kA;
  }

  void add(Taps& taps, double place, double weight) const {
    double at = place;
    const auto last = static_cast<double>(size_ - 1);
    if (at < 0 || at > last) {
      if (sampling_.outside == Outside::kZeros) at = -1;
      if (sampling_.outside == Outside::kBorder) at = std::clamp(at, 0.0, last);
      if (sampling_.outside == Outside::kReflection)
        at = std::clamp(std::trunc(reflected(at, low_, high_)), 0.0, last);
    }
    taps.index[taps.count] = static_cast<std::int64_t>(at);
    taps.weight[taps.count++] = weight;
  }

  Sampling sampling_;
  std::int64_t size_;
  double low_;
  double high_;
};

// The sum over all combinations of taps, one axis inside of the other.
double sample(const double* plane, const Dims& sizes, const std::vector<Taps>& taps,
              std::size_t axis, std::int64_t offset) {
  if (axis == taps.size()) return plane[offset];
  double sum = 0;
  for (std::size_t i = 0; i < taps[axis].count; ++i) {
    const std::int64_t at = taps[axis].index[i];
    if (at < 0) continue;
    sum += taps[axis].weight[i] * sample(plane, sizes, taps, axis + 1, offset * sizes[axis] + at);
  }
  return sum;
}

Status check_grid(const Dims& x, const Dims& grid) {
  const bool fits = x.size() >= 3 && grid.size() == x.size() && grid[0] == x[0] &&
                    grid.back() == static_cast<std::int64_t>(x.size()) - 2;
  if (fits) return {};
  return nn::op_error("GridSample",
                      fmt::format("expected a grid of [batch, sizes, axes] for X of [batch, "
                                  "channels, sizes], found {} for {}",
                                  to_string(grid), to_string(x)));
}

Status grid_sample_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* x_view, kernel_input(context, 0));
  TESSERA_ASSIGN(const TensorView* grid_view, kernel_input(context, 1));
  TESSERA_ASSIGN(const Sampling sampling, sampling_of(context.attributes()));
  TESSERA_TRY(check_grid(x_view->dims, grid_view->dims));
  const Dims sizes(x_view->dims.begin() + 2, x_view->dims.end());
  const std::size_t axes = sizes.size();
  Dims dims{x_view->dims[0], x_view->dims[1]};
  dims.insert(dims.end(), grid_view->dims.begin() + 1, grid_view->dims.end() - 1);
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, x_view->dtype, dims));
  const nn::Reals<double> x(*x_view);
  const nn::Reals<double> grid(*grid_view);
  nn::RealResult<double> result(output);
  std::vector<AxisSampler> samplers;
  for (const std::int64_t size : sizes) samplers.emplace_back(sampling, size);
  const std::int64_t channels = dims[1];
  const std::int64_t points = count_between(dims, 2, dims.size());
  const std::int64_t plane = count_between(sizes, 0, axes);
  if (plane == 0) return nn::op_error("GridSample", "expected an image of one element or more");
  context.parallel_for(dims[0] * points, 64, [&](std::int64_t begin, std::int64_t end) {
    std::vector<Taps> taps(axes);
    for (std::int64_t i = begin; i < end; ++i) {
      const double* place = grid.data() + i * static_cast<std::int64_t>(axes);
      for (std::size_t d = 0; d < axes; ++d) taps[d] = samplers[d].taps(place[axes - 1 - d]);
      for (std::int64_t c = 0; c < channels; ++c) {
        const std::int64_t row = i / points * channels + c;
        result.data()[row * points + i % points] =
            sample(x.data() + row * plane, sizes, taps, 0, 0);
      }
    }
  });
  result.finish();
  return {};
}

// Version 16 says bilinear and bicubic.
Status upgrade_modes(UpgradeNode& node, int /*opset*/, UpgradeBuilder& /*builder*/) {
  const std::string mode = node.attributes.get_string("mode", "bilinear");
  if (mode == "bilinear") node.attributes.set("mode", std::string("linear"));
  if (mode == "bicubic") node.attributes.set("mode", std::string("cubic"));
  return {};
}

}  // namespace

std::vector<OpSchema> grid_ops() {
  OpSchema affine;
  affine.name = "AffineGrid";
  affine.versions = {20};
  affine.unspecified = "with align_corners an axis of one element lies at 0";
  affine.inputs = {required("theta", "T1"), required("size", "T2")};
  affine.outputs = {required("grid", "T1")};
  affine.attributes = {attr("align_corners", AttrType::kInt)};
  affine.type_variables = {{"T1", kFloatTypes}, {"T2", kInt64Type}};
  affine.structure = Structure::kOther;
  affine.infer = infer_affine_grid;
  affine.kernel = affine_grid_kernel;
  affine.shape_inputs = {1};

  OpSchema sample;
  sample.name = "GridSample";
  sample.versions = {16, 20, 22};
  sample.unspecified =
      "a place that is NaN or infinite is taken as one pixel before the first border";
  sample.inputs = {required("X", "T1"), required("grid", "T2")};
  sample.outputs = {required("Y", "T1")};
  sample.attributes = {attr("align_corners", AttrType::kInt), attr("mode", AttrType::kString),
                       attr("padding_mode", AttrType::kString)};
  sample.type_variables = {{"T1", kNumericTypes}, {"T2", kFloatTypes}};
  sample.structure = Structure::kWindow;
  sample.infer = infer_grid_sample;
  sample.kernel = grid_sample_kernel;
  sample.upgrades = {{16, 16, upgrade_modes}};
  return {affine, sample};
}

}  // namespace tessera::ops
