#pragma once

// The memory half of a device whose memory is plain host memory.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include "backends/run_interface.h"

namespace tessera::backends {

class HostRunDevice : public RunDevice {
 public:
  [[nodiscard]] bool host_memory() const override { return true; }
  [[nodiscard]] bool simulated() const override { return false; }

  Result<DeviceBuffer> allocate(std::int64_t size_bytes) override {
    constexpr std::int64_t kAlignment = 64;
    if (size_bytes > INT64_MAX - kAlignment)
      return fail(ErrorCode::kResourceExhausted,
                  "out of memory: " + std::to_string(size_bytes) + " bytes");
    // aligned_alloc wants a multiple of the alignment; nothing is still one line, so that a pointer
    // always exists.
    const std::int64_t padded =
        (std::max<std::int64_t>(size_bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
    void* data = std::aligned_alloc(kAlignment, static_cast<std::size_t>(padded));
    if (data == nullptr)
      return fail(ErrorCode::kResourceExhausted,
                  "out of memory: " + std::to_string(size_bytes) + " bytes");
    std::memset(data, 0, static_cast<std::size_t>(padded));
    return DeviceBuffer{static_cast<std::byte*>(data), size_bytes};
  }
  void release(DeviceBuffer buffer) override { std::free(buffer.data); }

  Status copy_from_host(std::byte* device_data, const std::byte* host_data,
                        std::int64_t size_bytes) override {
    std::memcpy(device_data, host_data, static_cast<std::size_t>(size_bytes));
    return {};
  }
  Status copy_to_host(std::byte* host_data, const std::byte* device_data,
                      std::int64_t size_bytes) override {
    std::memcpy(host_data, device_data, static_cast<std::size_t>(size_bytes));
    return {};
  }
  Status synchronize() override { return {}; }
};

}  // namespace tessera::backends
