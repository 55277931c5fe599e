#include "backends/reference/run/reference_run_device.h"

#include <string>

#include "backends/host_run_device.h"
#include "backends/reference/run/step_runner.h"

namespace tessera::backends::reference {
namespace {

class ReferenceInstance final : public KernelInstance {
 public:
  ReferenceInstance(const artefact::KernelSpec& spec, const StepRunner& runner,
                    const InstanceDims& dims)
      : runner_(runner) {
    for (std::size_t i = 0; i < spec.inputs.size(); ++i)
      inputs_.push_back({spec.inputs[i].dtype, dims.inputs[i], nullptr});
    for (std::size_t i = 0; i < spec.outputs.size(); ++i)
      outputs_.push_back({spec.outputs[i].dtype, dims.outputs[i], nullptr});
  }

  Status execute(const ExecuteArgs& args) override {
    for (std::size_t i = 0; i < inputs_.size(); ++i) inputs_[i].data = args.inputs[i];
    for (std::size_t i = 0; i < outputs_.size(); ++i) outputs_[i].data = args.outputs[i];
    return runner_.run(inputs_, outputs_, args.parallel);
  }

 private:
  const StepRunner& runner_;
  std::vector<TensorView> inputs_;
  std::vector<MutableTensorView> outputs_;
};

class ReferenceKernel final : public LoadedKernel {
 public:
  ReferenceKernel(const artefact::KernelSpec& spec, std::unique_ptr<StepRunner> runner)
      : spec_(spec), runner_(std::move(runner)) {}

  Result<std::unique_ptr<KernelInstance>> instantiate(const InstanceDims& dims,
                                                      int /*threads*/) const override {
    return std::make_unique<ReferenceInstance>(spec_, *runner_, dims);
  }
  Result<std::vector<RunValue>> run_late(std::span<const RunValue* const> inputs,
                                         Parallel* parallel) const override {
    return runner_->run_late(inputs, parallel);
  }

 private:
  const artefact::KernelSpec& spec_;
  std::unique_ptr<StepRunner> runner_;
};

class ReferenceRunDevice final : public HostRunDevice {
 public:
  explicit ReferenceRunDevice(std::string name) : name_(std::move(name)) {}
  [[nodiscard]] std::string_view name() const override { return name_; }

  Result<std::unique_ptr<LoadedKernel>> load(
      const artefact::KernelSpec& spec,
      std::span<const std::span<const std::byte>> constants) override {
    std::vector<TensorView> views;
    for (const auto* list : {&spec.inputs, &spec.constants, &spec.outputs})
      for (const artefact::TensorDecl& decl : *list)
        if (!decl.layout.is_row_major())
          return fail(ErrorCode::kInvalidArgument,
                      "reference: expected row-major tensors, found " + decl.layout.to_string());
    if (spec.steps.empty())
      return fail(ErrorCode::kInvalidArgument, "reference: a kernel without steps");
    for (std::size_t i = 0; i < constants.size(); ++i)
      views.push_back(
          {spec.constants[i].dtype, *constant_dims(spec.constants[i].shape), constants[i].data()});
    TESSERA_ASSIGN(auto runner, StepRunner::create(spec, std::move(views)));
    return std::make_unique<ReferenceKernel>(spec, std::move(runner));
  }

 private:
  std::string name_;
};

}  // namespace

std::unique_ptr<RunDevice> make_reference_run_device(std::string name) {
  return std::make_unique<ReferenceRunDevice>(std::move(name));
}

}  // namespace tessera::backends::reference
