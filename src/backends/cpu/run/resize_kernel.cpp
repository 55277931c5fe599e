// "cpu.resize": Resize of the spatial dims, nearest or linear, in row-major, channel-blocked and
// channels-last layouts.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "backends/cpu/run/chunked_instance.h"
#include "backends/cpu/run/elementwise_simd.h"
#include "backends/cpu/run/kernels.h"
#include "backends/cpu/run/physical.h"
#include "backends/cpu/run/resize_plan.h"

namespace tessera::backends::cpu {
namespace {

constexpr std::int64_t kGrain = 16384;
constexpr std::int64_t kMaxTaps = std::int64_t{1} << 26;  // 1.5 GiB along one dim
using Taps = std::vector<ResizePlan::Tap>;

// Images of rows of lanes, resized in up to three dims.
class Resizer {
 public:
  Resizer(const ResizePlan& plan, const Dims& src, const Dims& dst) : linear_(plan.linear) {
    const std::size_t spatial = src.size() - 2;
    const bool last = is_channels_last(plan.layout, src.size());
    const std::int64_t block = channel_block_of(plan.layout);
    lanes_ = last ? src[1] : block;
    images_ = src[0] * (last ? 1 : (src[1] + block - 1) / block);
    for (std::size_t d = 0; d < 3; ++d) {
      const std::size_t pad = 3 - spatial;
      in_[d] = d < pad ? 1 : src[2 + d - pad];
      taps_[d] = d < pad ? Taps(1) : plan.taps(2 + d - pad, src[2 + d - pad], dst[2 + d - pad]);
    }
  }

  [[nodiscard]] std::int64_t rows() const { return images_ * size(0) * size(1); }
  [[nodiscard]] std::int64_t row_elements() const { return size(2) * lanes_; }

  void run(const float* source, float* target, std::int64_t begin, std::int64_t end) const {
    for (std::int64_t row = begin; row < end; ++row) {
      const float* image = source + row / (size(0) * size(1)) * in_[0] * in_[1] * in_[2] * lanes_;
      const auto& z = taps_[0][static_cast<std::size_t>(row / size(1) % size(0))];
      const auto& y = taps_[1][static_cast<std::size_t>(row % size(1))];
      float* out = target + row * row_elements();
      if (linear_) {
        linear_row(image, z, y, out);
      } else {
        nearest_row(image + line(z.low, y.low), out);
      }
    }
  }

 private:
  [[nodiscard]] std::int64_t size(std::size_t d) const {
    return static_cast<std::int64_t>(taps_[d].size());
  }
  [[nodiscard]] std::int64_t line(std::int64_t z, std::int64_t y) const {
    return (z * in_[1] + y) * in_[2] * lanes_;
  }

  void nearest_row(const float* in, float* out) const {
    for (const auto& x : taps_[2]) {
      if (lanes_ == 1) {
        *out = in[x.low];
      } else {
        std::memcpy(out, in + x.low * lanes_, static_cast<std::size_t>(lanes_) * sizeof(float));
      }
      out += lanes_;
    }
  }

  void linear_row(const float* image, const ResizePlan::Tap& z, const ResizePlan::Tap& y,
                  float* out) const {
    const std::array<std::pair<const float*, float>, 4> lines = {
        {{image + line(z.low, y.low), (1 - z.share) * (1 - y.share)},
         {image + line(z.low, y.high), (1 - z.share) * y.share},
         {image + line(z.high, y.low), z.share * (1 - y.share)},
         {image + line(z.high, y.high), z.share * y.share}}};
    std::fill_n(out, row_elements(), 0.0F);
    for (const auto& [in, weight] : lines) {
      if (weight == 0) continue;
      float* to = out;
      for (const auto& x : taps_[2]) {
        const float* low = in + x.low * lanes_;
        const float* high = in + x.high * lanes_;
        const float w0 = weight * (1 - x.share);
        const float w1 = weight * x.share;
        for (std::int64_t lane = 0; lane < lanes_; ++lane)
          to[lane] += w0 * low[lane] + w1 * high[lane];
        to += lanes_;
      }
    }
  }

  bool linear_;
  std::int64_t lanes_ = 1;
  std::int64_t images_ = 1;
  std::array<std::int64_t, 3> in_{};
  std::array<Taps, 3> taps_;
};

class ResizeKernel final : public LoadedKernel {
 public:
  explicit ResizeKernel(ResizePlan plan) : plan_(std::move(plan)) {}
  Result<std::unique_ptr<KernelInstance>> instantiate(const InstanceDims& dims,
                                                      int threads) const override {
    const Dims& src = dims.inputs[0];
    const Dims& dst = dims.outputs[0];
    if (src[0] != dst[0] || src[1] != dst[1]) {
      return fail(ErrorCode::kUnimplemented,
                  fmt::format("Resize: expected spatial dims alone to change, found {} to {}",
                              to_string(src), to_string(dst)));
    }
    for (const std::int64_t size : dst)
      if (size > kMaxTaps)
        return fail(ErrorCode::kResourceExhausted,
                    fmt::format("Resize: expected sizes of at most {}, found {}", kMaxTaps,
                                to_string(dst)));
    Resizer resizer(plan_, src, dst);
    const std::int64_t rows = resizer.rows();
    const std::int64_t chunks =
        std::min(chunk_count(rows * resizer.row_elements(), kGrain, threads),
                 std::max<std::int64_t>(rows, 1));
    return chunked(
        chunks, [resizer = std::move(resizer), rows](const ExecuteArgs& args, std::int64_t i,
                                                     std::int64_t count, std::byte*) {
          const ChunkRange range = chunk_range(rows, count, i);
          resizer.run(floats(args.inputs[0]), floats(args.outputs[0]), range.begin, range.end);
        });
  }

 private:
  ResizePlan plan_;
};

}  // namespace

std::vector<ResizePlan::Tap> ResizePlan::taps(std::size_t d, std::int64_t in,
                                              std::int64_t out) const {
  std::vector<Tap> result;
  const auto size = static_cast<float>(in);
  const float scale = scales.empty() ? static_cast<float>(out) / size : scales[d];
  const float length = scales.empty() ? static_cast<float>(out) : size * scale;
  const float last = size - 1;
  // In fp32 and in the order of the reference: ties of the nearest modes hang on it. Corners are
  // those of the scaled size, which need not be whole.
  for (std::int64_t o = 0; o < out; ++o) {
    const auto x = static_cast<float>(o);
    float at = (x + 0.5F) / scale - 0.5F;  // half_pixel
    if (coordinates == "asymmetric") at = x / scale;
    if (coordinates == "align_corners") at = length != 1 ? x * last / (length - 1) : 0;
    if (coordinates == "pytorch_half_pixel" && out == 1) at = 0;
    if (coordinates == "half_pixel_symmetric") {
      const float adjustment = static_cast<float>(out) / (scale * size);
      at = size / 2 * (1 - adjustment) + (x + 0.5F) / scale - 0.5F;
    }
    Tap tap;
    if (linear) {
      at = std::clamp(at, 0.0F, last);
      tap.low = static_cast<std::int64_t>(std::floor(at));
      tap.high = std::min(tap.low + 1, in - 1);
      tap.share = at - std::floor(at);
    } else {
      float index = std::ceil(at - 0.5F);  // round_prefer_floor
      if (nearest == "round_prefer_ceil") index = std::floor(at + 0.5F);
      if (nearest == "floor") index = std::floor(at);
      if (nearest == "ceil") index = std::ceil(at);
      tap.low = tap.high = static_cast<std::int64_t>(std::clamp(index, 0.0F, last));
    }
    result.push_back(tap);
  }
  return result;
}

Result<ResizePlan> plan_resize(const artefact::KernelSpec& spec, Constants constants) {
  if (spec.steps.size() != 1 || spec.inputs.empty() || spec.outputs.size() != 1 ||
      step_input(spec.steps[0], 0) != 0) {
    return bad_spec(spec, "expected one step of an input computed at run time, and one output");
  }
  const auto& step = spec.steps[0];
  ResizePlan plan;
  const auto refuse = [](std::string_view attribute, std::string_view expected,
                         std::string_view found) {
    return fail(
        ErrorCode::kUnimplemented,
        fmt::format("Resize: attribute '{}': expected {}, found {}", attribute, expected, found));
  };
  const std::string mode = step.attributes.get_string("mode", "nearest");
  if (mode != "nearest" && mode != "linear") return refuse("mode", "nearest or linear", mode);
  plan.linear = mode == "linear";
  plan.coordinates = step.attributes.get_string("coordinate_transformation_mode", "half_pixel");
  if (plan.coordinates == "tf_crop_and_resize")
    return refuse("coordinate_transformation_mode", "a mode without a region", plan.coordinates);
  plan.nearest = step.attributes.get_string("nearest_mode", "round_prefer_floor");
  if (step.attributes.get_int("antialias", 0) != 0) return refuse("antialias", "0", "1");
  const std::string policy = step.attributes.get_string("keep_aspect_ratio_policy", "stretch");
  if (policy != "stretch") return refuse("keep_aspect_ratio_policy", "stretch", policy);
  const std::size_t rank = spec.inputs[0].shape.size();
  if (rank < 3 || rank > 5)
    return fail(ErrorCode::kUnimplemented,
                fmt::format("Resize: expected a rank of 3 to 5, found {}", rank));
  if (spec.inputs[0].dtype != DType::kFp32)
    return fail(ErrorCode::kUnimplemented,
                fmt::format("Resize: expected fp32, found {}", to_string(spec.inputs[0].dtype)));
  const OperandRef scales = operand_ref(spec, step_input(step, 2));
  if (scales.kind == OperandRef::Kind::kConstant) {
    const auto dims = constant_dims(spec.constants[scales.index].shape);
    const auto axes = step.attributes.get_ints("axes");
    const std::int64_t count = dims ? numel(*dims) : 0;
    const float* values = floats(constants[scales.index].data());
    if (count > 0) {
      plan.scales.assign(rank, 1.0F);
      const std::int64_t expected =
          axes.empty() ? static_cast<std::int64_t>(rank) : static_cast<std::int64_t>(axes.size());
      if (count != expected)
        return fail(
            ErrorCode::kInvalidArgument,
            fmt::format("Resize: input 'scales': expected {} values, found {}", expected, count));
      for (std::int64_t i = 0; i < count; ++i) {
        const std::int64_t axis = axes.empty() ? i : axes[static_cast<std::size_t>(i)];
        plan.scales[static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank)
                                                      : axis)] = values[i];
      }
    }
  } else if (scales.kind != OperandRef::Kind::kOmitted) {
    return fail(ErrorCode::kUnimplemented,
                "Resize: input 'scales': expected a constant, found one computed at run time");
  }
  plan.layout = spec.inputs[0].layout;
  return plan;
}

Result<std::unique_ptr<LoadedKernel>> load_resize(const artefact::KernelSpec& spec,
                                                  Constants constants) {
  TESSERA_ASSIGN(auto plan, plan_resize(spec, constants));
  return std::unique_ptr<LoadedKernel>(new ResizeKernel(std::move(plan)));
}

}  // namespace tessera::backends::cpu
