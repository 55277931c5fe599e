#pragma once

// QuantizeLinear or DequantizeLinear, read from a spec.

#include <optional>

#include "backends/cpu/run/spec_util.h"

namespace tessera::backends::cpu {

struct QuantizePlan {
  bool quantizes = false;
  DType dtype = DType::kUndefined;  // of the quantised side
  std::int32_t x = -1, scale = -1, zero = -1;
  std::optional<std::size_t> axis;  // nothing: one scale for the whole tensor
};

// Errors: a QuantizeLinear that divides in another precision than fp32.
Status check_precision(const artefact::KernelStep& step);

// Errors: what it cannot take, with what it found.
Result<QuantizePlan> plan_quantize(const artefact::KernelSpec& spec);

}  // namespace tessera::backends::cpu
