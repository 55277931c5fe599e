#pragma once

// One activation of a method: its bindings, memory and kernels. The root frame is the method of the
// program; branches and loops run their bodies in frames of their own, made once and kept.
//
// Where all sizes follow from those of the inputs, a run is a walk over the instructions with
// addresses in place. What only the run decides is *loose*: dynamic buffers, and values that are no
// tensor of known rank. Instructions with a loose operand look up dims and addresses when their
// turn comes.

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/run_value.h"
#include "runtime/kept_instances.h"
#include "runtime/loaded_program.h"
#include "runtime/owned_buffer.h"
#include "runtime/shape_plan.h"
#include "runtime/thread_pool.h"
#include "runtime/trace.h"
#include "runtime/watcher.h"

namespace tessera::runtime {

inline constexpr std::size_t kShapePlansKept = 8;  // least recently used ones go

// What the frames of a session share.
struct SessionShared {
  std::shared_ptr<const LoadedProgram> program;
  ThreadPool pool;
  int threads;  // as asked for: how work is cut, whatever the pool uses now
  bool traced;
  Watcher* watcher;  // null: nobody looks
  Trace trace;
  std::int64_t start_ns = 0;
  OwnedBuffer scratch;
  OwnedBuffer bounce;
  std::size_t shape_plans_made = 0;
};

class Frame {
 public:
  static Result<std::unique_ptr<Frame>> create(SessionShared& shared, std::uint32_t method);

  // Elements that stay where they are until the run ends; or a value that the frame keeps.
  void bind_input(std::size_t index, std::span<const std::int64_t> dims, const std::byte* data);
  void bind_input(std::size_t index, RunValue value);
  // Where a static output of the root goes; null: to memory of the frame.
  void bind_output(std::size_t index, std::byte* data, std::int64_t size_bytes);

  // Kernels, memory and addresses for what is bound. `inherited`: sizes that are known around a
  // body; null for the root.
  Status make_ready(const SymbolBindings* inherited);
  Status run(const SymbolBindings* inherited);

  [[nodiscard]] bool is_bound(std::size_t input) const { return inputs_[input].bound; }
  // After a run. A loose buffer's value has its storage; a static one is looked at through data().
  [[nodiscard]] bool is_loose(std::uint32_t buffer) const { return loose_[buffer]; }
  [[nodiscard]] const RunValue& value_of(std::uint32_t buffer) const {
    return slots_[buffer].value;
  }
  [[nodiscard]] const Dims& dims_of(std::uint32_t buffer) const {
    return loose_[buffer] ? slots_[buffer].dims : plan_->dims[buffer];
  }
  [[nodiscard]] std::byte* data_of(std::uint32_t buffer) const {
    return loose_[buffer] ? slots_[buffer].data : buffer_pointers_[buffer];
  }
  [[nodiscard]] std::int64_t arena_bytes(std::size_t memory) const {
    return arenas_[memory].size_bytes();
  }
  [[nodiscard]] const artefact::MethodImage& method() const { return method_; }
  // The value of a buffer in host memory, lent: it lies where others write later.
  [[nodiscard]] RunValue borrow(std::uint32_t buffer) const;

 private:
  struct InputBinding {
    bool bound = false;
    Dims dims;
    const std::byte* data = nullptr;
    RunValue value;
  };
  struct OutputBinding {
    std::byte* data = nullptr;  // null: in `own`
    std::int64_t size_bytes = 0;
    OwnedBuffer own;
  };
  // A loose buffer after it was made: a value in host memory, or memory of a device.
  struct Slot {
    Dims dims;
    std::byte* data = nullptr;
    RunValue value;
    OwnedBuffer memory;
  };
  // Where an instruction's pointers stand in `input_pointers_` and `output_pointers_`.
  struct Operands {
    std::size_t first_input = 0;
    std::size_t first_output = 0;
  };
  struct PlanKey {
    std::vector<Dims> dims;
    std::vector<std::int64_t> sizes;  // of inherited symbols
    friend bool operator==(const PlanKey&, const PlanKey&) = default;
  };

  Frame(SessionShared& shared, std::uint32_t method);
  void set_input(std::size_t index, std::span<const std::int64_t> dims, const std::byte* data);
  [[nodiscard]] const LoadedProgram& program() const { return *shared_.program; }

  // frame.cpp
  void find_loose();
  Status load_constants();
  [[nodiscard]] bool is_plan_current(const SymbolBindings* inherited) const;
  Status choose_plan(const SymbolBindings* inherited);
  Status prepare_memory();
  Status prepare_states();
  Status prepare_outputs();
  void resolve_pointers();
  std::byte* resolve(std::uint32_t buffer);
  Status execute(std::size_t index);
  Status execute_watched(std::size_t index);
  Status transfer(const artefact::Instruction& instruction, const std::byte* source,
                  std::byte* target, std::int64_t size_bytes);
  void record(std::size_t index, std::int64_t begin_ns);

  // frame_late.cpp
  void bind_loose_inputs();
  Status execute_loose(std::size_t index);
  Status run_kernel(std::size_t index);
  Status run_late(std::size_t index);
  Status copy_loose(std::size_t index);
  Status allocate(std::uint32_t buffer, Dims dims);
  Status set_value(std::uint32_t buffer, RunValue value);
  [[nodiscard]] Status check_made(std::uint32_t buffer) const;
  Status learn_sizes(std::uint32_t buffer, const Dims& dims);

  // frame_control.cpp
  Result<Frame*> body_frame(std::size_t index, std::size_t body);
  Status bind_captures(Frame& frame, const artefact::Instruction& instruction,
                       std::size_t first_capture, std::size_t first_input, std::size_t count);
  void hand_over(std::uint32_t buffer, Frame& frame, std::size_t input) const;
  [[nodiscard]] RunValue take_result(std::size_t output) const;
  Status run_branch(std::size_t index);
  Result<Frame*> run_body_of_branch(std::size_t index, std::size_t body);
  Status run_loop(std::size_t index);
  Status run_scan(std::size_t index);
  Status finish_loop(const artefact::Instruction& instruction, const Frame& frame,
                     std::vector<RunValue> carried, std::vector<std::vector<RunValue>> slices);
  Result<bool> condition(std::uint32_t buffer) const;

  SessionShared& shared_;
  const artefact::MethodImage& method_;
  std::vector<InputBinding> inputs_;
  std::vector<OutputBinding> outputs_;
  bool dims_changed_ = true;
  bool pointers_changed_ = true;

  // Most recently used first.
  std::list<std::pair<PlanKey, std::unique_ptr<ShapePlan>>> plans_;
  ShapePlan* plan_ = nullptr;

  std::vector<OwnedBuffer> arenas_;                        // per memory
  std::map<std::uint32_t, OwnedBuffer> states_;            // per state buffer
  std::map<std::uint32_t, OwnedBuffer> device_constants_;  // in memory that is not host memory

  std::vector<std::byte*> buffer_pointers_;
  std::vector<std::byte*> output_pointers_;  // of all instructions, in order
  std::vector<const std::byte*> input_pointers_;
  std::vector<Operands> operands_;

  bool any_loose_ = false;
  std::vector<bool> loose_;                         // per buffer
  std::vector<bool> loose_instruction_;             // has a loose operand, or bodies
  std::vector<Slot> slots_;                         // per buffer
  std::map<std::size_t, KeptInstances> instances_;  // of loose instructions
  SymbolBindings bindings_;                         // kept where something is loose
  std::map<std::pair<std::size_t, std::size_t>, std::unique_ptr<Frame>> bodies_;
};

}  // namespace tessera::runtime
