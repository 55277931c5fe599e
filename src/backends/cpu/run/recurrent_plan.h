#pragma once

// An LSTM, GRU or RNN read from a spec, and how its weights lie.

#include <array>

#include "backends/cpu/run/spec_util.h"
#include "ops/nn/recurrent_cell.h"

namespace tessera::backends::cpu {

enum RecurrentInput : std::size_t {
  kRecurrentX,
  kRecurrentW,
  kRecurrentR,
  kRecurrentB,
  kRecurrentLengths,
  kRecurrentH,
  kRecurrentC,
  kRecurrentP,
  kRecurrentInputs
};

struct RecurrentSizes {
  std::int64_t steps = 0, batch = 0, input = 0, hidden = 0, directions = 1, gates = 1;
  std::int64_t padded = 0;  // hidden units in whole panels

  [[nodiscard]] std::int64_t columns() const { return gates * padded; }
  [[nodiscard]] std::int64_t states() const { return directions * batch * hidden; }
  [[nodiscard]] double flops() const {
    return 2.0 * static_cast<double>(directions * steps * batch) *
           static_cast<double>(columns() * (input + hidden));
  }
};

struct RecurrentPlan {
  std::string op;
  ops::nn::RecurrentOptions options;
  std::array<std::int32_t, kRecurrentInputs> operands{};  // numbers; -1 where omitted
  bool packed_w = false;
  bool packed_r = false;

  // Errors: sizes of operands that do not fit to each other.
  [[nodiscard]] Result<RecurrentSizes> sizes(const artefact::KernelSpec& spec,
                                             const InstanceDims& dims) const;
};

// Errors: dtypes and attributes that the kernel does not take.
Result<RecurrentPlan> plan_recurrent(const artefact::KernelSpec& spec);

// Packed weights: over dims [directions, gates * padded hidden units, depth], panels of 16 rows:
// [directions][gates * padded / 16][depth][16].
Layout gate_panel_layout();
std::int64_t padded_units(std::int64_t hidden);

// Packs ONNX's [directions, gates * hidden, depth], in `blocks` (directions * gates) blocks of
// rows; `packed` holds as many floats as the layout takes.
void pack_gates(const float* weights, std::int64_t blocks, std::int64_t hidden, std::int64_t depth,
                float* packed);

}  // namespace tessera::backends::cpu
