#pragma once

// The memory half of a device whose memory is plain host memory.

#include <cstdint>
#include <cstring>
#include <string>

#include "backends/run_interface.h"
#include "base/zeroed_memory.h"

namespace tessera::backends {

class HostRunDevice : public RunDevice {
 public:
  [[nodiscard]] bool host_memory() const override { return true; }
  [[nodiscard]] bool simulated() const override { return false; }

  Result<DeviceBuffer> allocate(std::int64_t size_bytes) override {
    std::byte* data = allocate_zeroed(size_bytes);
    if (data == nullptr)
      return fail(ErrorCode::kResourceExhausted,
                  "out of memory: " + std::to_string(size_bytes) + " bytes");
    return DeviceBuffer{data, size_bytes};
  }
  void release(DeviceBuffer buffer) override { release_zeroed(buffer.data, buffer.size_bytes); }

  Status copy_from_host(std::byte* device_data, const std::byte* host_data,
                        std::int64_t size_bytes) override {
    if (size_bytes > 0) std::memcpy(device_data, host_data, static_cast<std::size_t>(size_bytes));
    return {};
  }
  Status copy_to_host(std::byte* host_data, const std::byte* device_data,
                      std::int64_t size_bytes) override {
    if (size_bytes > 0) std::memcpy(host_data, device_data, static_cast<std::size_t>(size_bytes));
    return {};
  }
  Status synchronize() override { return {}; }
};

}  // namespace tessera::backends
