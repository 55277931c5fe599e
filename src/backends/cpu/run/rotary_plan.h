#pragma once

// A RotaryEmbedding read from a spec, with the views of its tables that may stand before it.

#include "backends/cpu/run/spec_util.h"

namespace tessera::backends::cpu {

// Where a table lies: an operand from outside, of which each row is `row_is_whole` long or the
// first half of it is read.
struct RotaryTable {
  std::int32_t operand = -1;
  bool row_is_twice = false;
};

struct RotaryPlan {
  std::size_t step = 0;  // of the RotaryEmbedding, the last one
  std::int32_t input = -1;
  RotaryTable cosine, sine;
  std::int32_t positions = -1;
  bool interleaved = false;
};

// Errors: steps other than Squeeze, Unsqueeze and the first half by Slice before it; a dtype other
// than fp32.
Result<RotaryPlan> plan_rotary(const artefact::KernelSpec& spec, Constants constants);

}  // namespace tessera::backends::cpu
