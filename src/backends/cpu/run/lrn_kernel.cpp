// "simd.lrn": LRN across the channels of a row-major tensor.

#include <fmt/format.h>

#include <algorithm>

#include "backends/cpu/run/chunked_instance.h"
#include "backends/cpu/run/kernels.h"
#include "backends/cpu/run/lrn_simd.h"

namespace tessera::backends::cpu {
namespace {

constexpr std::int64_t kGrain = 8192;

class LrnKernel final : public LoadedKernel {
 public:
  LrnKernel(std::int64_t size, LrnFactors factors) : size_(size), factors_(factors) {}

  Result<std::unique_ptr<KernelInstance>> instantiate(const InstanceDims& dims,
                                                      int threads) const override {
    const Dims& x = dims.inputs[0];
    const std::int64_t channels = x[1];
    const std::int64_t planes = x[0] * channels;
    const std::int64_t plane = planes == 0 ? 0 : numel(x) / planes;
    const std::int64_t chunks =
        std::min(chunk_count(numel(x), kGrain, threads), std::max<std::int64_t>(planes, 1));
    return chunked(chunks, [this, channels, planes, plane](const ExecuteArgs& args, std::int64_t i,
                                                           std::int64_t count, std::byte*) {
      const ChunkRange range = chunk_range(planes, count, i);
      for (std::int64_t at = range.begin; at < range.end; ++at)
        run_plane(args, at, channels, plane);
    });
  }

 private:
  void run_plane(const ExecuteArgs& args, std::int64_t at, std::int64_t channels,
                 std::int64_t plane) const {
    const std::int64_t channel = at % channels;
    const std::int64_t low = std::max<std::int64_t>(0, channel - (size_ - 1) / 2);
    const std::int64_t high = std::min(channels - 1, channel + size_ / 2);
    LrnRow row;
    row.x = floats(args.inputs[0]) + at * plane;
    row.first_row = row.x - (channel - low) * plane;
    row.row_stride = plane;
    row.window = high - low + 1;
    row.count = static_cast<std::size_t>(plane);
    lrn_row(row, factors_, floats(args.outputs[0]) + at * plane);
  }

  std::int64_t size_;
  LrnFactors factors_;
};

}  // namespace

Result<std::unique_ptr<LoadedKernel>> load_lrn(const artefact::KernelSpec& spec, Constants) {
  if (spec.steps.size() != 1 || spec.inputs.size() != 1 || spec.outputs.size() != 1)
    return bad_spec(spec, "expected one step, an input and an output");
  const auto& attributes = spec.steps[0].attributes;
  const std::int64_t size = attributes.get_int("size", 1);
  if (size < 1 || spec.inputs[0].shape.size() < 2)
    return bad_spec(spec, fmt::format("expected a rank of 2 or more and a size of 1 or more, found "
                                      "rank {} and size {}",
                                      spec.inputs[0].shape.size(), size));
  LrnFactors factors;
  factors.scale = attributes.get_float("alpha", 1e-4F) / static_cast<float>(size);
  factors.beta = attributes.get_float("beta", 0.75F);
  factors.bias = attributes.get_float("bias", 1);
  // No tensor has as many channels: the window's bounds stay within range.
  return std::unique_ptr<LoadedKernel>(
      new LrnKernel(std::min(size, std::int64_t{1} << 31), factors));
}

}  // namespace tessera::backends::cpu
