#pragma once

// Content hashes: 128 bits (XXH3), for naming and for noticing damage, not against an adversary.

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera {

struct ContentHash {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend auto operator<=>(const ContentHash&, const ContentHash&) = default;
  [[nodiscard]] std::string to_string() const;  // 32 hexadecimal digits
};

ContentHash hash_bytes(const void* data, std::size_t size_bytes);

// Hashes pieces in order; each piece is delimited, so ("ab", "c") differs from ("a", "bc").
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;
  Hasher& add(std::string_view text);
  Hasher& add(std::int64_t number);
  Hasher& add_bytes(const void* data, std::size_t size_bytes);
  [[nodiscard]] ContentHash finish() const;

 private:
  void* state_;
};

}  // namespace tessera
