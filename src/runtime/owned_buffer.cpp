#include "runtime/owned_buffer.h"

#include <utility>

namespace tessera::runtime {

OwnedBuffer& OwnedBuffer::operator=(OwnedBuffer&& other) noexcept {
  if (this != &other) {
    release();
    device_ = std::exchange(other.device_, nullptr);
    buffer_ = std::exchange(other.buffer_, {});
  }
  return *this;
}

void OwnedBuffer::release() {
  if (device_ != nullptr) device_->release(buffer_);
  device_ = nullptr;
  buffer_ = {};
}

Status OwnedBuffer::ensure(backends::RunDevice& device, std::int64_t size_bytes) {
  if (device_ != nullptr && buffer_.size_bytes >= size_bytes) return {};
  release();
  TESSERA_ASSIGN(buffer_, device.allocate(size_bytes));
  device_ = &device;
  return {};
}

}  // namespace tessera::runtime
