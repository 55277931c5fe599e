#pragma once

// Memory that one device owns on behalf of a session.

#include "backends/run_interface.h"

namespace tessera::runtime {

class OwnedBuffer {
 public:
  OwnedBuffer() = default;
  ~OwnedBuffer() { release(); }
  OwnedBuffer(OwnedBuffer&& other) noexcept { *this = std::move(other); }
  OwnedBuffer& operator=(OwnedBuffer&& other) noexcept;
  // At least `size_bytes`; keeps what it has where that is enough. Fresh memory is zeroed, kept
  // memory is not.
  Status ensure(backends::RunDevice& device, std::int64_t size_bytes);
  void release();
  [[nodiscard]] std::byte* data() const { return buffer_.data; }
  [[nodiscard]] std::int64_t size_bytes() const { return buffer_.size_bytes; }

 private:
  backends::RunDevice* device_ = nullptr;
  backends::DeviceBuffer buffer_;
};

}  // namespace tessera::runtime
