// The steps of a RecurrentCall: what its threads do.

#include <algorithm>

#include "backends/cpu/run/recurrent_call.h"
#include "backends/cpu/run/recurrent_simd.h"

namespace tessera::backends::cpu {
namespace {

using ops::nn::CellKind;

constexpr std::int64_t kRowsAtOnce = 48;  // of a product

template <typename Body>
void run_parts(Parallel* parallel, std::int64_t parts, const Body& body) {
  if (parts == 1 || parallel == nullptr) {
    for (std::int64_t i = 0; i < parts; ++i) body(i);
  } else {
    parallel->run(parts, body);
  }
}

}  // namespace

std::int64_t RecurrentCall::Share::first_unit() const {
  return panels.begin * kGatePanel;
}
std::int64_t RecurrentCall::Share::units() const {
  return (panels.end - panels.begin) * kGatePanel;
}

// ---- The input times W --------------------------------------------------------------------------

// Where in time the step of a direction lies; the first where the item is over.
std::int64_t RecurrentCall::time_of(const Memory& memory, std::int64_t direction, std::int64_t step,
                                    std::int64_t item) const {
  const std::int64_t length = length_of(memory, item);
  if (step >= length) return 0;
  return plan_.options.reverse || direction == 1 ? length - 1 - step : step;
}

void RecurrentCall::project_piece(const Memory& memory, std::int64_t first_step,
                                  std::int64_t direction, ChunkRange rows,
                                  ChunkRange panels) const {
  const RecurrentSizes& s = sizes_;
  const std::int64_t first_column = direction * s.columns() + panels.begin * kGatePanel;
  const float* x[kRowsAtOnce];
  for (std::int64_t row = rows.begin; row < rows.end; row += kRowsAtOnce) {
    const std::int64_t count = std::min(kRowsAtOnce, rows.end - row);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t item = (row + i) % s.batch;
      const std::int64_t time = time_of(memory, direction, first_step + (row + i) / s.batch, item);
      x[i] = memory.x +
             (plan_.options.batch_first ? item * s.steps + time : time * s.batch + item) * s.input;
    }
    PanelProduct product;
    product.a = x;
    product.rows = count;
    product.depth = s.input;
    product.panels = memory.w + first_column * s.input;
    product.panel_stride = s.input * kGatePanel;
    product.columns = (panels.end - panels.begin) * kGatePanel;
    product.start = memory.bias + first_column;
    product.c = memory.gates + (direction * block_steps_ * s.batch + row) * s.columns() +
                panels.begin * kGatePanel;
    product.c_stride = s.columns();
    panel_rows_product(product);
  }
}

// Threads share the rows where there are many, else the columns.
void RecurrentCall::project(const Memory& memory, ChunkRange steps, Parallel* parallel) const {
  const RecurrentSizes& s = sizes_;
  const std::int64_t rows = (steps.end - steps.begin) * s.batch;
  const std::int64_t panels = s.columns() / kGatePanel;
  const bool by_rows = rows >= 12 * project_chunks_;
  const std::int64_t each = by_rows ? rows : panels;
  run_parts(parallel, project_chunks_, [&](std::int64_t chunk) {
    const ChunkRange range =
        chunk_range(s.directions * each, project_chunks_, chunk, by_rows ? 6 : 4);
    for (std::int64_t at = range.begin; at < range.end;) {
      const std::int64_t direction = at / each;
      const std::int64_t end = std::min(range.end, (direction + 1) * each);
      const ChunkRange piece{at - direction * each, end - direction * each};
      project_piece(memory, steps.begin, direction, by_rows ? piece : ChunkRange{0, rows},
                    by_rows ? ChunkRange{0, panels} : piece);
      at = end;
    }
  });
}

// ---- Steps --------------------------------------------------------------------------------------

float* RecurrentCall::gates_at(const Memory& memory, const Share& share, const Step& step,
                               std::int64_t item) const {
  const std::int64_t row = (share.direction * block_steps_ + step.in_block) * sizes_.batch + item;
  return memory.gates + row * sizes_.columns() + share.first_unit();
}

// gates += state * R for some gates; `state` holds a row for each item of the batch.
void RecurrentCall::add_state(const Memory& memory, const Share& share, const Step& step,
                              ChunkRange gates, const float* state) const {
  const RecurrentSizes& s = sizes_;
  const bool is_whole = share.units() == s.padded;  // gates follow one another
  const std::int64_t calls = is_whole ? 1 : gates.end - gates.begin;
  const float* x[kRowsAtOnce];
  for (std::int64_t item = share.items.begin; item < share.items.end; item += kRowsAtOnce) {
    const std::int64_t count = std::min(kRowsAtOnce, share.items.end - item);
    for (std::int64_t i = 0; i < count; ++i) x[i] = state + (item + i) * s.padded;
    for (std::int64_t gate = gates.begin; gate < gates.begin + calls; ++gate) {
      const std::int64_t column = (share.direction * s.gates + gate) * s.padded;
      PanelProduct product;
      product.a = x;
      product.rows = count;
      product.depth = s.hidden;
      product.panels = memory.r + (column + share.first_unit()) * s.hidden;
      product.panel_stride = s.hidden * kGatePanel;
      product.columns = share.units() * (gates.end - gates.begin) / calls;
      product.c = gates_at(memory, share, step, item) + gate * s.padded;
      product.c_stride = s.columns();
      product.start = product.c;
      product.start_stride = product.c_stride;
      panel_rows_product(product);
    }
  }
}

// masked = h * R for the gate h of GRU, with the bias of R.
void RecurrentCall::multiply_state(const Memory& memory, const Share& share,
                                   const Step& step) const {
  const RecurrentSizes& s = sizes_;
  const float* x[kRowsAtOnce];
  for (std::int64_t item = share.items.begin; item < share.items.end; item += kRowsAtOnce) {
    const std::int64_t count = std::min(kRowsAtOnce, share.items.end - item);
    for (std::int64_t i = 0; i < count; ++i)
      x[i] = state_at(memory, step.index, share.direction, item + i);
    PanelProduct product;
    product.a = x;
    product.rows = count;
    product.depth = s.hidden;
    product.panels =
        memory.r + ((share.direction * s.gates + 2) * s.padded + share.first_unit()) * s.hidden;
    product.panel_stride = s.hidden * kGatePanel;
    product.columns = share.units();
    product.start = memory.state_bias + share.direction * s.padded + share.first_unit();
    product.c = memory.masked + (share.direction * s.batch + item) * s.padded + share.first_unit();
    product.c_stride = s.padded;
    panel_rows_product(product);
  }
}

void RecurrentCall::mask_states(const Memory& memory, const Share& share, const Step& step) const {
  for (std::int64_t item = share.items.begin; item < share.items.end; ++item) {
    const CellUnits units{gates_at(memory, share, step, item), sizes_.padded,
                          static_cast<std::size_t>(share.units()), clip_};
    gru_reset(units, state_at(memory, step.index, share.direction, item) + share.first_unit(),
              memory.masked + (share.direction * sizes_.batch + item) * sizes_.padded +
                  share.first_unit());
  }
}

void RecurrentCall::run_cell(const Memory& memory, const Share& share, const Step& step,
                             std::int64_t item) const {
  const std::int64_t first = share.first_unit();
  const std::int64_t row = (share.direction * sizes_.batch + item) * sizes_.padded + first;
  const CellUnits units{gates_at(memory, share, step, item), sizes_.padded,
                        static_cast<std::size_t>(share.units()), clip_};
  const float* before = state_at(memory, step.index, share.direction, item) + first;
  float* after = state_at(memory, step.index + 1, share.direction, item) + first;
  switch (plan_.options.kind) {
    case CellKind::kLstm: {
      const float* peepholes = memory.peepholes == nullptr
                                   ? nullptr
                                   : memory.peepholes + share.direction * 3 * sizes_.padded + first;
      return lstm_cell(units, {peepholes, sizes_.padded, plan_.options.input_forget},
                       memory.cells + row, after);
    }
    case CellKind::kGru:
      return gru_cell(units, stages_ == 2 ? nullptr : memory.masked + row, before, after);
    case CellKind::kRnn: return rnn_cell(units, after);
  }
}

// An item that is over keeps its state.
void RecurrentCall::run_cells(const Memory& memory, const Share& share, const Step& step) const {
  const RecurrentSizes& s = sizes_;
  const std::int64_t first = share.first_unit();
  const std::int64_t visible = std::min(share.units(), s.hidden - first);
  for (std::int64_t item = share.items.begin; item < share.items.end; ++item) {
    float* after = state_at(memory, step.index + 1, share.direction, item) + first;
    if (step.index >= length_of(memory, item)) {
      std::copy_n(state_at(memory, step.index, share.direction, item) + first, share.units(),
                  after);
      continue;
    }
    run_cell(memory, share, step, item);
    if (memory.y == nullptr) continue;
    const std::int64_t time = time_of(memory, share.direction, step.index, item);
    const std::int64_t row = plan_.options.batch_first
                                 ? (item * s.steps + time) * s.directions + share.direction
                                 : (time * s.directions + share.direction) * s.batch + item;
    std::copy_n(after, visible, memory.y + row * s.hidden + first);
  }
}

void RecurrentCall::run_stage(const Memory& memory, const Share& share, const Step& step,
                              int stage) const {
  const float* state = state_at(memory, step.index, share.direction, 0);
  if (plan_.options.kind != CellKind::kGru) {
    add_state(memory, share, step, {0, sizes_.gates}, state);
  } else if (stages_ == 1) {
    add_state(memory, share, step, {0, 2}, state);
    multiply_state(memory, share, step);
  } else if (stage == 0) {
    add_state(memory, share, step, {0, 2}, state);
    return mask_states(memory, share, step);
  } else {
    add_state(memory, share, step, {2, 3},
              memory.masked + share.direction * sizes_.batch * sizes_.padded);
  }
  run_cells(memory, share, step);
}

void RecurrentCall::recur(const Memory& memory, ChunkRange steps, Parallel* parallel) const {
  const RecurrentSizes& s = sizes_;
  const ChunkRange all_panels{0, s.padded / kGatePanel};
  const auto over_steps = [&](const auto& body) {
    for (std::int64_t i = steps.begin; i < steps.end; ++i)
      for (int stage = 0; stage < stages_; ++stage) body(Step{i, i - steps.begin}, stage);
  };
  if (unit_parts_ == 1) {
    return run_parts(parallel, s.directions * batch_parts_, [&](std::int64_t part) {
      const Share share{part / batch_parts_,
                        chunk_range(s.batch, batch_parts_, part % batch_parts_), all_panels};
      over_steps([&](const Step& step, int stage) { run_stage(memory, share, step, stage); });
    });
  }
  for (std::int64_t direction = 0; direction < s.directions; ++direction) {
    over_steps([&](const Step& step, int stage) {
      run_parts(parallel, unit_parts_, [&](std::int64_t part) {
        const Share share{direction, {0, s.batch}, chunk_range(all_panels.end, unit_parts_, part)};
        run_stage(memory, share, step, stage);
      });
    });
  }
}

}  // namespace tessera::backends::cpu
