#pragma once

// A computation on quantised tensors, read from a spec: what both halves make of a convolution, a
// product, a pooling or elementwise steps between DequantizeLinear and QuantizeLinear, or of an
// operator that takes quantised tensors itself (ConvInteger, QLinearMatMul, ...).

#include <optional>
#include <vector>

#include "backends/cpu/run/elementwise_program.h"
#include "backends/cpu/run/spec_util.h"

namespace tessera::backends::cpu {

// real = (element - zero) * scale.
struct QuantParams {
  DType dtype = DType::kUndefined;  // int8 or uint8
  float scale = 1;
  std::int32_t zero = 0;
  std::int32_t zero_operand = -1;  // where the zero point comes at run time
  friend bool operator==(const QuantParams&, const QuantParams&) = default;
};

// A tensor that comes from outside: quantised, or fp32.
struct QuantTensor {
  std::int32_t operand = -1;
  bool quantised = false;
  QuantParams params;
};

constexpr std::size_t kMaxQuantTensors = 15;  // that the elementwise steps of one plan read

// Elementwise steps as an fp32 spec of their own over rank 1. Its inputs are what the anchor
// makes (where there is one), then `tensors`; its constants are `scalars`.
struct QuantProgram {
  artefact::KernelSpec spec;
  bool anchored = false;
  std::vector<QuantTensor> tensors;
  std::vector<float> scalars;

  // Ready for vectors of `count` elements. Refers to `scalars`: the program must outlive it and
  // may be moved, not copied.
  [[nodiscard]] Result<BoundProgram> bind(std::int64_t count) const;
};

struct QuantPlan {
  enum class Kind : std::uint8_t { kConv, kProduct, kPool, kElementwise };
  Kind kind = Kind::kElementwise;
  std::size_t anchor = 0;  // its step, but for kElementwise
  QuantTensor src;
  // kConv and kProduct: the real weight is (element - zero) * scale.
  std::int32_t weights = -1;
  DType weights_dtype = DType::kUndefined;
  std::vector<std::int32_t> weight_zeros;  // one, or one for each column
  std::vector<float> scales;               // of the sums: one, or one for each column
  std::vector<float> bias;                 // real: none, one, or one for each column
  bool sums_result = false;                // the int32 sums are the result
  std::optional<QuantProgram> program;
  std::optional<QuantParams> result;  // nothing: fp32, or the sums
};

// Errors: what it cannot take, with what was expected and found.
Result<QuantPlan> plan_quantised(const artefact::KernelSpec& spec, Constants constants);

// ---- Pieces -------------------------------------------------------------------------------------

// The elements of a row-major constant of any numeric dtype. Errors: not a constant.
Result<std::vector<double>> constant_numbers(const artefact::KernelSpec& spec, Constants constants,
                                             std::int32_t number);
// The DequantizeLinear step that makes an operand; null for others.
const artefact::KernelStep* dequantizer_of(const artefact::KernelSpec& spec, std::int32_t number);
// Parameters of one element each; omitted operands are 1 and 0.
Result<QuantParams> quant_params(const artefact::KernelSpec& spec, Constants constants, DType dtype,
                                 std::int32_t scale, std::int32_t zero);
// What a DequantizeLinear step reads.
Result<QuantTensor> dequantised(const artefact::KernelSpec& spec, Constants constants,
                                const artefact::KernelStep& step);
// An fp32 constant, or a dequantised one, as real numbers.
Result<std::vector<float>> real_constant(const artefact::KernelSpec& spec, Constants constants,
                                         std::int32_t number);
// The elementwise steps with these indices. `start`: what the anchor makes, or -1; the last step's
// result is the program's.
Result<QuantProgram> read_quant_program(const artefact::KernelSpec& spec, Constants constants,
                                        const std::vector<std::size_t>& steps, std::int32_t start);

// The zero point of a tensor, which may come at run time.
std::int32_t zero_of(const QuantParams& params, std::span<const std::byte* const> inputs);

}  // namespace tessera::backends::cpu
