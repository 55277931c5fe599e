#pragma once

// A program ready to run: the image, its devices, its kernels. Immutable after load, shared by
// sessions.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "artefact/read/program_image.h"
#include "backends/run_interface.h"
#include "base/error.h"

namespace tessera::runtime {

// Makes the device that an artefact declares; the registry of run halves is handed in, so that the
// runtime names no backend.
using DeviceFactory = Result<std::unique_ptr<backends::RunDevice>> (*)(const artefact::DeviceDecl&);

class LoadedProgram {
 public:
  // `plan`: "" for the chosen one. Errors: no such plan (and those that exist), an instruction that
  // this runtime does not implement, a device that is not here, a kernel that its backend refuses.
  static Result<std::shared_ptr<const LoadedProgram>> create(artefact::ProgramImage image,
                                                             std::string_view plan,
                                                             DeviceFactory make_device);

  [[nodiscard]] const artefact::ProgramImage& image() const { return image_; }
  [[nodiscard]] const artefact::PlanImage& plan() const { return *plan_; }
  [[nodiscard]] const artefact::MethodImage& method() const { return plan_->methods.front(); }
  [[nodiscard]] backends::RunDevice& device(std::size_t index) const { return *devices_[index]; }
  // The device that owns a memory space: the first that the plan declares for it.
  [[nodiscard]] backends::RunDevice& memory_owner(std::size_t memory) const {
    return *devices_[memory_owners_[memory]];
  }
  // Null where the plan does not use the kernel.
  [[nodiscard]] const backends::LoadedKernel* kernel(std::size_t index) const {
    return kernels_[index].get();
  }
  [[nodiscard]] std::span<const std::byte> segment(std::size_t index) const {
    return image_.segments[index].bytes;
  }

 private:
  LoadedProgram() = default;
  Status load_devices(DeviceFactory make_device);
  Status load_kernels();

  artefact::ProgramImage image_;
  const artefact::PlanImage* plan_ = nullptr;
  std::vector<std::unique_ptr<backends::RunDevice>> devices_;
  std::vector<std::size_t> memory_owners_;
  std::vector<std::unique_ptr<backends::LoadedKernel>> kernels_;
};

}  // namespace tessera::runtime
