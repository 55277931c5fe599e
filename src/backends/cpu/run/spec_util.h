#pragma once

// What kernels here share when they read a spec.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "artefact/read/program_image.h"
#include "backends/run_interface.h"
#include "base/error.h"

namespace tessera::backends::cpu {

using Constants = std::span<const std::span<const std::byte>>;

// What an operand number of a step stands for.
struct OperandRef {
  enum class Kind : std::uint8_t { kOmitted, kInput, kConstant, kResult } kind = Kind::kOmitted;
  std::size_t index = 0;  // of the inputs, constants, or step results
};
OperandRef operand_ref(const artefact::KernelSpec& spec, std::int32_t number);

// Declaration of an operand that is an input or a constant; null for omitted ones and results.
const artefact::TensorDecl* operand_decl(const artefact::KernelSpec& spec, std::int32_t number);

// Input `index` of a step as an operand number; -1 where it is omitted.
std::int32_t step_input(const artefact::KernelStep& step, std::size_t index);

// The number of the first result of step `index`.
std::int32_t result_number(const artefact::KernelSpec& spec, std::size_t index);

// Elements of a row-major integer constant operand; nothing where it is omitted. Errors: not a
// constant (named by its number).
Result<std::vector<std::int64_t>> constant_ints(const artefact::KernelSpec& spec,
                                                Constants constants, std::int32_t number);
bool is_constant(const artefact::KernelSpec& spec, std::int32_t number);

// The value of an fp32 constant of one element; nothing where it is not one.
std::optional<float> constant_scalar(const artefact::KernelSpec& spec, Constants constants,
                                     std::int32_t number);

// The [begin, end) of chunk `index` of `chunks` over `count`, in multiples of `unit`.
struct ChunkRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
ChunkRange chunk_range(std::int64_t count, std::int64_t chunks, std::int64_t index,
                       std::int64_t unit = 1);

// How many chunks for work over `count` elements: 1 on one thread or for less than two grains, else
// up to one per thread: more cost more than their balance gains, and the pool adapts to taken
// cores.
std::int64_t chunk_count(std::int64_t count, std::int64_t grain, int threads);

inline const float* floats(const std::byte* data) {
  return reinterpret_cast<const float*>(data);
}
inline float* floats(std::byte* data) {
  return reinterpret_cast<float*>(data);
}

// The error of a kernel that got a spec that it does not know: a foreign or damaged artefact.
tl::unexpected<Error> bad_spec(const artefact::KernelSpec& spec, std::string expected_found);

// The loaders, one for each kernel name; cpu_run_device.cpp lists them.
using LoadFn = Result<std::unique_ptr<LoadedKernel>> (*)(const artefact::KernelSpec& spec,
                                                         Constants constants);

}  // namespace tessera::backends::cpu
