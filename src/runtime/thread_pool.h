#pragma once

// The pool of one session: dynamic chunks, a short spin before sleep, and fewer threads while a
// core is taken by others.

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "backends/run_interface.h"
#include "runtime/machine_watch.h"
#include "runtime/thread_governor.h"

namespace tessera::runtime {

class ThreadPool final : public backends::Parallel {
 public:
  // `threads` counts the caller; with 1 there are no workers and run() is a loop.
  explicit ThreadPool(int threads);
  ~ThreadPool() override;
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int threads() const override { return active_; }
  // Used by one thread at a time; `body` must not call run() on the same pool.
  void run(std::int64_t chunks, backends::FunctionRef<void(std::int64_t)> body) override;

 private:
  std::uint64_t await_job(std::uint64_t seen);
  void take_chunks(const backends::FunctionRef<void(std::int64_t)>& body, std::int64_t chunks);
  void work(int worker);
  bool park(int worker);
  void set_active(int threads);
  void look_at_machine();

  std::vector<std::atomic<pid_t>> ids_;  // of the workers, 0 until they run
  std::vector<std::thread> workers_;
  // One job at a time, open while the epoch is even; it starts closed. Body and chunks change only
  // while it is closed and nobody is inside.
  std::atomic<std::uint64_t> epoch_{1};
  std::atomic<bool> stopping_{false};
  const backends::FunctionRef<void(std::int64_t)>* body_ = nullptr;
  std::int64_t chunks_ = 0;
  std::atomic<std::int64_t> next_{0};
  std::atomic<std::int64_t> done_{0};
  std::atomic<int> inside_{0};
  std::atomic<int> sleeping_{0};
  // How many threads take part now, the caller included; changed by the caller only.
  std::atomic<int> active_{1};
  ThreadGovernor governor_;
  MachineWatch watch_;
  std::int64_t next_look_ns_ = 0;
};

}  // namespace tessera::runtime
