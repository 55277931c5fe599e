#pragma once

// What this processor offers, as far as kernels choose by it.

#include <string>

namespace tessera::backends::cpu {

enum class Isa { kSse41, kAvx2, kAvx512 };

// The best of this processor; the environment variable TESSERA_ISA (sse41, avx2, avx512) lowers it.
// Read once.
Isa isa();
std::string isa_name();
std::string
processor_name();  // "AMD EPYC", as the processor calls itself; "unknown" where it does not

// Channels in a block of the blocked layouts that kernels here prefer: 16 with AVX-512, else 8.
int channel_block();

}  // namespace tessera::backends::cpu
