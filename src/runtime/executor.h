#pragma once

// One session: bindings, arenas, shape plans, and the loop over the instructions.

#include <cstddef>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/loaded_program.h"
#include "runtime/shape_plan.h"
#include "runtime/thread_pool.h"
#include "runtime/trace.h"

namespace tessera::runtime {

inline constexpr std::size_t kShapePlansKept = 8;  // least recently used ones go

struct ExecutorOptions {
  int threads = 1;
  bool trace = false;
};

// Memory that one device owns on behalf of the session.
class OwnedBuffer {
 public:
  OwnedBuffer() = default;
  ~OwnedBuffer() { release(); }
  OwnedBuffer(OwnedBuffer&& other) noexcept { *this = std::move(other); }
  OwnedBuffer& operator=(OwnedBuffer&& other) noexcept;
  // At least `size_bytes`; keeps what it has where that is enough. Fresh memory is zeroed, kept
  // memory is not.
  Status ensure(backends::RunDevice& device, std::int64_t size_bytes);
  void release();
  [[nodiscard]] std::byte* data() const { return buffer_.data; }
  [[nodiscard]] std::int64_t size_bytes() const { return buffer_.size_bytes; }

 private:
  backends::RunDevice* device_ = nullptr;
  backends::DeviceBuffer buffer_;
};

class Executor {
 public:
  static Result<std::unique_ptr<Executor>> create(std::shared_ptr<const LoadedProgram> program,
                                                  const ExecutorOptions& options);

  Status bind_input(std::string_view name, DType dtype, std::span<const std::int64_t> dims,
                    const void* data);
  Status bind_output(std::string_view name, void* data, std::int64_t size_bytes);
  Status run();

  // The output of the last run. Errors: no such output, no run yet.
  Result<TensorView> output(std::string_view name) const;
  // Its dims, alive until the next bind or run.
  Result<const Dims*> output_dims(std::string_view name) const;

  [[nodiscard]] const LoadedProgram& program() const { return *program_; }
  [[nodiscard]] const Trace& trace() const {
    return trace_;
  }  // of the last run; empty unless asked for
  [[nodiscard]] std::int64_t arena_bytes(std::size_t memory) const {
    return arenas_[memory].size_bytes();
  }
  [[nodiscard]] std::int64_t scratch_bytes() const { return scratch_.size_bytes(); }
  [[nodiscard]] std::size_t shape_plans_made() const { return shape_plans_made_; }

 private:
  struct InputBinding {
    bool bound = false;
    Dims dims;
    const std::byte* data = nullptr;
  };
  struct OutputBinding {
    std::byte* data = nullptr;  // null: in `own`
    std::int64_t size_bytes = 0;
    OwnedBuffer own;
  };
  // Where an instruction's pointers stand in `pointers_`.
  struct Operands {
    std::size_t first_input = 0;
    std::size_t first_output = 0;
  };
  Executor(std::shared_ptr<const LoadedProgram> program, const ExecutorOptions& options);
  Status load_constants();
  Status choose_plan();
  Status prepare_memory();
  Status prepare_states();
  Status prepare_outputs();
  void resolve_pointers();
  std::byte* resolve(std::uint32_t buffer);
  Status execute(std::size_t index);
  Status transfer(const artefact::Instruction& instruction, std::size_t index);

  std::shared_ptr<const LoadedProgram> program_;
  ThreadPool pool_;
  int threads_;  // as asked for: how work is cut, whatever the pool uses now
  bool traced_;
  std::vector<InputBinding> inputs_;
  std::vector<OutputBinding> outputs_;
  bool dims_changed_ = true;
  bool pointers_changed_ = true;
  bool has_run_ = false;

  // Most recently used first.
  std::list<std::pair<std::vector<Dims>, std::unique_ptr<ShapePlan>>> plans_;
  ShapePlan* plan_ = nullptr;
  std::size_t shape_plans_made_ = 0;

  std::vector<OwnedBuffer> arenas_;              // per memory
  std::map<std::uint32_t, OwnedBuffer> states_;  // per state buffer
  std::map<std::uint32_t, OwnedBuffer>
      device_constants_;  // constants in memory that is not host memory
  OwnedBuffer scratch_;
  OwnedBuffer bounce_;

  std::vector<std::byte*> buffer_pointers_;
  std::vector<std::byte*> output_pointers_;  // of all instructions, in order
  std::vector<const std::byte*> input_pointers_;
  std::vector<Operands> operands_;
  Trace trace_;
};

}  // namespace tessera::runtime
