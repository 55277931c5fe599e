#pragma once

// Random tests that repeat: everything comes from a seed, and the seed stands in the message of a
// failing test.
//
//   for (const std::uint64_t seed : testing::seeds(1000)) {
//     SCOPED_TRACE(testing::seed_text(seed));
//     testing::Random random(seed);
//     ...
//   }

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

namespace tessera::testing {

// 0 to count-1, or only the seed in the environment variable TESSERA_SEED.
inline std::vector<std::uint64_t> seeds(std::uint64_t count) {
  if (const char* text = std::getenv("TESSERA_SEED")) return {std::strtoull(text, nullptr, 0)};
  std::vector<std::uint64_t> all(count);
  for (std::uint64_t i = 0; i < count; ++i) all[i] = i;
  return all;
}

inline std::string seed_text(std::uint64_t seed) {
  return "repeat with TESSERA_SEED=" + std::to_string(seed);
}

// The same numbers on every machine and with every standard library (SplitMix64, Steele, Lea and
// Flood 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t bits() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }

  // A whole number in [low, high], both included; the small bias of the remainder does not matter
  // to tests.
  std::int64_t integer(std::int64_t low, std::int64_t high) {
    const std::uint64_t span =
        static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) + 1;
    const std::uint64_t step = span == 0 ? bits() : bits() % span;
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + step);
  }

  // A number in [low, high).
  double real(double low, double high) {
    return low + (high - low) * (static_cast<double>(bits() >> 11U) * 0x1.0p-53);
  }

  bool chance(double probability) { return real(0, 1) < probability; }

  // An index into a container of `size` > 0 elements.
  std::size_t index(std::size_t size) { return static_cast<std::size_t>(bits() % size); }

  template <typename T>
  const T& pick(const std::vector<T>& from) {
    return from[index(from.size())];
  }

  std::vector<float> floats(std::size_t count, double low = -1, double high = 1) {
    std::vector<float> values(count);
    for (float& value : values) value = static_cast<float>(real(low, high));
    return values;
  }

 private:
  std::uint64_t state_;
};

}  // namespace tessera::testing
