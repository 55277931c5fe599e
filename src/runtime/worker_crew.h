#pragma once

// The workers that the pools of a process share. Every pool has a job of its own, open while it has
// chunks left. The pool's caller works on its job whatever the workers do, so nobody waits for a
// worker that is busy elsewhere; a worker serves the open jobs in turn, a chunk at a time.

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "backends/run_interface.h"
#include "base/processors.h"

namespace tessera::runtime {

class WorkerCrew {
 public:
  using Body = backends::FunctionRef<void(std::int64_t)>;
  class Job;
  // Called by a worker, with its number and the processor of its caller.
  using Leave = std::function<void(int taken, int number)>;

  // The crew of the process, for as many workers as it has processors beside the caller's; there
  // as long as somebody holds it.
  static std::shared_ptr<WorkerCrew> of_process();
  // `enough`: no more workers than this, unless one pool alone asks for more. `leave`: what a
  // worker does when it starts, and when it was woken.
  explicit WorkerCrew(int enough, Leave leave = &leave_processor);
  ~WorkerCrew();
  WorkerCrew(const WorkerCrew&) = delete;
  WorkerCrew& operator=(const WorkerCrew&) = delete;

  // A pool comes, and may be helped by `helpers` workers at a time; starts those that are missing.
  // Its job belongs to it until it is dismissed.
  Job& enlist(int helpers);
  void dismiss(Job& job);
  // How many may help from now on; called by the job's pool only.
  void set_helpers(Job& job, int helpers);

  // body(chunk) for each chunk in [0, chunks); returns when all are done. One caller at a time for
  // one job.
  void run(Job& job, std::int64_t chunks, const Body& body);

  // Of a session, in pairs: in between more jobs are likely to come soon, so that workers stay
  // awake for longer.
  void begin_run() { runs_.fetch_add(1, std::memory_order_relaxed); }
  void end_run() { runs_.fetch_sub(1, std::memory_order_relaxed); }

  // The thread ids of the first `count` workers, in the order in which they were started.
  [[nodiscard]] std::vector<pid_t> ids(int count) const;
  [[nodiscard]] int size() const;

 private:
  struct Worker {
    std::atomic<pid_t> id{0};  // 0 until it runs
    std::thread thread;
  };

  void start_worker();
  Job& free_job();
  void work(Worker& worker, int number);
  bool park(int number);
  void change_active(int by);
  bool await_opening(std::uint32_t seen);  // whether it slept
  void leave_caller(int number) const;
  // An open job with room for one more, the first one after `last`; joined. Null: there is none.
  Job* join_next(const Job* last);
  [[nodiscard]] bool is_another_open(const Job& job) const;

  const int enough_;
  const Leave leave_;
  mutable std::mutex mutex_;  // enlist and dismiss; a run takes no lock
  std::deque<Worker> workers_;
  std::deque<Job> jobs_;  // never fewer: a worker may look at one at any time
  int wanted_ = 0;        // helpers of all pools together
  int most_wanted_ = 0;   // by one pool, ever

  std::atomic<Job*> first_{nullptr};
  std::atomic<bool> stopping_{false};
  // Workers with a number of at least this sleep: nobody wants so many.
  std::atomic<int> active_{0};
  // Jobs opened so far, modulo its size. As wide as a futex, so that one sleeper can be woken.
  std::atomic<std::uint32_t> opened_{0};
  std::atomic<int> sleeping_{0};
  std::atomic<int> runs_{0};               // under way
  std::atomic<int> caller_processor_{-1};  // where the last job was opened
};

// Body and count are written by the caller while the job is closed. They are read by who has taken
// a chunk, and the caller goes on only when all chunks are done: so a worker that comes late finds
// no chunk, or one of the next loop with its body.
class alignas(64) WorkerCrew::Job {
 public:
  // For the caller.
  void open(std::int64_t chunks, const Body& body);
  [[nodiscard]] bool is_done() const { return done_.load(std::memory_order_acquire) == chunks_; }

  // Runs a chunk; false where none is left.
  bool take_chunk();

  [[nodiscard]] bool is_open() const { return left_.load() > 0; }
  bool join();  // as a helper; false where it is closed or has helpers enough
  void leave() { helping_.fetch_sub(1); }

 private:
  friend class WorkerCrew;
  const Body* body_ = nullptr;
  std::int64_t chunks_ = 0;
  std::atomic<std::int64_t> left_{0};  // below 0 where workers came late
  std::atomic<std::int64_t> done_{0};
  std::atomic<int> helping_{0};
  std::atomic<int> helpers_{0};  // at most so many at a time
  int enlisted_helpers_ = 0;     // under the crew's mutex; 0: the job is free
  Job* next_ = nullptr;          // older ones; set once
};

}  // namespace tessera::runtime
