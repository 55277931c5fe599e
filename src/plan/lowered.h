#pragma once

// A lowered program: the chosen kernels, conversions and transfers as steps over buffers, in
// execution order.

#include <cstdint>
#include <string>
#include <vector>

#include "artefact/read/program_image.h"
#include "plan/assignment_problem.h"

namespace tessera::plan {

struct LoweredBuffer {
  ir::ValueId value = ir::kNoValue;
  Form form;
  artefact::BufferKind kind = artefact::BufferKind::kTemporary;
  Tensor constant;  // kConstant: its elements, row-major in the value's own dtype
  std::uint32_t alias_of = UINT32_MAX;  // views and in-place results, set by plan_memory
  std::vector<std::uint32_t> above;     // set by plan_memory
  bool is_dynamic = false;              // allocated when it is made, in no arena
  std::int64_t size_bytes = 0;          // at the price point
  std::int64_t offset_bytes = 0;        // at the price point, temporaries only
  std::int64_t lower = 0;               // lifespan in steps, half-open; of whoever owns the storage
  std::int64_t upper = 0;
};

struct LoweredStep {
  artefact::Opcode opcode = artefact::Opcode::kCall;
  std::uint32_t device = 0;
  const ItemOptions* item = nullptr;  // kCall, kBranch, kLoop
  const Option* option = nullptr;     // the same
  ConversionStep conversion;          // kConvert, kTransfer, kWriteBack
  std::vector<std::uint32_t> bodies;  // kBranch, kLoop: which of the lowered graphs
  artefact::ControlDecl control;      // kBranch, kLoop
  ir::ValueId value = ir::kNoValue;   // what those move
  std::vector<std::uint32_t> inputs;  // buffers: those that the candidate does not bake in
  std::vector<std::uint32_t> outputs;
  std::vector<std::size_t> nodes;  // kCall, kBranch, kLoop: positions in the graph
  std::uint32_t region = UINT32_MAX;
  std::string label;
  double price_us = 0;
};

// A maximal run of calls and conversions on one device.
struct Region {
  std::uint32_t device = 0;
  std::vector<std::size_t> steps;
  double compute_us = 0;
};

struct MemoryFigures {
  std::uint32_t memory = 0;
  std::int64_t arena_bytes = 0;
  std::int64_t peak_live_bytes = 0;  // a lower bound of any arena for this order
  std::int64_t weights_bytes = 0;    // constants that are buffers, and those that kernels bake in
  std::int64_t state_bytes = 0;
};

// The graph itself, or one of its bodies.
struct Lowered {
  std::uint32_t block = 0;
  std::vector<LoweredBuffer> buffers;
  std::vector<std::uint32_t> input_buffers;   // per graph input; of a body: arguments, captures
  std::vector<std::uint32_t> output_buffers;  // per graph output; of a body: results
  std::vector<LoweredStep> steps;
  std::vector<Region> regions;
  std::vector<MemoryFigures> memory;  // per memory of the target
};

}  // namespace tessera::plan
