#pragma once

// One LSTM, GRU or RNN at known sizes: the input times W for a block of steps at once, then step by
// step the state times R and the cells.

#include "backends/cpu/run/recurrent_plan.h"

namespace tessera::backends::cpu {

// Operands of one call, row-major or packed as the plan says; absent ones are null.
struct RecurrentOperands {
  const float *x = nullptr, *w = nullptr, *r = nullptr, *b = nullptr, *h = nullptr, *c = nullptr,
              *p = nullptr;
  const std::int32_t* lengths = nullptr;
  float *y = nullptr, *y_h = nullptr, *y_c = nullptr;
};

class RecurrentCall {
 public:
  // `plan` outlives the call.
  RecurrentCall(const RecurrentPlan& plan, const RecurrentSizes& sizes, int threads);
  [[nodiscard]] std::int64_t scratch_bytes() const {
    return scratch_floats_ * static_cast<std::int64_t>(sizeof(float));
  }
  Status run(const RecurrentOperands& operands, float* scratch, Parallel* parallel) const;

 private:
  // Operands, and what lies in scratch, hidden units in whole panels.
  struct Memory : RecurrentOperands {
    float* bias = nullptr;        // [directions, columns]: of W and R together
    float* state_bias = nullptr;  // [directions, padded]: of R alone, gate h of GRU
    float* peepholes = nullptr;   // [directions, 3, padded]
    float* states = nullptr;  // [2, directions, batch, padded]: before and after a step, in turn
    float* cells = nullptr;   // [directions, batch, padded]
    float* masked = nullptr;  // [directions, batch, padded]: GRU
    float* gates = nullptr;   // [directions, steps of a block, batch, columns]
  };
  // What one thread does of a step: items of the batch, and panels of the hidden units.
  struct Share {
    std::int64_t direction = 0;
    ChunkRange items, panels;
    [[nodiscard]] std::int64_t first_unit() const;
    [[nodiscard]] std::int64_t units() const;
  };
  // A step in the order of the direction, and its place in the block.
  struct Step {
    std::int64_t index = 0;
    std::int64_t in_block = 0;
  };

  std::int64_t take(std::int64_t count_floats);
  void plan_scratch();
  void share_out(int threads);

  [[nodiscard]] Memory bind(const RecurrentOperands& operands, float* scratch) const;
  [[nodiscard]] Status check_lengths(const Memory& memory) const;
  void prepare(Memory& memory, float* scratch) const;
  void prepare_bias(const Memory& memory) const;
  void prepare_states(const Memory& memory) const;
  void write_states(const Memory& memory) const;

  void project(const Memory& memory, ChunkRange steps, Parallel* parallel) const;
  void project_piece(const Memory& memory, std::int64_t first_step, std::int64_t direction,
                     ChunkRange rows, ChunkRange panels) const;
  void recur(const Memory& memory, ChunkRange steps, Parallel* parallel) const;
  void run_stage(const Memory& memory, const Share& share, const Step& step, int stage) const;
  void add_state(const Memory& memory, const Share& share, const Step& step, ChunkRange gates,
                 const float* state) const;
  void multiply_state(const Memory& memory, const Share& share, const Step& step) const;
  void mask_states(const Memory& memory, const Share& share, const Step& step) const;
  void run_cells(const Memory& memory, const Share& share, const Step& step) const;
  void run_cell(const Memory& memory, const Share& share, const Step& step,
                std::int64_t item) const;

  [[nodiscard]] std::int64_t length_of(const Memory& memory, std::int64_t item) const {
    return memory.lengths == nullptr ? sizes_.steps : memory.lengths[item];
  }
  [[nodiscard]] std::int64_t time_of(const Memory& memory, std::int64_t direction,
                                     std::int64_t step, std::int64_t item) const;
  [[nodiscard]] float* state_at(const Memory& memory, std::int64_t step, std::int64_t direction,
                                std::int64_t item) const;
  [[nodiscard]] float* gates_at(const Memory& memory, const Share& share, const Step& step,
                                std::int64_t item) const;
  // Index of an item's first unit in the initial and the last states.
  [[nodiscard]] std::int64_t outer_state(std::int64_t direction, std::int64_t item) const;

  const RecurrentPlan& plan_;
  RecurrentSizes sizes_;
  float clip_ = 0;
  int stages_ = 1;  // of a step, each of which needs all units of the one before
  std::int64_t block_steps_ = 1;
  std::int64_t project_chunks_ = 1;
  std::int64_t batch_parts_ = 1;
  std::int64_t unit_parts_ = 1;  // more than 1: threads share each step
  std::int64_t scratch_floats_ = 0;
  std::int64_t bias_at_ = 0, state_bias_at_ = 0, peepholes_at_ = 0, states_at_ = 0, cells_at_ = 0,
               masked_at_ = 0, gates_at_ = 0, w_at_ = 0, r_at_ = 0;
};

}  // namespace tessera::backends::cpu
