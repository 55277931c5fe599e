// Pooling: "onednn.pool", averages where the library has code for the layout; "simd.pool" for every
// window and layout; "simd.global_pool".

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "backends/cpu/run/chunked_instance.h"
#include "backends/cpu/run/elementwise_simd.h"
#include "backends/cpu/run/kernels.h"
#include "backends/cpu/run/parallel_status.h"
#include "backends/cpu/run/physical.h"
#include "backends/cpu/run/pool_plan.h"
#include "backends/cpu/run/pool_simd.h"
#include "backends/cpu/run/primitive_cache.h"

namespace tessera::backends::cpu {
namespace {

constexpr std::int64_t kGrain = 16384;

// Rows of lanes that lie together: a channel block, all channels, or one element.
struct Lanes {
  std::int64_t images = 1;  // times the whole spatial extent
  std::int64_t lanes = 1;
  std::int64_t blocks = 1;  // images of one item of the batch
  std::int64_t channels = 1;

  // The lanes of an image that hold channels; the others pad.
  [[nodiscard]] std::int64_t real(std::int64_t image) const {
    return std::min(lanes, channels - image % blocks * lanes);
  }
};

Lanes lanes_of(const PoolPlan& plan, const Dims& dims) {
  if (is_channels_last(plan.layout, dims.size())) return {dims[0], dims[1], 1, dims[1]};
  const std::int64_t block = channel_block_of(plan.layout);
  return {plan.folded_images(dims), block, (dims[1] + block - 1) / block, dims[1]};
}

// The taps of one output along one dim that fall on input: first tap, their number, and the divisor
// with padding counted.
struct Taps {
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t with_padding = 0;
};

std::vector<Taps> taps_along(const PoolPlan& plan, std::size_t d, std::int64_t in,
                             std::int64_t out) {
  std::vector<Taps> result;
  const std::int64_t begin = plan.begin_pad(d, in, out);
  const std::int64_t padded_end = plan.padded_end(d, in, out);
  for (std::int64_t o = 0; o < out; ++o) {
    Taps taps;
    const std::int64_t start = o * plan.strides[d] - begin;
    for (std::int64_t k = 0; k < plan.kernel[d]; ++k) {
      const std::int64_t at = start + k * plan.dilations[d];
      if (at < padded_end) ++taps.with_padding;
      if (at < 0 || at >= in) continue;
      if (taps.count++ == 0) taps.first = at;
    }
    result.push_back(taps);
  }
  return result;
}

// Every window of one image: spatial dims widened to three.
class PoolWindows {
 public:
  PoolWindows(const PoolPlan& plan, const Dims& src, const Dims& dst)
      : plan_(plan), lanes_(lanes_of(plan, src)) {
    const std::size_t spatial = plan.kernel.size();
    for (std::size_t d = 0; d < 3; ++d) {
      const std::size_t pad = 3 - spatial;
      in_[d] = d < pad ? 1 : src[2 + d - pad];
      dilation_[d] = d < pad ? 1 : plan.dilations[d - pad];
      taps_[d] = d < pad ? std::vector<Taps>{{0, 1, 1}}
                         : taps_along(plan, d - pad, src[2 + d - pad], dst[2 + d - pad]);
    }
    for (const Taps& taps : taps_[2]) columns_.push_back({taps.first, taps.count});
  }

  [[nodiscard]] std::int64_t rows() const { return lanes_.images * size(0) * size(1); }
  [[nodiscard]] std::int64_t row_work() const {
    return size(2) * lanes_.lanes * numel(plan_.kernel);
  }

  // One line of the source, where lines of single elements are folded before their windows are.
  [[nodiscard]] std::int64_t scratch_bytes() const {
    return plan_.average || lanes_.lanes > 1 ? 0
                                             : in_[2] * static_cast<std::int64_t>(sizeof(float));
  }

  void run(const float* source, float* target, std::int64_t begin, std::int64_t end,
           float* scratch) const {
    const std::int64_t image_size = in_[0] * in_[1] * in_[2] * lanes_.lanes;
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t image = row / (size(0) * size(1));
      const Taps& z = taps_[0][static_cast<std::size_t>(row / size(1) % size(0))];
      const Taps& y = taps_[1][static_cast<std::size_t>(row % size(1))];
      const float* in = source + image * image_size;
      float* out = target + row * size(2) * lanes_.lanes;
      if (plan_.average) {
        for (std::int64_t o = 0; o < size(2); ++o)
          average(in, out + o * lanes_.lanes, z, y, taps_[2][static_cast<std::size_t>(o)]);
      } else {
        largest(in, out, z, y, scratch);
        clear_padding(out, image, z.count * y.count == 0);
      }
    }
  }

 private:
  [[nodiscard]] std::int64_t size(std::size_t d) const {
    return static_cast<std::int64_t>(taps_[d].size());
  }

  [[nodiscard]] const float* line(const float* image, const Taps& z, std::int64_t i, const Taps& y,
                                  std::int64_t j) const {
    const std::int64_t number = (z.first + i * dilation_[0]) * in_[1] + y.first + j * dilation_[1];
    return image + number * in_[2] * lanes_.lanes;
  }

  void largest(const float* image, float* out, const Taps& z, const Taps& y, float* scratch) const {
    std::vector<const float*> lines;
    for (std::int64_t i = 0; i < z.count; ++i)
      for (std::int64_t j = 0; j < y.count; ++j) lines.push_back(line(image, z, i, y, j));
    if (lanes_.lanes == 1 && lines.size() > 1) {
      const ColumnRange whole{0, 1};
      max_windows({lines, {&whole, 1}, 1, static_cast<std::size_t>(in_[2])}, scratch);
      lines = {scratch};
    }
    max_windows({lines, columns_, dilation_[2], static_cast<std::size_t>(lanes_.lanes)}, out);
  }

  // Lanes that pad hold zeros, of which a window without elements makes none.
  void clear_padding(float* out, std::int64_t image, bool no_lines) const {
    const std::int64_t real = lanes_.real(image);
    if (real == lanes_.lanes) return;
    for (const ColumnRange& columns : columns_) {
      if (no_lines || columns.count == 0) std::fill(out + real, out + lanes_.lanes, 0.0F);
      out += lanes_.lanes;
    }
  }

  void average(const float* image, float* out, const Taps& z, const Taps& y, const Taps& x) const {
    const auto lanes = static_cast<std::size_t>(lanes_.lanes);
    std::fill_n(out, lanes, 0.0F);
    for (std::int64_t i = 0; i < z.count; ++i) {
      for (std::int64_t j = 0; j < y.count; ++j) {
        for (std::int64_t k = 0; k < x.count; ++k) {
          const float* at = line(image, z, i, y, j) + (x.first + k * dilation_[2]) * lanes_.lanes;
          if (lanes == 1) {
            *out += *at;
          } else {
            simd_accumulate(at, out, lanes);
          }
        }
      }
    }
    const std::int64_t count = plan_.include_pad ? z.with_padding * y.with_padding * x.with_padding
                                                 : z.count * y.count * x.count;
    run_simd(SimdOp::kScaleShift, out, nullptr, out, lanes,
             count == 0 ? 0 : 1.0F / static_cast<float>(count), 0);
  }

  PoolPlan plan_;
  Lanes lanes_;
  std::array<std::int64_t, 3> in_{};
  std::array<std::int64_t, 3> dilation_{};
  std::array<std::vector<Taps>, 3> taps_;
  std::vector<ColumnRange> columns_;  // of the last of them
};

std::unique_ptr<KernelInstance> own_instance(const PoolPlan& plan, const Dims& src, const Dims& dst,
                                             int threads) {
  PoolWindows windows(plan, src, dst);
  const std::int64_t rows = windows.rows();
  const std::int64_t chunks = std::min(chunk_count(rows * windows.row_work(), kGrain, threads),
                                       std::max<std::int64_t>(rows, 1));
  const std::int64_t scratch_each = windows.scratch_bytes();
  return chunked(
      chunks,
      [windows = std::move(windows), rows](const ExecuteArgs& args, std::int64_t i,
                                           std::int64_t count, std::byte* scratch) {
        const ChunkRange range = chunk_range(rows, count, i);
        windows.run(floats(args.inputs[0]), floats(args.outputs[0]), range.begin, range.end,
                    reinterpret_cast<float*>(scratch));
      },
      scratch_each);
}

class OnednnPoolInstance final : public KernelInstance {
 public:
  Status build(const PoolPlan& plan, const Dims& src, const Dims& dst, int threads) {
    const std::int64_t images = plan.folded_images(src);
    src_image_ = stored_elements(plan.layout, src) / std::max<std::int64_t>(images, 1);
    dst_image_ = stored_elements(plan.layout, dst) / std::max<std::int64_t>(images, 1);
    const std::int64_t parts =
        std::min(chunk_count(numel(dst) * numel(plan.kernel), kGrain, threads), images);
    std::map<std::int64_t, std::shared_ptr<const OnednnPrimitive>> made;
    for (std::int64_t i = 0; i < parts; ++i) {
      const ChunkRange range = chunk_range(images, parts, i);
      auto& primitive = made[range.end - range.begin];
      if (primitive == nullptr) {
        TESSERA_ASSIGN(const PoolProblem problem, plan.problem(src, dst, range.end - range.begin));
        TESSERA_ASSIGN(primitive, compiled_primitive(problem));
        if (primitive->is_reference())
          return fail(ErrorCode::kUnimplemented,
                      "oneDNN: expected optimised code, found " + primitive->implementation());
        scratch_ = std::max(scratch_, (primitive->scratch_bytes() + 63) / 64 * 64);
      }
      TESSERA_ASSIGN(auto call, OnednnCall::make(primitive));
      calls_.push_back({std::move(call), range.begin});
    }
    return {};
  }

  [[nodiscard]] std::int64_t scratch_bytes() const override {
    return scratch_ * static_cast<std::int64_t>(calls_.size());
  }
  Status execute(const ExecuteArgs& args) override {
    return run_chunks(args.parallel, static_cast<std::int64_t>(calls_.size()), [&](std::int64_t i) {
      Chunk& chunk = calls_[static_cast<std::size_t>(i)];
      chunk.call->set(kSrc, floats(args.inputs[0]) + chunk.image * src_image_);
      chunk.call->set(kDst, floats(args.outputs[0]) + chunk.image * dst_image_);
      chunk.call->set(kScratch, args.scratch + i * scratch_);
      return chunk.call->run();
    });
  }

 private:
  struct Chunk {
    std::unique_ptr<OnednnCall> call;
    std::int64_t image = 0;
  };
  std::vector<Chunk> calls_;
  std::int64_t src_image_ = 0;
  std::int64_t dst_image_ = 0;
  std::int64_t scratch_ = 0;
};

class PoolKernel final : public LoadedKernel {
 public:
  PoolKernel(PoolPlan plan, bool library) : plan_(std::move(plan)), library_(library) {}
  Result<std::unique_ptr<KernelInstance>> instantiate(const InstanceDims& dims,
                                                      int threads) const override {
    const Dims& src = dims.inputs[0];
    const Dims& dst = dims.outputs[0];
    if (library_ && numel(dst) > 0) {
      auto instance = std::make_unique<OnednnPoolInstance>();
      const Status built = instance->build(plan_, src, dst, threads);
      if (built) return std::unique_ptr<KernelInstance>(std::move(instance));
      if (built.error().code != ErrorCode::kUnimplemented) return tl::unexpected(built.error());
    }
    return own_instance(plan_, src, dst, threads);  // the library has nothing for these
  }

 private:
  PoolPlan plan_;
  bool library_;
};

class GlobalPoolKernel final : public LoadedKernel {
 public:
  GlobalPoolKernel(Layout layout, bool average) : layout_(std::move(layout)), average_(average) {}
  Result<std::unique_ptr<KernelInstance>> instantiate(const InstanceDims& dims,
                                                      int threads) const override {
    const Dims& src = dims.inputs[0];
    PoolPlan plan;
    plan.layout = layout_;
    const Lanes lanes = lanes_of(plan, src);
    const std::int64_t spatial =
        stored_elements(layout_, src) / std::max<std::int64_t>(lanes.images * lanes.lanes, 1);
    const std::int64_t chunks =
        std::min(chunk_count(numel(src), kGrain, threads), std::max<std::int64_t>(lanes.images, 1));
    const bool average = average_;
    return chunked(
        chunks, [=](const ExecuteArgs& args, std::int64_t i, std::int64_t count, std::byte*) {
          const ChunkRange range = chunk_range(lanes.images, count, i);
          const auto width = static_cast<std::size_t>(lanes.lanes);
          for (std::int64_t image = range.begin; image < range.end; ++image) {
            const float* in = floats(args.inputs[0]) + image * spatial * lanes.lanes;
            float* out = floats(args.outputs[0]) + image * lanes.lanes;
            if (spatial == 0) {
              using Limits = std::numeric_limits<float>;
              const std::int64_t real = lanes.real(image);
              std::fill_n(out, real, average ? Limits::quiet_NaN() : -Limits::infinity());
              std::fill(out + real, out + lanes.lanes, 0.0F);  // lanes that pad
              continue;
            }
            if (width == 1) {
              *out = average ? simd_sum(in, static_cast<std::size_t>(spatial))
                             : simd_max(in, static_cast<std::size_t>(spatial));
            } else if (average) {
              simd_column_sums(in, static_cast<std::size_t>(spatial), width, out);
            } else {
              simd_column_maxima(in, static_cast<std::size_t>(spatial), width, out);
            }
            if (average)
              run_simd(SimdOp::kScaleShift, out, nullptr, out, width,
                       1.0F / static_cast<float>(spatial), 0);
          }
        });
  }

 private:
  Layout layout_;
  bool average_;
};

}  // namespace

Result<std::unique_ptr<LoadedKernel>> load_onednn_pool(const artefact::KernelSpec& spec,
                                                       Constants) {
  TESSERA_ASSIGN(auto plan, plan_pool(spec));
  return std::unique_ptr<LoadedKernel>(new PoolKernel(std::move(plan), true));
}

Result<std::unique_ptr<LoadedKernel>> load_pool(const artefact::KernelSpec& spec, Constants) {
  TESSERA_ASSIGN(auto plan, plan_pool(spec));
  return std::unique_ptr<LoadedKernel>(new PoolKernel(std::move(plan), false));
}

Result<std::unique_ptr<LoadedKernel>> load_global_pool(const artefact::KernelSpec& spec,
                                                       Constants) {
  if (spec.steps.size() != 1 || spec.inputs.empty() || spec.outputs.size() != 1)
    return bad_spec(spec, "expected one step, an input and one output");
  const auto& op = spec.steps[0].op_type;
  return std::unique_ptr<LoadedKernel>(
      new GlobalPoolKernel(spec.inputs[0].layout, op == "GlobalAveragePool" || op == "ReduceMean"));
}

}  // namespace tessera::backends::cpu
