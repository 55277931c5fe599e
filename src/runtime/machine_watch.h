#pragma once

// Reads from the kernel how the threads of a pool and the cores were used. Linux's /proc; where it
// does not answer, everything reads as zero.

#include <sched.h>
#include <sys/types.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/thread_governor.h"

namespace tessera::runtime {

// A file of /proc that is read again and again.
class ProcFile {
 public:
  explicit ProcFile(const char* path);
  ~ProcFile();
  ProcFile(ProcFile&& other) noexcept;
  ProcFile& operator=(ProcFile&& other) noexcept;

  // Its present text, at most what fits; empty where it cannot be read. Alive until the next read.
  [[nodiscard]] std::string_view read(std::vector<char>& buffer) const;

 private:
  int file_ = -1;
};

// A thread's times since it began, from its schedstat: "RAN WAITED SLICES" in nanoseconds.
struct ThreadTimes {
  std::int64_t ran_ns = 0;
  std::int64_t waited_ns = 0;  // ready to run, without a core
};
ThreadTimes parse_schedstat(std::string_view text);

// The idle time, with that spent waiting for disks, of the processors in `allowed`: the lines
// "cpuN user nice system idle iowait ..." of /proc/stat, in ticks of `tick_ns`.
std::int64_t parse_idle_ns(std::string_view stat, const cpu_set_t& allowed, std::int64_t tick_ns);

pid_t own_thread_id();

class MachineWatch {
 public:
  MachineWatch();

  // The workers, by their ids, in the order in which they take part. Called once, before `use`.
  void watch(const std::vector<pid_t>& workers);

  // What happened since the last call; by the calling thread and the first `workers` workers.
  // Idle times are read only where `with_idle`.
  MachineUse use(std::int64_t now_ns, std::size_t workers, bool with_idle);

 private:
  ThreadTimes read(const ProcFile& thread);

  struct Watched {
    ProcFile file;
    ThreadTimes last;
  };
  cpu_set_t allowed_{};
  std::int64_t tick_ns_;
  ProcFile stat_;
  std::vector<Watched> workers_;
  pid_t caller_id_ = 0;
  std::vector<Watched> caller_;  // one, of caller_id_
  std::int64_t last_ns_ = 0;
  std::int64_t last_idle_ns_ = 0;
  bool idle_known_ = false;
  std::vector<char> buffer_;
};

}  // namespace tessera::runtime
