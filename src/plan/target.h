#pragma once

// The devices that a compilation may use, and their memory spaces.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "backends/compile_interface.h"

namespace tessera::plan {

struct Target {
  std::vector<std::unique_ptr<backends::CompileDevice>>
      devices;                           // in the user's order; the reference last
  std::vector<std::string> memories;     // "host" first
  std::vector<std::uint32_t> memory_of;  // per device

  [[nodiscard]] std::size_t device_count() const { return devices.size(); }
  [[nodiscard]] const backends::DeviceInfo& info(std::uint32_t device) const {
    return devices[device]->info();
  }
  [[nodiscard]] std::uint32_t find(
      std::string_view name) const;  // device_count() where there is none
};

// The index of host memory in Target::memories.
inline constexpr std::uint32_t kHostMemory = 0;

// The first device whose memory is host memory: it does what the runtime itself does. Every target
// of make_target has one.
std::uint32_t host_device(const Target& target);

// Adds the reference as the last resort where it is not listed. Errors: two devices of one name.
Result<Target> make_target(std::vector<std::unique_ptr<backends::CompileDevice>> devices);

// The form of a value: where it lies, in which order and element type.
struct Form {
  std::uint32_t memory = kHostMemory;
  backends::TensorForm tensor;
  friend auto operator<=>(const Form&, const Form&) = default;
};

std::string device_names(const Target& target);  // "cpu, npu, reference"

std::string to_string(const Form& form, const Target& target);  // "nhwc/fp16@npu"

}  // namespace tessera::plan
