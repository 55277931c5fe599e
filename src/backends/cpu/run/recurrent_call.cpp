#include "backends/cpu/run/recurrent_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/cpu/run/recurrent_simd.h"

namespace tessera::backends::cpu {
namespace {

using ops::nn::CellKind;

constexpr std::int64_t kBlockFloats = 1 << 17;  // of gates: they stay in the second cache
// Work that is worth another thread: some 20 us of it.
constexpr std::int64_t kProductGrain = 1 << 20;  // flops
constexpr std::int64_t kStepGrain = 1 << 18;     // weights read in one step by one item

}  // namespace

// ---- Sizes --------------------------------------------------------------------------------------

RecurrentCall::RecurrentCall(const RecurrentPlan& plan, const RecurrentSizes& sizes, int threads)
    : plan_(plan), sizes_(sizes) {
  clip_ = plan.options.clip ? static_cast<float>(*plan.options.clip)
                            : std::numeric_limits<float>::infinity();
  stages_ = plan.options.kind == CellKind::kGru && !plan.options.linear_before_reset ? 2 : 1;
  const std::int64_t step_floats = sizes_.directions * sizes_.batch * sizes_.columns();
  block_steps_ = std::clamp<std::int64_t>(kBlockFloats / std::max<std::int64_t>(step_floats, 1), 1,
                                          std::max<std::int64_t>(sizes_.steps, 1));
  share_out(threads);
  plan_scratch();
}

void RecurrentCall::share_out(int threads) {
  if (threads <= 1) return;
  const auto fits = [](double work, std::int64_t grain) {
    return static_cast<std::int64_t>(std::min(work / static_cast<double>(grain), 1e6));
  };
  const double block = static_cast<double>(block_steps_) / static_cast<double>(sizes_.steps);
  project_chunks_ = std::clamp<std::int64_t>(
      sizes_.steps == 0 ? 1 : fits(sizes_.flops() * block / 2, kProductGrain), 1, 2 * threads);
  const std::int64_t parts = (threads + sizes_.directions - 1) / sizes_.directions;
  batch_parts_ = std::clamp<std::int64_t>(std::min(fits(sizes_.flops(), kProductGrain), parts), 1,
                                          std::max<std::int64_t>(sizes_.batch, 1));
  const std::int64_t weights = sizes_.columns() * sizes_.hidden;
  if (sizes_.directions * batch_parts_ < threads && weights >= 2 * kStepGrain)
    unit_parts_ =
        std::min({std::int64_t{threads}, weights / kStepGrain, sizes_.padded / kGatePanel});
}

std::int64_t RecurrentCall::take(std::int64_t count_floats) {
  const std::int64_t at = scratch_floats_;
  scratch_floats_ += (count_floats + kGatePanel - 1) / kGatePanel * kGatePanel;
  return at;
}

void RecurrentCall::plan_scratch() {
  const RecurrentSizes& s = sizes_;
  const std::int64_t states = s.directions * s.batch * s.padded;
  const bool is_gru = plan_.options.kind == CellKind::kGru;
  bias_at_ = take(s.directions * s.columns());
  state_bias_at_ = take(is_gru ? s.directions * s.padded : 0);
  peepholes_at_ = take(plan_.operands[kRecurrentP] >= 0 ? s.directions * 3 * s.padded : 0);
  states_at_ = take(2 * states);
  cells_at_ = take(plan_.options.kind == CellKind::kLstm ? states : 0);
  masked_at_ = take(is_gru ? states : 0);
  gates_at_ = take(s.directions * block_steps_ * s.batch * s.columns());
  w_at_ = take(plan_.packed_w ? 0 : s.directions * s.columns() * s.input);
  r_at_ = take(plan_.packed_r ? 0 : s.directions * s.columns() * s.hidden);
}

// ---- A call -------------------------------------------------------------------------------------

RecurrentCall::Memory RecurrentCall::bind(const RecurrentOperands& operands, float* scratch) const {
  Memory memory;
  static_cast<RecurrentOperands&>(memory) = operands;
  memory.bias = scratch + bias_at_;
  memory.state_bias = scratch + state_bias_at_;
  memory.peepholes = operands.p == nullptr ? nullptr : scratch + peepholes_at_;
  memory.states = scratch + states_at_;
  memory.cells = scratch + cells_at_;
  memory.masked = scratch + masked_at_;
  memory.gates = scratch + gates_at_;
  return memory;
}

Status RecurrentCall::check_lengths(const Memory& memory) const {
  for (std::int64_t item = 0; memory.lengths != nullptr && item < sizes_.batch; ++item) {
    if (memory.lengths[item] >= 0 && memory.lengths[item] <= sizes_.steps) continue;
    return fail(ErrorCode::kInvalidArgument,
                fmt::format("{}: input 'sequence_lens': expected values from 0 to {}, found {}",
                            plan_.op, sizes_.steps, memory.lengths[item]));
  }
  return {};
}

void RecurrentCall::prepare(Memory& memory, float* scratch) const {
  const RecurrentSizes& s = sizes_;
  const std::int64_t blocks = s.directions * s.gates;
  if (!plan_.packed_w) {
    pack_gates(memory.w, blocks, s.hidden, s.input, scratch + w_at_);
    memory.w = scratch + w_at_;
  }
  if (!plan_.packed_r) {
    pack_gates(memory.r, blocks, s.hidden, s.hidden, scratch + r_at_);
    memory.r = scratch + r_at_;
  }
  prepare_bias(memory);
  for (std::int64_t row = 0; memory.peepholes != nullptr && row < s.directions * 3; ++row) {
    float* to = memory.peepholes + row * s.padded;
    std::copy_n(memory.p + row * s.hidden, s.hidden, to);
    std::fill(to + s.hidden, to + s.padded, 0.0F);
  }
  prepare_states(memory);
  // Steps past the length of an item are zero.
  if (memory.lengths != nullptr && memory.y != nullptr)
    std::fill_n(memory.y, s.steps * s.states(), 0.0F);
}

// The bias of R joins that of W, except where the reset gate multiplies it.
void RecurrentCall::prepare_bias(const Memory& memory) const {
  const RecurrentSizes& s = sizes_;
  std::fill_n(memory.bias, s.directions * s.columns(), 0.0F);
  if (plan_.options.kind == CellKind::kGru)
    std::fill_n(memory.state_bias, s.directions * s.padded, 0.0F);
  if (memory.b == nullptr) return;
  for (std::int64_t block = 0; block < s.directions * s.gates; ++block) {
    const std::int64_t direction = block / s.gates;
    const std::int64_t gate = block % s.gates;
    const float* of_w = memory.b + (direction * 2 * s.gates + gate) * s.hidden;
    const float* of_r = of_w + s.gates * s.hidden;
    float* to = memory.bias + block * s.padded;
    std::copy_n(of_w, s.hidden, to);
    if (plan_.options.linear_before_reset && gate == 2) {
      std::copy_n(of_r, s.hidden, memory.state_bias + direction * s.padded);
    } else {
      std::transform(to, to + s.hidden, of_r, to, std::plus<>());
    }
  }
}

void RecurrentCall::prepare_states(const Memory& memory) const {
  const RecurrentSizes& s = sizes_;
  const auto load = [&](const float* from, float* to, std::int64_t at) {
    if (from != nullptr) std::copy_n(from + at, s.hidden, to);
    std::fill(to + (from == nullptr ? 0 : s.hidden), to + s.padded, 0.0F);
  };
  for (std::int64_t direction = 0; direction < s.directions; ++direction) {
    for (std::int64_t item = 0; item < s.batch; ++item) {
      const std::int64_t at = outer_state(direction, item);
      load(memory.h, state_at(memory, 0, direction, item), at);
      if (plan_.options.kind == CellKind::kLstm)
        load(memory.c, memory.cells + (direction * s.batch + item) * s.padded, at);
    }
  }
}

void RecurrentCall::write_states(const Memory& memory) const {
  const RecurrentSizes& s = sizes_;
  for (std::int64_t direction = 0; direction < s.directions; ++direction) {
    for (std::int64_t item = 0; item < s.batch; ++item) {
      const std::int64_t at = outer_state(direction, item);
      if (memory.y_h != nullptr)
        std::copy_n(state_at(memory, s.steps, direction, item), s.hidden, memory.y_h + at);
      if (memory.y_c != nullptr)
        std::copy_n(memory.cells + (direction * s.batch + item) * s.padded, s.hidden,
                    memory.y_c + at);
    }
  }
}

std::int64_t RecurrentCall::outer_state(std::int64_t direction, std::int64_t item) const {
  return (plan_.options.batch_first ? item * sizes_.directions + direction
                                    : direction * sizes_.batch + item) *
         sizes_.hidden;
}

float* RecurrentCall::state_at(const Memory& memory, std::int64_t step, std::int64_t direction,
                               std::int64_t item) const {
  return memory.states +
         ((step % 2 * sizes_.directions + direction) * sizes_.batch + item) * sizes_.padded;
}

Status RecurrentCall::run(const RecurrentOperands& operands, float* scratch,
                          Parallel* parallel) const {
  Memory memory = bind(operands, scratch);
  TESSERA_TRY(check_lengths(memory));
  if (sizes_.states() == 0) return {};
  prepare(memory, scratch);
  for (std::int64_t step = 0; step < sizes_.steps; step += block_steps_) {
    const ChunkRange steps{step, std::min(step + block_steps_, sizes_.steps)};
    project(memory, steps, parallel);
    recur(memory, steps, parallel);
  }
  write_states(memory);
  return {};
}

}  // namespace tessera::backends::cpu
