#pragma once

// Protobuf's wire format, field by field.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace tessera::importer {

enum class WireType : std::uint8_t {
  kVarint = 0,
  kFixed64 = 1,
  kDelimited = 2,
  kStartGroup = 3,
  kEndGroup = 4,
  kFixed32 = 5
};

class WireReader {
 public:
  explicit WireReader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  [[nodiscard]] bool at_end() const { return at_ == bytes_.size(); }
  [[nodiscard]] std::size_t offset() const { return at_; }
  [[nodiscard]] std::size_t left() const { return bytes_.size() - at_; }

  std::optional<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at_end()) return std::nullopt;
      const auto byte = std::to_integer<std::uint64_t>(bytes_[at_++]);
      value |= (byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    return std::nullopt;
  }

  // The next `count` bytes; nothing where fewer are left.
  std::optional<std::span<const std::byte>> take(std::uint64_t count) {
    if (count > left()) return std::nullopt;
    const auto taken = bytes_.subspan(at_, static_cast<std::size_t>(count));
    at_ += taken.size();
    return taken;
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

}  // namespace tessera::importer
