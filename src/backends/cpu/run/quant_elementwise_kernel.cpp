// "simd.quant_elementwise": elementwise steps between 8-bit tensors of one shape. A computation of
// one such tensor is a table of its 256 values; others go through real numbers, piece by piece.

#include <algorithm>
#include <array>
#include <numeric>

#include "backends/cpu/run/chunked_instance.h"
#include "backends/cpu/run/kernels.h"
#include "backends/cpu/run/physical.h"
#include "backends/cpu/run/quant_plan.h"
#include "backends/cpu/run/quant_simd.h"

namespace tessera::backends::cpu {
namespace {

constexpr std::int64_t kPiece = 1024;
constexpr std::int64_t kGrain = 16384;

// The steps, ready for pieces of up to kPiece elements.
class Steps {
 public:
  Steps(const QuantPlan& plan, BoundProgram program) : plan_(&plan), program_(std::move(program)) {}

  [[nodiscard]] std::int64_t scratch_bytes() const {
    const auto tiles = static_cast<std::int64_t>(plan_->program->tensors.size()) + 1;
    return tiles * kPiece * static_cast<std::int64_t>(sizeof(float)) + program_.scratch_bytes();
  }

  // `inputs`: where each tensor's piece begins.
  void run(const std::byte* const* inputs, std::byte* output, std::int64_t count,
           std::byte* scratch) const {
    const auto& tensors = plan_->program->tensors;
    const std::byte* tiles[kMaxQuantTensors] = {};
    const Piece piece{1, static_cast<std::size_t>(count), 0, 0};
    float* next = floats(scratch);
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      tiles[i] = inputs[i];
      if (!tensors[i].quantised) continue;
      const QuantParams& params = tensors[i].params;
      dequantize(params.dtype, inputs[i], params.zero, params.scale, next, piece);
      tiles[i] = reinterpret_cast<std::byte*>(next);
      next += kPiece;
    }
    const auto& result = plan_->result;
    std::byte* real = result ? reinterpret_cast<std::byte*>(next) : output;
    std::byte* outputs[] = {real};
    program_.run({{tiles, tensors.size()}, outputs, nullptr, nullptr}, 0, count, next + kPiece);
    if (result) quantize(result->dtype, floats(real), result->scale, result->zero, output, piece);
  }

 private:
  const QuantPlan* plan_;
  BoundProgram program_;
};

class QuantElementwiseKernel final : public LoadedKernel {
 public:
  explicit QuantElementwiseKernel(QuantPlan plan) : plan_(std::move(plan)) {}

  Result<std::unique_ptr<KernelInstance>> instantiate(const InstanceDims& dims,
                                                      int threads) const override {
    TESSERA_ASSIGN(BoundProgram program, plan_.program->bind(kPiece));
    Steps steps(plan_, std::move(program));
    const std::int64_t count = numel(dims.outputs[0]);
    const auto& tensors = plan_.program->tensors;
    if (tensors.size() == 1 && tensors[0].quantised && plan_.result)
      return table(steps, static_cast<std::size_t>(tensors[0].operand), count, threads);
    const std::int64_t scratch = steps.scratch_bytes();
    auto body = [=, this, steps = std::move(steps)](const ExecuteArgs& args, std::int64_t chunk,
                                                    std::int64_t chunks, std::byte* own) {
      const ChunkRange range = chunk_range(count, chunks, chunk, 64);
      for (std::int64_t at = range.begin; at < range.end; at += kPiece) {
        const std::byte* inputs[kMaxQuantTensors] = {};
        for (std::size_t i = 0; i < plan_.program->tensors.size(); ++i) {
          const QuantTensor& tensor = plan_.program->tensors[i];
          inputs[i] = args.inputs[static_cast<std::size_t>(tensor.operand)] +
                      at * (tensor.quantised ? 1 : 4);
        }
        steps.run(inputs, args.outputs[0] + at * (plan_.result ? 1 : 4),
                  std::min(kPiece, range.end - at), own);
      }
    };
    return chunked(chunk_count(count, kGrain, threads), std::move(body), scratch);
  }

 private:
  static std::unique_ptr<KernelInstance> table(const Steps& steps, std::size_t source,
                                               std::int64_t count, int threads) {
    std::array<std::byte, 256> elements{};
    for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<std::byte>(i);
    std::array<std::byte, 256> made{};
    std::vector<std::byte> scratch(static_cast<std::size_t>(steps.scratch_bytes()));
    const std::byte* input = elements.data();
    steps.run(&input, made.data(), 256, scratch.data());
    return chunked(
        chunk_count(count, 4 * kGrain, threads),
        [=](const ExecuteArgs& args, std::int64_t chunk, std::int64_t chunks, std::byte*) {
          const ChunkRange range = chunk_range(count, chunks, chunk, 64);
          const std::byte* from = args.inputs[source];
          std::transform(
              from + range.begin, from + range.end, args.outputs[0] + range.begin,
              [&](std::byte element) { return made[std::to_integer<std::size_t>(element)]; });
        });
  }

  QuantPlan plan_;
};

}  // namespace

Result<std::unique_ptr<LoadedKernel>> load_quant_elementwise(const artefact::KernelSpec& spec,
                                                             Constants constants) {
  TESSERA_ASSIGN(QuantPlan plan, plan_quantised(spec, constants));
  if (plan.kind != QuantPlan::Kind::kElementwise || !plan.program)
    return bad_spec(spec, "expected elementwise steps between quantised tensors");
  for (const QuantTensor& tensor : plan.program->tensors) {
    if (operand_ref(spec, tensor.operand).kind != OperandRef::Kind::kInput ||
        tensor.params.zero_operand >= 0)
      return bad_spec(spec, "expected tensors computed at run time with constant zero points");
  }
  return std::unique_ptr<LoadedKernel>(new QuantElementwiseKernel(std::move(plan)));
}

}  // namespace tessera::backends::cpu
