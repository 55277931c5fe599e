#include "backends/cpu/compile/cpu_device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "backends/cpu/compile/families.h"
#include "backends/cpu/run/cpu_features.h"
#include "backends/cpu/run/elementwise_program.h"
#include "backends/cpu/run/onednn_shim.h"
#include "base/processors.h"

namespace tessera::backends {
namespace {

using cpu::Family;

struct OperatorEntry {
  std::string_view op;
  const Family& (*family)();
};

// Operators of ai.onnx that are not elementwise, by name. What is elementwise stands in
// elementwise_program.h and scalar_ops.h.
constexpr std::array kOperators = {
    OperatorEntry{"Conv", cpu::conv_family},
    OperatorEntry{"ConvTranspose", cpu::conv_family},
    OperatorEntry{"Gemm", cpu::product_family},
    OperatorEntry{"MatMul", cpu::product_family},
    OperatorEntry{"ConvInteger", cpu::quant_family},
    OperatorEntry{"QLinearConv", cpu::quant_family},
    OperatorEntry{"MatMulInteger", cpu::quant_family},
    OperatorEntry{"QLinearMatMul", cpu::quant_family},
    OperatorEntry{"QuantizeLinear", cpu::quantize_family},
    OperatorEntry{"DequantizeLinear", cpu::quantize_family},
    OperatorEntry{"DynamicQuantizeLinear", cpu::dynamic_quantize_family},
    OperatorEntry{"MaxPool", cpu::pool_family},
    OperatorEntry{"AveragePool", cpu::pool_family},
    OperatorEntry{"GlobalAveragePool", cpu::global_pool_family},
    OperatorEntry{"GlobalMaxPool", cpu::global_pool_family},
    OperatorEntry{"BatchNormalization", cpu::batch_normalization_family},
    OperatorEntry{"LayerNormalization", cpu::layer_normalization_family},
    OperatorEntry{"RMSNormalization", cpu::layer_normalization_family},
    OperatorEntry{"LRN", cpu::lrn_family},
    OperatorEntry{"Attention", cpu::attention_family},
    OperatorEntry{"RotaryEmbedding", cpu::rotary_family},
    OperatorEntry{"LSTM", cpu::recurrent_family},
    OperatorEntry{"GRU", cpu::recurrent_family},
    OperatorEntry{"RNN", cpu::recurrent_family},
    OperatorEntry{"Softmax", cpu::softmax_family},
    OperatorEntry{"LogSoftmax", cpu::softmax_family},
    OperatorEntry{"ReduceSum", cpu::reduce_family},
    OperatorEntry{"ReduceMean", cpu::reduce_family},
    OperatorEntry{"ReduceMax", cpu::reduce_family},
    OperatorEntry{"ReduceMin", cpu::reduce_family},
    OperatorEntry{"ReduceProd", cpu::reduce_family},
    OperatorEntry{"ReduceSumSquare", cpu::reduce_family},
    OperatorEntry{"ReduceL1", cpu::reduce_family},
    OperatorEntry{"ReduceL2", cpu::reduce_family},
    OperatorEntry{"ReduceLogSum", cpu::reduce_family},
    OperatorEntry{"ReduceLogSumExp", cpu::reduce_family},
    OperatorEntry{"ArgMax", cpu::reduce_family},
    OperatorEntry{"ArgMin", cpu::reduce_family},
    OperatorEntry{"Reshape", cpu::view_family},
    OperatorEntry{"Flatten", cpu::view_family},
    OperatorEntry{"Squeeze", cpu::view_family},
    OperatorEntry{"Unsqueeze", cpu::view_family},
    OperatorEntry{"Identity", cpu::view_family},
    OperatorEntry{"Dropout", cpu::view_family},
    OperatorEntry{"Concat", cpu::concat_family},
    OperatorEntry{"Split", cpu::split_family},
    OperatorEntry{"Transpose", cpu::strided_family},
    OperatorEntry{"Slice", cpu::strided_family},
    OperatorEntry{"Pad", cpu::strided_family},
    OperatorEntry{"Expand", cpu::strided_family},
    OperatorEntry{"Tile", cpu::strided_family},
    OperatorEntry{"DepthToSpace", cpu::strided_family},
    OperatorEntry{"SpaceToDepth", cpu::strided_family},
    OperatorEntry{"Gather", cpu::gather_family},
    OperatorEntry{"Resize", cpu::resize_family},
    OperatorEntry{"Cast", cpu::scalar_elementwise_family},
    OperatorEntry{"CastLike", cpu::scalar_elementwise_family},
    OperatorEntry{"Where", cpu::scalar_elementwise_family},
    OperatorEntry{"Equal", cpu::scalar_elementwise_family},
    OperatorEntry{"Less", cpu::scalar_elementwise_family},
    OperatorEntry{"LessOrEqual", cpu::scalar_elementwise_family},
    OperatorEntry{"Greater", cpu::scalar_elementwise_family},
    OperatorEntry{"GreaterOrEqual", cpu::scalar_elementwise_family},
    OperatorEntry{"And", cpu::scalar_elementwise_family},
    OperatorEntry{"Or", cpu::scalar_elementwise_family},
    OperatorEntry{"Xor", cpu::scalar_elementwise_family},
    OperatorEntry{"Not", cpu::scalar_elementwise_family},
    OperatorEntry{"IsNaN", cpu::scalar_elementwise_family},
    OperatorEntry{"Mod", cpu::scalar_elementwise_family},
};

bool all_fp32(const cpu::SpecDraft& draft) {
  for (const auto* decls : {&draft.spec.inputs, &draft.spec.constants, &draft.spec.outputs}) {
    for (const auto& decl : *decls) {
      if (decl.dtype != DType::kFp32) return false;
    }
  }
  return true;
}

// Several steps with DequantizeLinear or QuantizeLinear among them, or pooling of bytes.
bool is_quantised(const artefact::KernelSpec& spec) {
  const auto& op = spec.steps[0].op_type;
  if (spec.steps.size() == 1) {
    const DType dtype = spec.inputs.empty() ? DType::kUndefined : spec.inputs[0].dtype;
    return (op == "MaxPool" || op == "GlobalMaxPool") &&
           (dtype == DType::kInt8 || dtype == DType::kUInt8);
  }
  return std::any_of(spec.steps.begin(), spec.steps.end(), [](const auto& step) {
    return step.op_type == "DequantizeLinear" || step.op_type == "QuantizeLinear";
  });
}

// The item as kernels here see it.
Result<cpu::SpecDraft> draft_of(const ir::WorkItem& item) {
  TESSERA_ASSIGN(auto draft, cpu::draft_spec(item));
  if (draft.spec.steps.size() > 1) cpu::strip_quantised_movement(draft);
  return draft;
}

const Family* family_of(const cpu::SpecDraft& draft) {
  if (is_quantised(draft.spec)) return &cpu::quant_family();
  // What stands before a re-assembled operator belongs to it.
  const auto& last = draft.spec.steps.back();
  const bool leads = last.op_type == "Attention" || last.op_type == "RotaryEmbedding";
  const auto& step = leads ? last : draft.spec.steps[0];
  if (step.domain.empty()) {
    for (const OperatorEntry& entry : kOperators) {
      if (entry.op == step.op_type) return &entry.family();
    }
  }
  if (!cpu::is_simd_elementwise(step.domain, step.op_type)) return nullptr;
  return all_fp32(draft) ? &cpu::elementwise_family() : &cpu::scalar_elementwise_family();
}

// Conservative figures: 2 GHz with two fused multiply-adds a cycle (one where vectors are long and
// clocks drop), 6 GB/s of memory a core up to 20 GB/s.
DeviceRates default_rates(int threads) {
  const double per_thread = cpu::isa() == cpu::Isa::kAvx512 ? 64
                            : cpu::isa() == cpu::Isa::kAvx2 ? 32
                                                            : 12;
  DeviceRates rates;
  rates.default_gflops = per_thread * threads;
  rates.gflops[DType::kFp32] = rates.default_gflops;
  // Exact sums of 16-bit products: twice the lanes, and an addition beside each product. Plain
  // loops where there are no wide vectors.
  rates.gflops[DType::kInt8] =
      cpu::isa() == cpu::Isa::kSse41 ? 2.0 * threads : rates.default_gflops;
  rates.memory_gb_per_s = std::min(20.0, 6.0 + 2.0 * threads);
  rates.launch_us = 0;
  rates.sync_us = 0;
  rates.link_latency_us = 0;
  rates.unified = true;
  return rates;
}

class CpuDevice final : public CompileDevice {
 public:
  CpuDevice() {
    info_.name = "cpu";
    info_.backend = "cpu";
    info_.memory = "host";
    info_.rates = default_rates(usable_processors());
  }
  explicit CpuDevice(DeviceRates measured) : CpuDevice() {
    info_.rates = std::move(measured);
    info_.rates_measured = true;
  }

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }

  Offers offers(const ir::WorkItem& item, const SymbolBindings& point,
                const OfferOptions& options) override {
    const std::string op = item.nodes[0]->op->qualified_name();
    auto draft = draft_of(item);
    const Family* family = draft ? family_of(*draft) : nullptr;
    // Most kernels are made for sizes that are known before they run.
    if (item.is_late && family != &cpu::recurrent_family())
      return cpu::refuse(fmt::format("{}: the sizes of its outputs depend on data", op));
    if (!draft) return cpu::refuse(draft.error());
    if (family == nullptr)
      return cpu::refuse(fmt::format("{}: expected an operator with a cpu kernel, found none", op));
    if (draft->spec.steps.size() > 1 && family != &cpu::conv_family() &&
        family != &cpu::product_family() && family != &cpu::elementwise_family() &&
        family != &cpu::quant_family() && family != &cpu::attention_family() &&
        family != &cpu::rotary_family()) {
      return cpu::refuse(
          fmt::format("{}: expected a convolution, product or elementwise operators to fuse",
                      cpu::describe_steps(draft->spec)));
    }
    // Dequantised weights stay nodes in a group that no cover takes; other constants are folded.
    if (draft->spec.inputs.empty() && family != &cpu::quantize_family())
      return cpu::refuse(
          fmt::format("{}: expected an input computed at run time, found constants alone", op));
    const auto dims = item.is_late ? Result<InstanceDims>(cpu::late_dims(item, point))
                                   : cpu::dims_at(draft->spec, point);
    if (!dims) return cpu::refuse(dims.error());
    Offers result = family->offer({*draft, *dims, options});
    if (result.candidates.empty() && result.refusal.empty())
      result.refusal = fmt::format("{}: expected a layout with a kernel, found none", op);
    return result;
  }

  Result<CompiledKernel> compile(const ir::WorkItem& item, const Candidate& candidate) override {
    TESSERA_ASSIGN(auto draft, draft_of(item));
    const Family* family = family_of(draft);
    if (family == nullptr || candidate.inputs.size() != item.inputs.size()) {
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("cpu: expected a candidate of its own for {}, found '{}'",
                              cpu::describe_steps(draft.spec), candidate.kernel));
    }
    draft.spec.kernel = candidate.kernel;
    draft.spec.kernel_version = candidate.kernel_version;
    draft.spec.options = candidate.options;
    cpu::apply_forms(draft, candidate);
    TESSERA_TRY(family->finish(draft, candidate));
    return CompiledKernel{std::move(draft.spec), std::move(draft.constants)};
  }

  Offers conversion(const TensorForm& from, const TensorForm& to, const Shape& shape,
                    const SymbolBindings& point) override {
    const auto small = [](DType dtype) { return dtype == DType::kFp16 || dtype == DType::kBf16; };
    const bool casts = (from.dtype == DType::kFp32 && small(to.dtype)) ||
                       (small(from.dtype) && to.dtype == DType::kFp32);
    if (from.dtype != to.dtype && !casts) {
      return cpu::refuse(
          fmt::format("conversion: expected fp32 to or from fp16 or bf16, found {} to {}",
                      to_string(from.dtype), to_string(to.dtype)));
    }
    if (bits_of(from.dtype) < 8)
      return cpu::refuse(fmt::format("conversion: expected elements of whole bytes, found {}",
                                     to_string(from.dtype)));
    const auto dims = evaluate(shape, point);
    if (!dims) return cpu::refuse(dims.error());
    Candidate candidate;
    candidate.kernel = "cpu.convert";
    candidate.inputs = {from};
    candidate.outputs = {to};
    candidate.bytes_moved = static_cast<double>(layout_nbytes(from.layout, from.dtype, *dims) +
                                                layout_nbytes(to.layout, to.dtype, *dims));
    candidate.efficiency = 0.25;
    return Offers{{std::move(candidate)}, ""};
  }

  Result<CompiledKernel> compile_conversion(const TensorForm& from, const TensorForm& to,
                                            const Shape& shape,
                                            const Candidate& candidate) override {
    CompiledKernel result;
    result.spec.backend = "cpu";
    result.spec.kernel = candidate.kernel;
    result.spec.kernel_version = candidate.kernel_version;
    result.spec.inputs = {{from.dtype, from.layout, shape}};
    result.spec.outputs = {{to.dtype, to.layout, shape}};
    result.spec.output_operands = {0};
    return result;
  }

  [[nodiscard]] std::map<std::string, std::string> identity() const override {
    return {{"cpu.isa", cpu::isa_name()},
            {"cpu.model", cpu::processor_name()},
            {"cpu.onednn", cpu::onednn_version()},
            {"cpu.highway", cpu::highway_version()}};
  }

 private:
  DeviceInfo info_;
};

}  // namespace

std::unique_ptr<CompileDevice> make_cpu_device() {
  return std::make_unique<CpuDevice>();
}

Result<std::unique_ptr<CompileDevice>> make_cpu_device(const RatesFile& file) {
  auto device = std::make_unique<CpuDevice>(file.measured.rates);
  const auto identity = device->identity();
  // Versions of libraries change kernels, not the machine.
  for (const char* key : {"cpu.model", "cpu.isa"}) {
    const auto found = file.identity.find(key);
    if (found == file.identity.end() || found->second == identity.at(key)) continue;
    return fail(ErrorCode::kFailedPrecondition,
                fmt::format("'{}': expected '{}', found '{}': rates must be measured on the "
                            "machine that they are for",
                            key, identity.at(key), found->second));
  }
  return device;
}

}  // namespace tessera::backends
