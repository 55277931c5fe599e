#include "sessions/split_watch.h"

#include <utility>

#include "backends/registry_run/registry_run.h"

namespace tessera::testing {
namespace {

using backends::DeviceBuffer;
using backends::ExecuteArgs;
using backends::InstanceDims;
using backends::KernelInstance;
using backends::LoadedKernel;
using backends::Parallel;
using backends::RunDevice;

std::set<std::string>& split() {
  static std::set<std::string> kernels;
  return kernels;
}

class WatchedParallel final : public Parallel {
 public:
  WatchedParallel(Parallel& watched, const std::string& kernel)
      : watched_(watched), kernel_(kernel) {}
  [[nodiscard]] int threads() const override { return watched_.threads(); }
  void run(std::int64_t chunks, backends::FunctionRef<void(std::int64_t)> body) override {
    if (chunks > 1) split().insert(kernel_);
    watched_.run(chunks, body);
  }

 private:
  Parallel& watched_;
  const std::string& kernel_;
};

class WatchedInstance final : public KernelInstance {
 public:
  WatchedInstance(std::unique_ptr<KernelInstance> watched, const std::string& kernel)
      : watched_(std::move(watched)), kernel_(kernel) {}
  [[nodiscard]] std::int64_t scratch_bytes() const override { return watched_->scratch_bytes(); }
  Status execute(const ExecuteArgs& args) override {
    WatchedParallel parallel(*args.parallel, kernel_);
    ExecuteArgs own = args;
    own.parallel = &parallel;
    return watched_->execute(own);
  }

 private:
  std::unique_ptr<KernelInstance> watched_;
  const std::string& kernel_;
};

class WatchedKernel final : public LoadedKernel {
 public:
  WatchedKernel(std::unique_ptr<LoadedKernel> watched, std::string kernel)
      : watched_(std::move(watched)), kernel_(std::move(kernel)) {}
  Result<std::unique_ptr<KernelInstance>> instantiate(const InstanceDims& dims,
                                                      int threads) const override {
    TESSERA_ASSIGN(auto instance, watched_->instantiate(dims, threads));
    return std::make_unique<WatchedInstance>(std::move(instance), kernel_);
  }
  Result<std::vector<RunValue>> run_late(std::span<const RunValue* const> inputs,
                                         Parallel* parallel) const override {
    return watched_->run_late(inputs, parallel);
  }

 private:
  std::unique_ptr<LoadedKernel> watched_;
  std::string kernel_;
};

class WatchedDevice final : public RunDevice {
 public:
  explicit WatchedDevice(std::unique_ptr<RunDevice> watched) : watched_(std::move(watched)) {}
  [[nodiscard]] std::string_view name() const override { return watched_->name(); }
  [[nodiscard]] bool host_memory() const override { return watched_->host_memory(); }
  [[nodiscard]] bool simulated() const override { return watched_->simulated(); }
  Result<std::unique_ptr<LoadedKernel>> load(
      const artefact::KernelSpec& spec,
      std::span<const std::span<const std::byte>> constants) override {
    TESSERA_ASSIGN(auto kernel, watched_->load(spec, constants));
    return std::make_unique<WatchedKernel>(std::move(kernel), spec.kernel);
  }
  Result<DeviceBuffer> allocate(std::int64_t size_bytes) override {
    return watched_->allocate(size_bytes);
  }
  void release(DeviceBuffer buffer) override { watched_->release(buffer); }
  Status copy_from_host(std::byte* device_data, const std::byte* host_data,
                        std::int64_t size_bytes) override {
    return watched_->copy_from_host(device_data, host_data, size_bytes);
  }
  Status copy_to_host(std::byte* host_data, const std::byte* device_data,
                      std::int64_t size_bytes) override {
    return watched_->copy_to_host(host_data, device_data, size_bytes);
  }
  Status synchronize() override { return watched_->synchronize(); }

 private:
  std::unique_ptr<RunDevice> watched_;
};

}  // namespace

Result<std::unique_ptr<RunDevice>> make_watched_run_device(const artefact::DeviceDecl& device) {
  TESSERA_ASSIGN(auto watched, backends::make_run_device(device));
  return std::make_unique<WatchedDevice>(std::move(watched));
}

const std::set<std::string>& kernels_split() {
  return split();
}

}  // namespace tessera::testing
