// "simd.quant_pool": MaxPool, AveragePool and the global ones over 8-bit tensors, channels-last.
// Maxima are of the elements themselves, averages of exact sums; then both are quantised anew. An
// average that lies by a tie is summed again as it is written: of real elements, each rounded.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "backends/cpu/run/chunked_instance.h"
#include "backends/cpu/run/kernels.h"
#include "backends/cpu/run/quant_pool_plan.h"
#include "backends/cpu/run/quant_simd.h"

namespace tessera::backends::cpu {
namespace {

constexpr std::int64_t kGrain = 16384;

// What one output position reads along one spatial dim.
struct Window {
  std::int64_t first = 0, step = 1, count = 0;
  std::int64_t padded = 0;  // taps inside of the padded tensor
};

// The windows of each spatial dim, filled up to three, in front.
struct Windows {
  std::array<std::vector<Window>, 3> dims;
  std::array<std::int64_t, 3> in = {1, 1, 1};
};

Windows global_windows(const Dims& src) {
  Windows windows;
  for (std::size_t d = 0; d < 3; ++d) {
    const std::size_t missing = 5 - src.size();
    windows.in[d] = d < missing ? 1 : src[d - missing + 2];
    windows.dims[d] = {{0, 1, windows.in[d], windows.in[d]}};
  }
  return windows;
}

Windows windows_of(const PoolPlan& plan, const Dims& src, const Dims& dst) {
  Windows windows;
  const std::size_t missing = 3 - plan.kernel.size();
  for (std::size_t d = 0; d < missing; ++d) windows.dims[d] = {{0, 1, 1, 1}};
  for (std::size_t d = 0; d < plan.kernel.size(); ++d) {
    const std::int64_t in = src[d + 2];
    const std::int64_t end = plan.padded_end(d, in, dst[d + 2]);
    windows.in[missing + d] = in;
    for (std::int64_t out = 0; out < dst[d + 2]; ++out) {
      const std::int64_t begin = out * plan.strides[d] - plan.begin_pad(d, in, dst[d + 2]);
      Window window{0, plan.dilations[d], 0, 0};
      for (std::int64_t tap = 0; tap < plan.kernel[d]; ++tap) {
        const std::int64_t at = begin + tap * plan.dilations[d];
        window.padded += at < end ? 1 : 0;
        if (at < 0 || at >= in) continue;
        if (window.count++ == 0) window.first = at;
      }
      windows.dims[missing + d].push_back(window);
    }
  }
  return windows;
}

class QuantPoolKernel final : public LoadedKernel {
 public:
  QuantPoolKernel(QuantPlan quant, std::optional<PoolPlan> pool, bool average)
      : quant_(std::move(quant)), pool_(std::move(pool)), average_(average) {
    for (std::size_t i = 0; i < again_.size(); ++i) {
      const auto element = static_cast<std::byte>(i);
      float real = 0;
      const QuantParams& from = quant_.src.params;
      dequantize(from.dtype, &element, from.zero, from.scale, &real, {1, 1, 0, 0});
      reals_[i] = static_cast<double>(real);
      quantize(quant_.result->dtype, &real, quant_.result->scale, quant_.result->zero, &again_[i],
               {1, 1, 0, 0});
    }
  }

  Result<std::unique_ptr<KernelInstance>> instantiate(const InstanceDims& dims,
                                                      int threads) const override {
    const Dims& src = dims.inputs[static_cast<std::size_t>(quant_.src.operand)];
    const Dims& dst = dims.outputs[0];
    Windows windows = pool_ ? windows_of(*pool_, src, dst) : global_windows(src);
    const std::int64_t channels = src[1];
    const auto lines = static_cast<std::int64_t>(windows.dims[0].size() * windows.dims[1].size());
    const std::int64_t rows = src[0] * lines;
    const std::int64_t work = numel(src);
    const std::int64_t chunks = numel(dst) == 0 ? 0
                                                : std::min(chunk_count(work, kGrain, threads),
                                                           std::max<std::int64_t>(rows, 1));
    auto body = [=, this, windows = std::move(windows)](const ExecuteArgs& args, std::int64_t chunk,
                                                        std::int64_t count, std::byte* scratch) {
      const ChunkRange range = chunk_range(rows, count, chunk);
      for (std::int64_t row = range.begin; row < range.end; ++row)
        run_row(args, windows, row, channels, scratch);
    };
    return chunked(chunks, std::move(body), channels * 8);
  }

 private:
  // All positions of the innermost dim at one place of the others.
  void run_row(const ExecuteArgs& args, const Windows& windows, std::int64_t row,
               std::int64_t channels, std::byte* scratch) const {
    const auto height = static_cast<std::int64_t>(windows.dims[1].size());
    const auto depth = static_cast<std::int64_t>(windows.dims[0].size());
    const auto width = static_cast<std::int64_t>(windows.dims[2].size());
    const Window& z = windows.dims[0][static_cast<std::size_t>(row / height % depth)];
    const Window& y = windows.dims[1][static_cast<std::size_t>(row % height)];
    const std::int64_t image = row / (depth * height);
    const std::byte* source = args.inputs[static_cast<std::size_t>(quant_.src.operand)];
    std::byte* out = args.outputs[0] + row * width * channels;
    const auto count = static_cast<std::size_t>(channels);
    auto* sums = reinterpret_cast<std::int32_t*>(scratch);
    for (const Window& x : windows.dims[2]) {
      if (average_) {
        std::memset(sums, 0, count * sizeof *sums);
      } else {
        std::memset(out, quant_.src.params.dtype == DType::kInt8 ? 0x80 : 0, count);
      }
      for_pixels(windows, image, z, y, x, [&](std::int64_t pixel) {
        if (average_)
          accumulate_sums(quant_.src.params.dtype, source + pixel * channels, sums, count);
        else
          accumulate_max(quant_.src.params.dtype, source + pixel * channels, out, count);
      });
      const std::int64_t taps = z.count * y.count * x.count;
      if (average_) {
        const bool padded = pool_ && pool_->include_pad;
        const auto written = [&](std::int64_t channel) {
          double sum = 0;
          for_pixels(windows, image, z, y, x, [&](std::int64_t pixel) {
            sum += reals_[std::to_integer<std::size_t>(source[pixel * channels + channel])];
          });
          return sum;
        };
        finish_average(sums, taps, padded ? z.padded * y.padded * x.padded : taps, written,
                       floats(scratch + channels * 4), out, channels);
      } else {
        finish_max(taps, out, channels);
      }
      out += channels;
    }
  }

  // Calls f(number of the pixel) for the taps of one window that fall on the source.
  template <typename F>
  static void for_pixels(const Windows& windows, std::int64_t image, const Window& z,
                         const Window& y, const Window& x, const F& f) {
    for (std::int64_t i = 0; i < z.count; ++i) {
      for (std::int64_t j = 0; j < y.count; ++j) {
        const std::int64_t line = ((image * windows.in[0] + z.first + i * z.step) * windows.in[1] +
                                   y.first + j * y.step) *
                                  windows.in[2];
        for (std::int64_t k = 0; k < x.count; ++k) f(line + x.first + k * x.step);
      }
    }
  }

  // Whether an average could lie on the other side of a tie with its elements rounded: how far from
  // one that may be, and how far it is.
  struct Ties {
    double per_real, reach;

    Ties(const QuantParams& from, const QuantParams& to, std::int64_t taps, std::int64_t divisor)
        : per_real(1 / static_cast<double>(to.scale)),
          reach(std::ldexp(std::abs(256 * static_cast<double>(from.scale) * per_real), -22) *
                static_cast<double>(taps) / static_cast<double>(divisor)) {}
    [[nodiscard]] bool is_by_one(double average) const {
      constexpr double kRounds = 0x1.8p52;  // what is added to it loses its fraction
      const double steps = average * per_real;
      return !(0.5 - std::abs(steps - ((steps + kRounds) - kRounds)) > reach);
    }
  };

  // A window of padding alone is minus infinity, the lowest element whatever the scale.
  void finish_max(std::int64_t taps, std::byte* out, std::int64_t channels) const {
    if (taps == 0) {
      std::memset(out, quant_.result->dtype == DType::kInt8 ? 0x80 : 0,
                  static_cast<std::size_t>(channels));
    } else if (*quant_.result != quant_.src.params) {
      std::transform(out, out + channels, out, [&](std::byte element) {
        return again_[std::to_integer<std::size_t>(element)];
      });
    }
  }

  // `written` sums the real elements of a channel.
  template <typename Written>
  void finish_average(const std::int32_t* sums, std::int64_t taps, std::int64_t divisor,
                      const Written& written, float* real, std::byte* out,
                      std::int64_t channels) const {
    const QuantParams& from = quant_.src.params;
    const std::int64_t shift = taps * from.zero;
    const auto scale = static_cast<double>(from.scale);
    const auto count = static_cast<double>(divisor == 0 ? 1 : divisor);  // of none, the sum is 0
    const Ties ties(from, *quant_.result, taps, divisor == 0 ? 1 : divisor);
    bool any_by_a_tie = false;
    for (std::int64_t c = 0; c < channels; ++c) {
      const double average = static_cast<double>(sums[c] - shift) * scale / count;
      real[c] = static_cast<float>(average);
      any_by_a_tie |= ties.is_by_one(average);
    }
    int exponent = 0;
    const bool exact = std::abs(std::frexp(scale, &exponent)) == 0.5;  // elements are not rounded
    for (std::int64_t c = 0; c < channels && any_by_a_tie && !exact; ++c) {
      if (ties.is_by_one(static_cast<double>(sums[c] - shift) * scale / count))
        real[c] = static_cast<float>(written(c) / count);
    }
    quantize(quant_.result->dtype, real, quant_.result->scale, quant_.result->zero, out,
             {1, static_cast<std::size_t>(channels), 0, 0});
  }

  QuantPlan quant_;
  std::optional<PoolPlan> pool_;  // nothing: global
  bool average_;
  std::array<double, 256> reals_{};     // a source element, dequantised
  std::array<std::byte, 256> again_{};  // a source element, quantised as the result is
};

}  // namespace

Result<std::unique_ptr<LoadedKernel>> load_quant_pool(const artefact::KernelSpec& spec,
                                                      Constants constants) {
  TESSERA_ASSIGN(QuantPlan plan, plan_quantised(spec, constants));
  TESSERA_ASSIGN(auto pool, plan_quant_pool(spec, plan));
  const bool average = spec.steps[plan.anchor].op_type.find("Average") != std::string::npos;
  return std::unique_ptr<LoadedKernel>(
      new QuantPoolKernel(std::move(plan), std::move(pool), average));
}

Result<std::optional<PoolPlan>> plan_quant_pool(const artefact::KernelSpec& spec,
                                                const QuantPlan& plan) {
  if (plan.kind != QuantPlan::Kind::kPool) return bad_spec(spec, "expected a quantised pooling");
  const auto& step = spec.steps[plan.anchor];
  const auto refused = [&](std::string_view text) {
    return fail(ErrorCode::kUnimplemented, step.op_type + ": " + std::string(text));
  };
  if (operand_ref(spec, plan.src.operand).kind != OperandRef::Kind::kInput)
    return refused("input 'X': expected one computed at run time, found a constant");
  if (plan.src.params.zero_operand >= 0) return refused("zero point: expected a constant");
  artefact::KernelSpec alone;
  alone.kernel = spec.kernel;
  alone.inputs = {*operand_decl(spec, plan.src.operand)};
  alone.inputs[0].dtype = DType::kFp32;
  alone.outputs = spec.outputs;
  alone.steps = {step};
  const std::size_t rank = alone.inputs[0].shape.size();
  if (rank < 3 || rank > 5) return refused("expected rank 3 to 5, found " + std::to_string(rank));
  if (step.op_type.starts_with("Global")) return std::optional<PoolPlan>();
  TESSERA_ASSIGN(PoolPlan pool, plan_pool(alone));
  return std::optional<PoolPlan>(std::move(pool));
}

}  // namespace tessera::backends::cpu
