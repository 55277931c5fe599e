// "simd.recurrent": LSTM, GRU and RNN in fp32, row-major, with weights packed into panels where
// they are constants.

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "backends/cpu/run/kernels.h"
#include "backends/cpu/run/recurrent_call.h"

namespace tessera::backends::cpu {
namespace {

class RecurrentKernel final : public LoadedKernel {
 public:
  RecurrentKernel(artefact::KernelSpec spec, Constants constants, RecurrentPlan plan)
      : spec_(std::move(spec)),
        constants_(constants.begin(), constants.end()),
        plan_(std::move(plan)) {}
  Result<std::unique_ptr<KernelInstance>> instantiate(const InstanceDims& dims,
                                                      int threads) const override;
  Result<std::vector<RunValue>> run_late(std::span<const RunValue* const> inputs,
                                         Parallel* parallel) const override;

  [[nodiscard]] const RecurrentPlan& plan() const { return plan_; }
  [[nodiscard]] RecurrentOperands operands(const ExecuteArgs& args) const;

 private:
  [[nodiscard]] Dims result_dims(std::size_t output, const RecurrentSizes& sizes) const;
  // Which result of the operator an output of the spec is: Y, Y_h or Y_c.
  [[nodiscard]] std::size_t result_of(std::size_t output) const {
    return static_cast<std::size_t>(spec_.output_operands[output] - result_number(spec_, 0));
  }

  artefact::KernelSpec spec_;
  std::vector<std::span<const std::byte>> constants_;
  RecurrentPlan plan_;
};

class RecurrentInstance final : public KernelInstance {
 public:
  RecurrentInstance(const RecurrentKernel& kernel, const RecurrentSizes& sizes, int threads)
      : kernel_(kernel), call_(kernel.plan(), sizes, threads) {}
  [[nodiscard]] std::int64_t scratch_bytes() const override { return call_.scratch_bytes(); }
  Status execute(const ExecuteArgs& args) override {
    return call_.run(kernel_.operands(args), floats(args.scratch), args.parallel);
  }

 private:
  const RecurrentKernel& kernel_;
  RecurrentCall call_;
};

RecurrentOperands RecurrentKernel::operands(const ExecuteArgs& args) const {
  const auto data = [&](std::size_t input) -> const std::byte* {
    const OperandRef ref = operand_ref(spec_, plan_.operands[input]);
    if (ref.kind == OperandRef::Kind::kOmitted) return nullptr;
    return ref.kind == OperandRef::Kind::kInput ? args.inputs[ref.index]
                                                : constants_[ref.index].data();
  };
  RecurrentOperands operands;
  operands.x = floats(data(kRecurrentX));
  operands.w = floats(data(kRecurrentW));
  operands.r = floats(data(kRecurrentR));
  operands.b = floats(data(kRecurrentB));
  operands.h = floats(data(kRecurrentH));
  operands.c = floats(data(kRecurrentC));
  operands.p = floats(data(kRecurrentP));
  operands.lengths = reinterpret_cast<const std::int32_t*>(data(kRecurrentLengths));
  float** results[] = {&operands.y, &operands.y_h, &operands.y_c};
  for (std::size_t o = 0; o < spec_.outputs.size(); ++o)
    *results[result_of(o)] = floats(args.outputs[o]);
  return operands;
}

Result<std::unique_ptr<KernelInstance>> RecurrentKernel::instantiate(const InstanceDims& dims,
                                                                     int threads) const {
  TESSERA_ASSIGN(const RecurrentSizes sizes, plan_.sizes(spec_, dims));
  for (std::size_t o = 0; o < spec_.outputs.size(); ++o) {
    if (dims.outputs[o] == result_dims(o, sizes)) continue;
    return bad_spec(
        spec_, fmt::format("output {}: expected {}, found {}", o, to_string(result_dims(o, sizes)),
                           to_string(dims.outputs[o])));
  }
  return std::unique_ptr<KernelInstance>(
      std::make_unique<RecurrentInstance>(*this, sizes, threads));
}

Dims RecurrentKernel::result_dims(std::size_t output, const RecurrentSizes& sizes) const {
  const bool batch_first = plan_.options.batch_first;
  if (result_of(output) == 0)
    return batch_first ? Dims{sizes.batch, sizes.steps, sizes.directions, sizes.hidden}
                       : Dims{sizes.steps, sizes.directions, sizes.batch, sizes.hidden};
  return batch_first ? Dims{sizes.batch, sizes.directions, sizes.hidden}
                     : Dims{sizes.directions, sizes.batch, sizes.hidden};
}

Result<std::vector<RunValue>> RecurrentKernel::run_late(std::span<const RunValue* const> inputs,
                                                        Parallel* parallel) const {
  InstanceDims dims;
  std::vector<const std::byte*> from;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& tensor = inputs[i]->tensor;
    if (!inputs[i]->is_tensor() || tensor.dtype() != spec_.inputs[i].dtype)
      return fail(ErrorCode::kInvalidArgument,
                  fmt::format("{}: operand {}: expected a tensor of {}", plan_.op, i,
                              to_string(spec_.inputs[i].dtype)));
    dims.inputs.push_back(tensor.dims());
    from.push_back(static_cast<const std::byte*>(tensor.data()));
  }
  TESSERA_ASSIGN(const RecurrentSizes sizes, plan_.sizes(spec_, dims));
  std::vector<RunValue> results;
  std::vector<std::byte*> to;
  for (std::size_t o = 0; o < spec_.outputs.size(); ++o) {
    TESSERA_ASSIGN(Tensor tensor, Tensor::zeros(DType::kFp32, result_dims(o, sizes)));
    results.push_back(RunValue::of(std::move(tensor)));
    to.push_back(static_cast<std::byte*>(results.back().tensor.mutable_data()));
  }
  const RecurrentCall call(plan_, sizes, parallel == nullptr ? 1 : parallel->threads());
  const auto scratch = std::make_unique_for_overwrite<float[]>(
      static_cast<std::size_t>(call.scratch_bytes()) / sizeof(float));
  TESSERA_TRY(call.run(operands({.inputs = from, .outputs = to}), scratch.get(), parallel));
  return results;
}

}  // namespace

Result<std::unique_ptr<LoadedKernel>> load_recurrent(const artefact::KernelSpec& spec,
                                                     Constants constants) {
  TESSERA_ASSIGN(RecurrentPlan plan, plan_recurrent(spec));
  for (const std::int32_t number : spec.output_operands) {
    const std::int32_t result = number - result_number(spec, 0);
    if (result < 0 || result > (plan.options.kind == ops::nn::CellKind::kLstm ? 2 : 1))
      return bad_spec(spec, fmt::format("expected outputs Y, Y_h or Y_c, found {}", result));
  }
  return std::unique_ptr<LoadedKernel>(new RecurrentKernel(spec, constants, std::move(plan)));
}

}  // namespace tessera::backends::cpu
