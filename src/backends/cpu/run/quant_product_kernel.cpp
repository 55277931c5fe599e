// "simd.quant_product": a product of 8-bit matrices, row-major. Weights are panels packed by the
// compiler; a right operand computed at run time is packed by each chunk.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "backends/cpu/run/chunked_instance.h"
#include "backends/cpu/run/kernels.h"
#include "backends/cpu/run/quant_finish.h"
#include "backends/cpu/run/quant_product_plan.h"

namespace tessera::backends::cpu {
namespace {

constexpr std::int64_t kGatherBytes = 192 << 10;
constexpr std::int64_t kMaxRows = 96;

// Two dims of it, [depth, columns] or transposed, into panels of 16-bit numbers less the zero.
void pack_panels(const std::byte* b, DType dtype, std::int32_t zero, bool transposed,
                 const QuantProductPlan::Sizes& sizes, std::int16_t* panels) {
  const std::int64_t pairs = (sizes.depth + 1) / 2;
  const std::int64_t step_k = transposed ? 1 : sizes.columns;
  const std::int64_t step_n = transposed ? sizes.depth : 1;
  for (std::int64_t first = 0; first < sizes.columns; first += kPanelColumns) {
    for (std::int64_t p = 0; p < pairs; ++p) {
      for (std::int64_t c = 0; c < kPanelColumns; ++c) {
        for (std::int64_t k = 2 * p; k < 2 * p + 2; ++k) {
          const bool inside = k < sizes.depth && first + c < sizes.columns;
          const std::byte* at = b + (inside ? k * step_k + (first + c) * step_n : 0);
          const int element = dtype == DType::kInt8 ? *reinterpret_cast<const std::int8_t*>(at)
                                                    : *reinterpret_cast<const std::uint8_t*>(at);
          *panels++ = static_cast<std::int16_t>(inside ? element - zero : 0);
        }
      }
    }
  }
}

struct Cut {
  std::int64_t batch = 1, rows = 1, panels = 1;
};

Cut cut_for(const QuantProductPlan::Sizes& sizes, std::int64_t panels, bool packed, int threads) {
  Cut cut{sizes.batch, 1, 1};
  const std::int64_t work = sizes.batch * sizes.rows * sizes.depth * sizes.columns;
  if (threads <= 1 || work < 200000) return cut;
  const std::int64_t wanted = threads;
  if (sizes.batch < wanted)
    cut.rows = std::clamp<std::int64_t>(sizes.rows / 6, 1, wanted / sizes.batch);
  if (packed && cut.batch * cut.rows < wanted)
    cut.panels = std::clamp<std::int64_t>(wanted / (cut.batch * cut.rows), 1, panels);
  return cut;
}

class QuantProductKernel final : public LoadedKernel {
 public:
  QuantProductKernel(const artefact::KernelSpec& spec, Constants constants, QuantProductPlan plan)
      : plan_(std::move(plan)) {
    const OperandRef weights = operand_ref(spec, plan_.quant.weights);
    if (plan_.packed) {
      weights_ = constants[weights.index].data();
      weight_dims_ = *constant_dims(spec.constants[weights.index].shape);
      wide_ = spec.constants[weights.index].dtype == DType::kInt16;
    }
  }

  Result<std::unique_ptr<KernelInstance>> instantiate(const InstanceDims& dims,
                                                      int threads) const override;

 private:
  QuantProductPlan plan_;
  const std::byte* weights_ = nullptr;
  Dims weight_dims_;
  bool wide_ = true;
};

Result<std::unique_ptr<KernelInstance>> QuantProductKernel::instantiate(const InstanceDims& dims,
                                                                        int threads) const {
  const auto b_input = static_cast<std::size_t>(plan_.quant.weights);
  const auto a_input = static_cast<std::size_t>(plan_.quant.src.operand);
  TESSERA_ASSIGN(const QuantProductPlan::Sizes sizes,
                 plan_.sizes(dims.inputs[a_input],
                             plan_.packed ? weight_dims_ : dims.inputs[b_input], dims.outputs[0]));
  const std::int64_t panels = (sizes.columns + kPanelColumns - 1) / kPanelColumns;
  const std::int64_t words = (sizes.depth + 1) / 2 * 2;
  const std::int64_t block = std::clamp<std::int64_t>(
      kGatherBytes / (std::max<std::int64_t>(words, 1) * 2) / 6 * 6, 6,
      std::min<std::int64_t>(kMaxRows, std::max<std::int64_t>(sizes.rows, 6)));
  TESSERA_ASSIGN(QuantFinish finish, QuantFinish::make(plan_.quant, sizes.columns, block));
  const std::int64_t finish_bytes = finish.scratch_bytes();
  const Cut cut = cut_for(sizes, panels, plan_.packed, threads);
  const std::int64_t panel_bytes = words * kPanelColumns * (wide_ ? 2 : 1);
  const std::int64_t packed_bytes = plan_.packed ? 0 : panels * panel_bytes;
  const std::int64_t words_bytes = (block * words * 2 + 63) / 64 * 64;
  const std::int64_t sums_bytes = block * kPanelColumns * 4;
  auto body = [=, this, finish = std::move(finish)](const ExecuteArgs& args, std::int64_t chunk,
                                                    std::int64_t, std::byte* scratch) {
    const QuantTensor& src = plan_.quant.src;
    const std::int32_t zero = zero_of(src.params, args.inputs);
    const std::int64_t matrix = chunk / (cut.rows * cut.panels);
    const std::byte* a = args.inputs[a_input] + matrix * sizes.rows * sizes.depth;
    const std::byte* b = weights_;
    if (!plan_.packed) {
      auto* made = reinterpret_cast<std::int16_t*>(scratch);
      pack_panels(args.inputs[b_input] + matrix * sizes.depth * sizes.columns,
                  plan_.quant.weights_dtype, plan_.quant.weight_zeros[0], plan_.transposed, sizes,
                  made);
      b = scratch;
      scratch += packed_bytes;
    }
    auto* gathered = reinterpret_cast<std::int16_t*>(scratch);
    auto* sums = reinterpret_cast<std::int32_t*>(scratch + words_bytes);
    const ChunkRange rows = chunk_range(sizes.rows, cut.rows, chunk / cut.panels % cut.rows);
    const ChunkRange columns = chunk_range(panels, cut.panels, chunk % cut.panels);
    for (std::int64_t first = rows.begin; first < rows.end; first += block) {
      const std::int64_t count = std::min(block, rows.end - first);
      for (std::int64_t r = 0; r < count; ++r) {
        widen_centred(src.params.dtype, a + (first + r) * sizes.depth, zero, gathered + r * words,
                      static_cast<std::size_t>(sizes.depth));
        if (words != sizes.depth) gathered[r * words + sizes.depth] = 0;
      }
      for (std::int64_t p = columns.begin; p < columns.end; ++p) {
        panel_product(gathered, words, static_cast<std::size_t>(count), b + p * panel_bytes, wide_,
                      static_cast<std::size_t>(words / 2), sums);
        const std::int64_t column = p * kPanelColumns;
        finish.run(args,
                   {matrix * sizes.rows + first, count, column,
                    std::min(kPanelColumns, sizes.columns - column)},
                   sums, scratch + words_bytes + sums_bytes);
      }
    }
  };
  const std::int64_t scratch = packed_bytes + words_bytes + sums_bytes + finish_bytes;
  const bool empty = numel(dims.outputs[0]) == 0;
  return chunked(empty ? 0 : cut.batch * cut.rows * cut.panels, std::move(body), scratch);
}

}  // namespace

Result<QuantProductPlan::Sizes> QuantProductPlan::sizes(const Dims& a, const Dims& b,
                                                        const Dims& dst) const {
  if (a.size() < 2 || b.size() < 2 || dst.size() < 2)
    return fail(ErrorCode::kUnimplemented,
                fmt::format("expected matrices, found {} times {}", to_string(a), to_string(b)));
  Sizes result;
  result.rows = a[a.size() - 2];
  result.depth = a.back();
  result.columns = dst.back();
  const std::int64_t inner = b[b.size() - (transposed ? 1 : 2)];
  const std::int64_t outer = b[b.size() - (transposed ? 2 : 1)];
  if (inner != result.depth || outer != result.columns)
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("expected operands that agree in the inner size, found {} and {}",
                            to_string(a), to_string(b)));
  result.batch = numel(Dims(a.begin(), a.end() - 2));
  if (numel(Dims(b.begin(), b.end() - 2)) == 1 && a.size() >= b.size()) {
    result.rows *= result.batch;
    result.batch = 1;
    return result;
  }
  if (Dims(a.begin(), a.end() - 2) == Dims(b.begin(), b.end() - 2)) return result;
  return fail(ErrorCode::kUnimplemented,
              fmt::format("expected matrices of equal leading sizes, found {} times {}",
                          to_string(a), to_string(b)));
}

Result<QuantProductPlan> plan_quant_product(const artefact::KernelSpec& spec, Constants constants) {
  QuantProductPlan plan;
  TESSERA_ASSIGN(plan.quant, plan_quantised(spec, constants));
  if (plan.quant.kind != QuantPlan::Kind::kProduct)
    return bad_spec(spec, "expected a quantised product");
  const auto& step = spec.steps[plan.quant.anchor];
  const auto refused = [&](std::string_view text) {
    return fail(ErrorCode::kUnimplemented, fmt::format("{}: {}", step.op_type, text));
  };
  if (step.attributes.get_int("transA", 0) != 0)
    return refused("attribute 'transA': expected 0, found 1");
  if (operand_ref(spec, plan.quant.src.operand).kind != OperandRef::Kind::kInput)
    return refused("input 'A': expected one computed at run time, found a constant");
  plan.transposed = step.attributes.get_int("transB", 0) != 0;
  plan.packed = is_constant(spec, plan.quant.weights);
  const auto* weights = operand_decl(spec, plan.quant.weights);
  if (weights == nullptr) return bad_spec(spec, "expected weights from outside");
  if (plan.packed && weights->shape.size() != 2)
    return refused(fmt::format("weights: expected rank 2, found {}", weights->shape.size()));
  if (!plan.packed && plan.quant.weight_zeros.size() != 1)
    return refused("weights computed at run time: expected one zero point");
  return plan;
}

Result<std::unique_ptr<LoadedKernel>> load_quant_product(const artefact::KernelSpec& spec,
                                                         Constants constants) {
  TESSERA_ASSIGN(QuantProductPlan plan, plan_quant_product(spec, constants));
  return std::unique_ptr<LoadedKernel>(new QuantProductKernel(spec, constants, std::move(plan)));
}

}  // namespace tessera::backends::cpu
