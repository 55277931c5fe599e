#pragma once

// The threads and the caches around a kernel that is timed.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backends/run_interface.h"
#include "plan/cost_table.h"
#include "runtime/thread_pool.h"

namespace tessera::compiler {

// In a run, the operands of a kernel were written by the kernels before it, on all threads, and its
// results go where others lay before: part of it is in another core's cache. A kernel that is only
// repeated finds what it left itself, and one that moves data then looks several times too cheap.
class Surroundings {
 public:
  // `threads` includes the caller's.
  Surroundings(int threads, plan::CacheState caches);

  [[nodiscard]] int threads() const { return threads_; }
  [[nodiscard]] plan::CacheState caches() const { return caches_; }
  [[nodiscard]] runtime::ThreadPool& pool() { return pool_; }
  // Whether others use a core that the threads were meant for.
  [[nodiscard]] bool is_busy() const { return pool_.threads() < threads_; }

  void empty_caches();

  // As a run leaves things before a kernel. Shared: constants, code and all else have left the
  // caches of the cores, not the one that they share. Streamed: its constants are in memory, and
  // all else, addresses of pages too, has left the caches of the cores. Then the threads wrote the
  // pages of each operand, a page each in turn, the last operand first. Contents stay as they are.
  void hand_over(std::span<const backends::DeviceBuffer> operands,
                 std::span<const std::span<const std::byte>> constants);

 private:
  void read_others(std::int64_t size_bytes, std::int64_t step_bytes);
  void stream_out(std::span<const std::span<const std::byte>> constants);

  int threads_;
  plan::CacheState caches_;
  runtime::ThreadPool pool_;
  std::int64_t private_bytes_ = 0;                   // per thread: pushes all out of its own caches
  std::vector<std::vector<std::byte>> other_bytes_;  // per thread: push all out of every cache
};

}  // namespace tessera::compiler
