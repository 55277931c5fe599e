#pragma once

// Vectorised cells of LSTM, GRU and RNN, dispatched to this processor's instruction set at run
// time. Weights lie in panels of 16 columns, and hidden units come in whole panels: what is added
// to fill the last one is zero, and stays zero.

#include <cstddef>
#include <cstdint>

#include "backends/cpu/run/product_simd.h"

namespace tessera::backends::cpu {

constexpr std::int64_t kGatePanel = kProductColumns;  // columns of a panel of packed weights

// Units of one item of the batch: `count` of them, a multiple of kGatePanel.
struct CellUnits {
  const float* gates = nullptr;    // sums of the first gate, before its activation
  std::ptrdiff_t gate_stride = 0;  // from one gate to the next
  std::size_t count = 0;
  float clip = 0;  // sums are kept within plus and minus it; infinity: as they are
};

// Gates i, o, f, c. `peepholes` (i, o, f, each `peephole_stride` on) may be null. Takes c one step
// on and gives h.
struct LstmParts {
  const float* peepholes = nullptr;
  std::ptrdiff_t peephole_stride = 0;
  bool input_forget = false;  // the forget gate is 1 less the input gate
};
void lstm_cell(const CellUnits& units, const LstmParts& parts, float* c, float* h);

// Gates z, r, h. The first part of a step whose reset gate comes before the product: masked = r *
// h.
void gru_reset(const CellUnits& units, const float* h, float* masked);
// The rest of it. `state` is h * R for the gate h where the reset gate comes behind it, else null.
void gru_cell(const CellUnits& units, const float* state, const float* h, float* next);

void rnn_cell(const CellUnits& units, float* next);

}  // namespace tessera::backends::cpu
