#include "backends/simulated/run/simulated_run_device.h"

#include <fmt/format.h>

#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "backends/host_run_device.h"
#include "backends/reference/run/step_runner.h"
#include "base/float_convert.h"
#include "base/layout.h"

namespace tessera::backends::simulated {
namespace {

// One operand: as declared in device memory, and dense row-major for the reference.
struct Operand {
  artefact::TensorDecl decl;
  Dims dims;
  Tensor dense;
};

Result<std::vector<Operand>> make_operands(const std::vector<artefact::TensorDecl>& decls,
                                           const std::vector<Dims>& dims) {
  std::vector<Operand> operands;
  for (std::size_t i = 0; i < decls.size(); ++i) {
    TESSERA_ASSIGN(Tensor dense, Tensor::zeros(decls[i].dtype, dims[i]));
    operands.push_back({decls[i], dims[i], std::move(dense)});
  }
  return operands;
}

class SimulatedInstance final : public KernelInstance {
 public:
  SimulatedInstance(const reference::StepRunner* runner, std::vector<Operand> inputs,
                    std::vector<Operand> outputs)
      : runner_(runner), inputs_(std::move(inputs)), outputs_(std::move(outputs)) {
    for (Operand& operand : inputs_) input_views_.push_back(operand.dense.view());
    for (Operand& operand : outputs_) output_views_.push_back(operand.dense.mutable_view());
  }

  Status execute(const ExecuteArgs& args) override {
    for (std::size_t i = 0; i < inputs_.size(); ++i)
      convert_layout(inputs_[i].decl.layout, args.inputs[i], Layout::row_major(),
                     const_cast<void*>(input_views_[i].data), inputs_[i].decl.dtype,
                     inputs_[i].dims);
    if (runner_ != nullptr) {
      TESSERA_TRY(runner_->run(input_views_, output_views_, args.parallel));
    } else if (inputs_[0].decl.dtype == outputs_[0].decl.dtype) {
      std::memcpy(output_views_[0].data, input_views_[0].data,
                  static_cast<std::size_t>(input_views_[0].nbytes()));
    } else {
      cast_elements(input_views_[0], output_views_[0], true);
    }
    for (std::size_t i = 0; i < outputs_.size(); ++i)
      convert_layout(Layout::row_major(), output_views_[i].data, outputs_[i].decl.layout,
                     args.outputs[i], outputs_[i].decl.dtype, outputs_[i].dims);
    return {};
  }

 private:
  const reference::StepRunner* runner_;  // null: a conversion
  std::vector<Operand> inputs_;
  std::vector<Operand> outputs_;
  std::vector<TensorView> input_views_;
  std::vector<MutableTensorView> output_views_;
};

class SimulatedKernel final : public LoadedKernel {
 public:
  SimulatedKernel(const artefact::KernelSpec& spec, std::unique_ptr<reference::StepRunner> runner)
      : spec_(spec), runner_(std::move(runner)) {}

  Result<std::unique_ptr<KernelInstance>> instantiate(const InstanceDims& dims,
                                                      int /*threads*/) const override {
    TESSERA_ASSIGN(auto inputs, make_operands(spec_.inputs, dims.inputs));
    TESSERA_ASSIGN(auto outputs, make_operands(spec_.outputs, dims.outputs));
    return std::make_unique<SimulatedInstance>(runner_.get(), std::move(inputs),
                                               std::move(outputs));
  }

 private:
  const artefact::KernelSpec& spec_;
  std::unique_ptr<reference::StepRunner> runner_;
};

// Blocks of memory that copies must stay within: a stand-in for memory that the host cannot reach.
class SimulatedRunDevice final : public HostRunDevice {
 public:
  explicit SimulatedRunDevice(std::string name) : name_(std::move(name)) {}
  [[nodiscard]] std::string_view name() const override { return name_; }
  [[nodiscard]] bool host_memory() const override { return false; }
  [[nodiscard]] bool simulated() const override { return true; }

  Result<std::unique_ptr<LoadedKernel>> load(
      const artefact::KernelSpec& spec,
      std::span<const std::span<const std::byte>> constants) override {
    if (spec.steps.empty()) return std::make_unique<SimulatedKernel>(spec, nullptr);
    std::vector<TensorView> views;
    for (std::size_t i = 0; i < constants.size(); ++i)
      views.push_back(
          {spec.constants[i].dtype, *constant_dims(spec.constants[i].shape), constants[i].data()});
    TESSERA_ASSIGN(auto runner, reference::StepRunner::create(spec, std::move(views)));
    return std::make_unique<SimulatedKernel>(spec, std::move(runner));
  }

  Result<DeviceBuffer> allocate(std::int64_t size_bytes) override {
    TESSERA_ASSIGN(const DeviceBuffer buffer, HostRunDevice::allocate(size_bytes));
    const std::lock_guard lock(mutex_);
    blocks_[buffer.data] = size_bytes;
    return buffer;
  }
  void release(DeviceBuffer buffer) override {
    {
      const std::lock_guard lock(mutex_);
      blocks_.erase(buffer.data);
    }
    HostRunDevice::release(buffer);
  }
  Status copy_from_host(std::byte* device_data, const std::byte* host_data,
                        std::int64_t size_bytes) override {
    TESSERA_TRY(check_within(device_data, size_bytes));
    return HostRunDevice::copy_from_host(device_data, host_data, size_bytes);
  }
  Status copy_to_host(std::byte* host_data, const std::byte* device_data,
                      std::int64_t size_bytes) override {
    TESSERA_TRY(check_within(device_data, size_bytes));
    return HostRunDevice::copy_to_host(host_data, device_data, size_bytes);
  }

 private:
  Status check_within(const std::byte* data, std::int64_t size_bytes) {
    const std::lock_guard lock(mutex_);
    auto block = blocks_.upper_bound(data);
    if (block != blocks_.begin() && (--block, data + size_bytes <= block->first + block->second))
      return {};
    return fail(ErrorCode::kInternal,
                fmt::format("device '{}': a copy of {} bytes leaves the device's memory", name_,
                            size_bytes));
  }

  std::string name_;
  std::mutex mutex_;
  std::map<const std::byte*, std::int64_t> blocks_;
};

}  // namespace

Result<std::unique_ptr<RunDevice>> make_simulated_run_device(const artefact::DeviceDecl& device) {
  return std::make_unique<SimulatedRunDevice>(device.name);
}

}  // namespace tessera::backends::simulated
