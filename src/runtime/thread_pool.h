#pragma once

// The pool of one session: its caller, and workers of the process that help it, fewer while a core
// is taken by others.

#include <atomic>
#include <cstdint>
#include <memory>

#include "backends/run_interface.h"
#include "runtime/machine_watch.h"
#include "runtime/thread_governor.h"
#include "runtime/worker_crew.h"

namespace tessera::runtime {

class ThreadPool final : public backends::Parallel {
 public:
  // `threads` counts the caller; with 1 run() is a loop.
  explicit ThreadPool(int threads);
  ThreadPool(int threads, std::shared_ptr<WorkerCrew> crew);
  ~ThreadPool() override;
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // From the first kernel of a run to its last, for what runs between them on the caller's thread.
  class RunScope {
   public:
    explicit RunScope(ThreadPool& pool) : crew_(pool.crew_.get()) {
      if (crew_ != nullptr) crew_->begin_run();
    }
    ~RunScope() {
      if (crew_ != nullptr) crew_->end_run();
    }
    RunScope(const RunScope&) = delete;
    RunScope& operator=(const RunScope&) = delete;

   private:
    WorkerCrew* crew_;
  };

  [[nodiscard]] int threads() const override { return governor_.active(); }
  // Used by one thread at a time; `body` must not call run() on the same pool. Chunks are taken one
  // by one, by this thread and by workers that are free to help: it waits for no worker that has
  // not taken one.
  void run(std::int64_t chunks, backends::FunctionRef<void(std::int64_t)> body) override;

 private:
  void look_at_machine();

  int all_;
  std::shared_ptr<WorkerCrew> crew_;  // null with one thread
  WorkerCrew::Job* job_ = nullptr;    // of the crew
  ThreadGovernor governor_;
  MachineWatch watch_;
  std::int64_t next_look_ns_ = 0;
};

}  // namespace tessera::runtime
