#pragma once

// One session: what the caller binds by name, around the frame that runs.

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/frame.h"

namespace tessera::runtime {

struct ExecutorOptions {
  int threads = 1;
  bool trace = false;
  Watcher* watcher = nullptr;  // outlives the executor
};

class Executor {
 public:
  static Result<std::unique_ptr<Executor>> create(std::shared_ptr<const LoadedProgram> program,
                                                  const ExecutorOptions& options);

  // Strings are std::string objects.
  Status bind_input(std::string_view name, DType dtype, std::span<const std::int64_t> dims,
                    const void* data);
  // A value of any kind, kept until the input is bound anew.
  Status bind_value(std::string_view name, RunValue value);
  Status bind_output(std::string_view name, void* data, std::int64_t size_bytes);
  Status prepare();
  Status run();

  // The output of the last run. Errors: no such output, no run yet, no tensor.
  Result<TensorView> output(std::string_view name) const;
  // Its dims, alive until the next bind or run.
  Result<const Dims*> output_dims(std::string_view name) const;
  // The same for any kind of value; a tensor is only lent.
  Result<RunValue> output_value(std::string_view name) const;

  [[nodiscard]] const LoadedProgram& program() const { return *shared_.program; }
  [[nodiscard]] const Trace& trace() const {
    return shared_.trace;
  }  // of the last run; empty unless asked for
  // Of the program's own method; bodies have arenas of their own.
  [[nodiscard]] std::int64_t arena_bytes(std::size_t memory) const {
    return root_->arena_bytes(memory);
  }
  [[nodiscard]] std::int64_t scratch_bytes() const { return shared_.scratch.size_bytes(); }
  [[nodiscard]] std::size_t shape_plans_made() const { return shared_.shape_plans_made; }

 private:
  struct BoundOutput {
    std::byte* data = nullptr;
    std::int64_t size_bytes = 0;
  };
  Executor(std::shared_ptr<const LoadedProgram> program, const ExecutorOptions& options)
      : shared_{std::move(program),
                ThreadPool(options.threads),
                options.threads,
                options.trace,
                options.watcher,
                {},
                0,
                {},
                {},
                0} {}
  Status check_bound() const;
  [[nodiscard]] const artefact::MethodImage& method() const { return shared_.program->method(); }
  Result<std::uint32_t> output_buffer(std::string_view name) const;
  Status copy_loose_outputs();

  SessionShared shared_;
  std::unique_ptr<Frame> root_;
  std::vector<BoundOutput> bound_outputs_;
  bool has_run_ = false;
};

}  // namespace tessera::runtime
