// "cpu.elementwise": one elementwise operator of another dtype than fp32, row-major with numpy
// broadcasting.

#include "backends/cpu/run/chunked_instance.h"
#include "backends/cpu/run/kernels.h"
#include "backends/cpu/run/physical.h"
#include "backends/cpu/run/scalar_ops.h"

namespace tessera::backends::cpu {
namespace {

constexpr std::int64_t kGrain = 16384;
constexpr std::size_t kMaxOperands = 3;

struct Operand {
  OperandRef ref;
  std::int64_t element_bytes = 1;
};

class ScalarKernel final : public LoadedKernel {
 public:
  ScalarKernel(artefact::KernelSpec spec, Constants constants, ScalarFn fn,
               std::vector<Operand> operands)
      : spec_(std::move(spec)),
        constants_(constants.begin(), constants.end()),
        fn_(fn),
        operands_(std::move(operands)) {}

  Result<std::unique_ptr<KernelInstance>> instantiate(const InstanceDims& dims,
                                                      int threads) const override {
    Dims space = dims.outputs[0];
    std::vector<std::vector<std::int64_t>> strides;
    for (const Operand& operand : operands_) {
      const bool input = operand.ref.kind == OperandRef::Kind::kInput;
      const Dims own = input ? dims.inputs[operand.ref.index]
                             : *constant_dims(spec_.constants[operand.ref.index].shape);
      TESSERA_ASSIGN(auto walked, operand_strides({}, dims.outputs[0], {}, own));
      strides.push_back(std::move(walked));
    }
    collapse(space, strides);
    const std::int64_t count = numel(dims.outputs[0]);
    const std::int64_t out_bytes = bits_of(spec_.outputs[0].dtype) / 8;
    return chunked(
        chunk_count(count, kGrain, threads),
        [=, this](const ExecuteArgs& args, std::int64_t i, std::int64_t chunks, std::byte*) {
          ChunkRange range = chunk_range(count, chunks, i, 64);
          const std::size_t rank = space.size();
          const std::int64_t inner = rank == 0 ? 1 : space[rank - 1];
          while (range.begin < range.end) {
            const void* data[kMaxOperands] = {};
            std::int64_t steps[kMaxOperands] = {};
            for (std::size_t k = 0; k < operands_.size(); ++k) {
              std::int64_t offset = 0;
              std::int64_t rest = range.begin;
              for (std::size_t d = rank; d-- > 0;) {
                offset += rest % space[d] * strides[k][d];
                rest /= space[d];
              }
              data[k] = base(k, args) + offset * operands_[k].element_bytes;
              steps[k] = rank == 0 ? 0 : strides[k][rank - 1];
            }
            const std::int64_t run = std::min(range.end - range.begin, inner - range.begin % inner);
            fn_(data, steps, args.outputs[0] + range.begin * out_bytes, run);
            range.begin += run;
          }
        });
  }

 private:
  const std::byte* base(std::size_t k, const ExecuteArgs& args) const {
    const OperandRef& ref = operands_[k].ref;
    return ref.kind == OperandRef::Kind::kInput ? args.inputs[ref.index]
                                                : constants_[ref.index].data();
  }

  artefact::KernelSpec spec_;
  std::vector<std::span<const std::byte>> constants_;
  ScalarFn fn_;
  std::vector<Operand> operands_;
};

}  // namespace

Result<std::unique_ptr<LoadedKernel>> load_scalar_elementwise(const artefact::KernelSpec& spec,
                                                              Constants constants) {
  if (spec.steps.size() != 1 || spec.outputs.size() != 1)
    return bad_spec(spec, "expected one step and one output");
  std::vector<DType> dtypes;
  std::vector<Operand> operands;
  const std::size_t used = spec.steps[0].op_type == "CastLike" ? 1 : spec.steps[0].inputs.size();
  for (std::size_t i = 0; i < used; ++i) {
    const std::int32_t number = spec.steps[0].inputs[i];
    const auto* decl = operand_decl(spec, number);
    if (decl == nullptr || operands.size() == kMaxOperands)
      return bad_spec(spec, "expected up to three operands from outside");
    dtypes.push_back(decl->dtype);
    operands.push_back({operand_ref(spec, number), bits_of(decl->dtype) / 8});
  }
  TESSERA_TRY(check_scalar_op(spec.steps[0], dtypes, spec.outputs[0].dtype));
  const ScalarFn fn = scalar_fn(spec.steps[0], dtypes, spec.outputs[0].dtype);
  return std::unique_ptr<LoadedKernel>(new ScalarKernel(spec, constants, fn, std::move(operands)));
}

}  // namespace tessera::backends::cpu
