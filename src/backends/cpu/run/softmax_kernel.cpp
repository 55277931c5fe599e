// "simd.softmax": Softmax and LogSoftmax along one axis of a row-major tensor;
// "simd.layer_normalization" along the last axes, LayerNormalization and RMSNormalization.

#include <algorithm>
#include <cmath>

#include "backends/cpu/run/chunked_instance.h"
#include "backends/cpu/run/elementwise_simd.h"
#include "backends/cpu/run/kernels.h"
#include "backends/cpu/run/physical.h"
#include "backends/cpu/run/softmax_row.h"

namespace tessera::backends::cpu {
namespace {

constexpr std::int64_t kGrain = 8192;

// Columns side by side: `axis` rows of `inner` elements. `scratch` holds two rows.
void softmax_columns(const float* x, float* y, std::int64_t axis, std::size_t inner, float* scratch,
                     bool log) {
  float* top = scratch;
  float* total = scratch + inner;
  const auto at = [&](auto* base, std::int64_t row) {
    return base + row * static_cast<std::int64_t>(inner);
  };
  std::copy_n(x, inner, top);
  std::fill_n(total, inner, 0.0F);
  for (std::int64_t row = 1; row < axis; ++row) simd_accumulate_max(at(x, row), top, inner);
  for (std::int64_t row = 0; row < axis; ++row) {
    run_simd(SimdOp::kSub, at(x, row), top, at(y, row), inner, 0, 0);
    if (!log) {
      run_simd(SimdOp::kExp, at(y, row), nullptr, at(y, row), inner, 0, 0);
      simd_accumulate(at(y, row), total, inner);
    } else {
      for (std::size_t i = 0; i < inner; ++i) total[i] += std::exp(at(y, row)[i]);
    }
  }
  if (log) run_simd(SimdOp::kLog, total, nullptr, total, inner, 0, 0);
  for (std::int64_t row = 0; row < axis; ++row)
    run_simd(log ? SimdOp::kSub : SimdOp::kDiv, at(y, row), total, at(y, row), inner, 0, 0);
}

class SoftmaxKernel final : public LoadedKernel {
 public:
  SoftmaxKernel(std::size_t axis, bool log) : axis_(axis), log_(log) {}
  Result<std::unique_ptr<KernelInstance>> instantiate(const InstanceDims& dims,
                                                      int threads) const override {
    const AxisSplit split = split_at_axis({}, dims.inputs[0], axis_);
    const std::int64_t chunks = std::min(chunk_count(numel(dims.inputs[0]), kGrain, threads),
                                         std::max<std::int64_t>(split.outer, 1));
    const bool log = log_;
    const std::int64_t scratch =
        split.inner == 1 ? 0 : split.inner * 2 * static_cast<std::int64_t>(sizeof(float));
    return chunked(
        chunks,
        [=](const ExecuteArgs& args, std::int64_t i, std::int64_t count, std::byte* own) {
          const ChunkRange range = chunk_range(split.outer, count, i);
          const std::int64_t row = split.axis * split.inner;
          if (row == 0) return;
          for (std::int64_t at = range.begin; at < range.end; ++at) {
            const float* x = floats(args.inputs[0]) + at * row;
            float* y = floats(args.outputs[0]) + at * row;
            if (split.inner == 1) {
              softmax_row(x, y, static_cast<std::size_t>(row), log);
            } else {
              softmax_columns(x, y, split.axis, static_cast<std::size_t>(split.inner), floats(own),
                              log);
            }
          }
        },
        scratch);
  }

 private:
  std::size_t axis_;
  bool log_;
};

class LayerNormalizationKernel final : public LoadedKernel {
 public:
  LayerNormalizationKernel(artefact::KernelSpec spec, Constants constants, std::size_t axis)
      : spec_(std::move(spec)),
        constants_(constants.begin(), constants.end()),
        axis_(axis),
        centred_(spec_.steps[0].op_type != "RMSNormalization"),
        epsilon_(spec_.steps[0].attributes.get_float("epsilon", 1e-5F)) {}

  Result<std::unique_ptr<KernelInstance>> instantiate(const InstanceDims& dims,
                                                      int threads) const override {
    std::int64_t rows = 1;
    std::int64_t row = 1;
    for (std::size_t d = 0; d < dims.inputs[0].size(); ++d)
      (d < axis_ ? rows : row) *= dims.inputs[0][d];
    const std::int64_t chunks =
        std::min(chunk_count(rows * row, kGrain, threads), std::max<std::int64_t>(rows, 1));
    return chunked(chunks, [this, rows, row](const ExecuteArgs& args, std::int64_t i,
                                             std::int64_t count, std::byte*) {
      const ChunkRange range = chunk_range(rows, count, i);
      const auto width = static_cast<std::size_t>(row);
      const float* scale = operand(1, args);
      const float* bias = operand(2, args);
      for (std::int64_t at = range.begin; at < range.end; ++at) {
        const float* x = floats(args.inputs[0]) + at * row;
        float* y = floats(args.outputs[0]) + at * row;
        const float mean = centred_ ? simd_sum(x, width) / static_cast<float>(row) : 0;
        const float factor =
            1 / std::sqrt(simd_sum_of_squares(x, width, mean) / static_cast<float>(row) + epsilon_);
        // Centred before it is scaled: x * factor - mean * factor would cancel.
        if (centred_) run_simd(SimdOp::kScaleShift, x, nullptr, y, width, 1, -mean);
        run_simd(SimdOp::kScaleShift, centred_ ? y : x, nullptr, y, width, factor, 0);
        if (scale != nullptr) run_simd(SimdOp::kMul, y, scale, y, width, 0, 0);
        if (bias != nullptr) run_simd(SimdOp::kAdd, y, bias, y, width, 0, 0);
      }
    });
  }

 private:
  const float* operand(std::size_t index, const ExecuteArgs& args) const {
    const OperandRef ref = operand_ref(spec_, step_input(spec_.steps[0], index));
    if (ref.kind == OperandRef::Kind::kOmitted) return nullptr;
    return ref.kind == OperandRef::Kind::kInput ? floats(args.inputs[ref.index])
                                                : floats(constants_[ref.index].data());
  }

  artefact::KernelSpec spec_;
  std::vector<std::span<const std::byte>> constants_;
  std::size_t axis_;
  bool centred_;  // RMSNormalization is not
  float epsilon_;
};

Result<std::size_t> axis_of(const artefact::KernelSpec& spec) {
  if (spec.steps.size() != 1 || spec.inputs.empty() || spec.outputs.empty())
    return bad_spec(spec, "expected one step, an input and an output");
  const auto rank = static_cast<std::int64_t>(spec.inputs[0].shape.size());
  const std::int64_t axis = spec.steps[0].attributes.get_int("axis", -1);
  if (axis < -rank || axis >= rank)
    return bad_spec(spec, "axis: expected a value within the rank, found " + std::to_string(axis));
  return static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
}

}  // namespace

Result<std::unique_ptr<LoadedKernel>> load_softmax(const artefact::KernelSpec& spec, Constants) {
  TESSERA_ASSIGN(const std::size_t axis, axis_of(spec));
  return std::unique_ptr<LoadedKernel>(
      new SoftmaxKernel(axis, spec.steps[0].op_type == "LogSoftmax"));
}

Result<std::unique_ptr<LoadedKernel>> load_layer_normalization(const artefact::KernelSpec& spec,
                                                               Constants constants) {
  TESSERA_ASSIGN(const std::size_t axis, axis_of(spec));
  return std::unique_ptr<LoadedKernel>(new LayerNormalizationKernel(spec, constants, axis));
}

}  // namespace tessera::backends::cpu
