#include "backends/cpu/run/cpu_features.h"

#include <cpuid.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace tessera::backends::cpu {
namespace {

Isa detect() {
  Isa best = Isa::kSse41;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) best = Isa::kAvx2;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    best = Isa::kAvx512;
  }
  const char* limit = std::getenv("TESSERA_ISA");
  if (limit == nullptr) return best;
  const std::string_view text = limit;
  if (text == "sse41") return std::min(best, Isa::kSse41);
  if (text == "avx2") return std::min(best, Isa::kAvx2);
  return best;
}

}  // namespace

Isa isa() {
  static const Isa found = detect();
  return found;
}

std::string isa_name() {
  switch (isa()) {
    case Isa::kSse41: return "sse41";
    case Isa::kAvx2: return "avx2";
    case Isa::kAvx512: return "avx512";
  }
  return "sse41";
}

namespace {

std::string read_processor_name() {
  std::array<unsigned, 12> words{};
  unsigned highest = __get_cpuid_max(0x80000000U, nullptr);
  if (highest < 0x80000004U) return "unknown";
  for (unsigned leaf = 0; leaf < 3; ++leaf) {
    unsigned* at = words.data() + std::size_t{4} * leaf;
    __get_cpuid(0x80000002U + leaf, at, at + 1, at + 2, at + 3);
  }
  std::array<char, sizeof words + 1> text{};
  std::memcpy(text.data(), words.data(), sizeof words);
  std::string name = text.data();
  name.erase(0, name.find_first_not_of(' '));
  name.erase(name.find_last_not_of(' ') + 1);
  return name;
}

}  // namespace

// Read once: the instruction leaves a virtual machine, which takes its time.
std::string processor_name() {
  static const std::string name = read_processor_name();
  return name;
}

int channel_block() {
  return isa() == Isa::kAvx512 ? 16 : 8;
}

}  // namespace tessera::backends::cpu
