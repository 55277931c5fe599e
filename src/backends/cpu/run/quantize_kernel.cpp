// "simd.quantize": QuantizeLinear and DequantizeLinear of 8-bit tensors, with scales for the whole
// tensor or for each index of an axis. "simd.dynamic_quantize": DynamicQuantizeLinear.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "backends/cpu/run/chunked_instance.h"
#include "backends/cpu/run/kernels.h"
#include "backends/cpu/run/physical.h"
#include "backends/cpu/run/quant_simd.h"
#include "backends/cpu/run/quantize_plan.h"

namespace tessera::backends::cpu {
namespace {

constexpr std::int64_t kGrain = 32768;

class QuantizeKernel final : public LoadedKernel {
 public:
  QuantizeKernel(artefact::KernelSpec spec, Constants constants, QuantizePlan plan)
      : spec_(std::move(spec)), constants_(constants.begin(), constants.end()), plan_(plan) {}

  Result<std::unique_ptr<KernelInstance>> instantiate(const InstanceDims& dims,
                                                      int threads) const override {
    const Dims& shape = dims.outputs[0];
    const AxisSplit split = plan_.axis ? split_at_axis(spec_.outputs[0].layout, shape, *plan_.axis)
                                       : AxisSplit{1, 1, numel(shape)};
    const std::int64_t count = numel(shape);
    return chunked(
        count == 0 ? 0 : chunk_count(count, kGrain, threads),
        [=, this](const ExecuteArgs& args, std::int64_t chunk, std::int64_t chunks, std::byte*) {
          const ChunkRange range = chunk_range(count, chunks, chunk, 64);
          run(args, split, range);
        });
  }

 private:
  const std::byte* data(std::int32_t number, const ExecuteArgs& args) const {
    const OperandRef ref = operand_ref(spec_, number);
    if (ref.kind == OperandRef::Kind::kOmitted) return nullptr;
    return ref.kind == OperandRef::Kind::kInput ? args.inputs[ref.index]
                                                : constants_[ref.index].data();
  }

  std::int32_t zero_at(const std::byte* zeros, std::int64_t index) const {
    if (zeros == nullptr) return 0;
    if (plan_.dtype == DType::kInt32) return reinterpret_cast<const std::int32_t*>(zeros)[index];
    return plan_.dtype == DType::kInt8 ? reinterpret_cast<const std::int8_t*>(zeros)[index]
                                       : reinterpret_cast<const std::uint8_t*>(zeros)[index];
  }

  // Runs of one scale.
  void run(const ExecuteArgs& args, const AxisSplit& split, ChunkRange range) const {
    const std::byte* x = data(plan_.x, args);
    const float* scales = floats(data(plan_.scale, args));
    const std::byte* zeros = data(plan_.zero, args);
    std::byte* y = args.outputs[0];
    while (range.begin < range.end) {
      const std::int64_t index = range.begin / split.inner % split.axis;
      const std::int64_t end = std::min(range.end, (range.begin / split.inner + 1) * split.inner);
      const Piece piece{1, static_cast<std::size_t>(end - range.begin), 0, 0};
      if (plan_.quantizes) {
        quantize(plan_.dtype, floats(x) + range.begin, scales[index], zero_at(zeros, index),
                 y + range.begin, piece);
      } else if (plan_.dtype == DType::kInt32) {
        const std::int32_t zero = zero_at(zeros, index);
        const auto* words = reinterpret_cast<const std::int32_t*>(x);
        std::transform(words + range.begin, words + end, floats(y) + range.begin,
                       [&](std::int32_t word) {
                         return static_cast<float>(std::int64_t{word} - zero) * scales[index];
                       });
      } else {
        dequantize(plan_.dtype, x + range.begin, zero_at(zeros, index), scales[index],
                   floats(y) + range.begin, piece);
      }
      range.begin = end;
    }
  }

  artefact::KernelSpec spec_;
  std::vector<std::span<const std::byte>> constants_;
  QuantizePlan plan_;
};

class DynamicQuantizeKernel final : public LoadedKernel {
 public:
  Result<std::unique_ptr<KernelInstance>> instantiate(const InstanceDims& dims,
                                                      int /*threads*/) const override {
    const auto count = static_cast<std::size_t>(numel(dims.inputs[0]));
    return chunked(1, [=](const ExecuteArgs& args, std::int64_t, std::int64_t, std::byte*) {
      const float* x = floats(args.inputs[0]);
      const FloatRange range = range_with_zero(x, count);
      const float scale = range.low == range.high ? 1.0F : (range.high - range.low) / 255.0F;
      const float point = std::nearbyint(-range.low / scale);
      const auto zero =  // 0 where the range is infinite
          static_cast<std::uint8_t>(std::isnan(point) ? 0.0F : std::clamp(point, 0.0F, 255.0F));
      quantize(DType::kUInt8, x, scale, zero, args.outputs[0], {1, count, 0, 0});
      *floats(args.outputs[1]) = scale;
      args.outputs[2][0] = std::byte{zero};
    });
  }
};

}  // namespace

Status check_precision(const artefact::KernelStep& step) {
  const std::int64_t precision = step.attributes.get_int("precision", 0);
  if (precision == 0 || precision == static_cast<std::int64_t>(DType::kFp32)) return {};
  return fail(ErrorCode::kUnimplemented,
              fmt::format("{}: attribute 'precision': expected 0 or 1 (fp32), found {}",
                          step.op_type, precision));
}

Result<QuantizePlan> plan_quantize(const artefact::KernelSpec& spec) {
  if (spec.steps.size() != 1 || spec.outputs.size() != 1)
    return bad_spec(spec, "expected one step and one output");
  const auto& step = spec.steps[0];
  const auto refused = [&](std::string text) {
    return fail(ErrorCode::kUnimplemented, fmt::format("{}: {}", step.op_type, text));
  };
  QuantizePlan plan;
  plan.quantizes = step.op_type == "QuantizeLinear";
  plan.x = step_input(step, 0);
  plan.scale = step_input(step, 1);
  plan.zero = step_input(step, 2);
  const auto* x = operand_decl(spec, plan.x);
  const auto* scale = operand_decl(spec, plan.scale);
  if (x == nullptr || scale == nullptr) return bad_spec(spec, "expected operands from outside");
  plan.dtype = plan.quantizes ? spec.outputs[0].dtype : x->dtype;
  const DType real = plan.quantizes ? x->dtype : spec.outputs[0].dtype;
  const bool words = plan.dtype == DType::kInt32 && !plan.quantizes;  // a bias
  if (!words && plan.dtype != DType::kInt8 && plan.dtype != DType::kUInt8)
    return refused(fmt::format("expected int8 or uint8, found {}", to_string(plan.dtype)));
  if (real != DType::kFp32 || scale->dtype != DType::kFp32)
    return refused(fmt::format("expected fp32, found {}",
                               to_string(real == DType::kFp32 ? scale->dtype : real)));
  TESSERA_TRY(check_precision(step));
  if (const auto block = step.attributes.get_int("block_size", 0); block != 0)
    return refused(fmt::format("attribute 'block_size': expected 0, found {}", block));
  const auto scales = constant_dims(scale->shape);
  if (!scales)
    return refused(
        fmt::format("input 'scale': expected known sizes, found {}", to_string(scale->shape)));
  if (numel(*scales) == 1) return plan;
  const auto rank = static_cast<std::int64_t>(x->shape.size());
  std::int64_t axis = step.attributes.get_int("axis", 1);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank)
    return refused(fmt::format("attribute 'axis': expected 0 to {}, found {}", rank - 1, axis));
  plan.axis = static_cast<std::size_t>(axis);
  return plan;
}

Result<std::unique_ptr<LoadedKernel>> load_quantize(const artefact::KernelSpec& spec,
                                                    Constants constants) {
  TESSERA_ASSIGN(const QuantizePlan plan, plan_quantize(spec));
  return std::unique_ptr<LoadedKernel>(new QuantizeKernel(spec, constants, plan));
}

Result<std::unique_ptr<LoadedKernel>> load_dynamic_quantize(const artefact::KernelSpec& spec,
                                                            Constants /*constants*/) {
  if (spec.inputs.size() != 1 || spec.outputs.size() != 3)
    return bad_spec(spec, "expected one input and three outputs");
  return std::unique_ptr<LoadedKernel>(new DynamicQuantizeKernel());
}

}  // namespace tessera::backends::cpu
