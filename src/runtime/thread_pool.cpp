#include "runtime/thread_pool.h"

#include <algorithm>
#include <chrono>

namespace tessera::runtime {
namespace {

constexpr int kSpinRounds = 4000;  // about 40 to 100 us of pauses before a worker sleeps
// Between two looks at the machine: long enough for a look to cost nothing, with all threads; and
// for idle times in ticks of 10 ms, with fewer.
constexpr std::int64_t kLookNs = 4'000'000;
constexpr std::int64_t kIdleLookNs = 10'000'000;

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// Odd epochs are closed: no job is open between two runs.
constexpr bool is_closed(std::uint64_t epoch) {
  return epoch % 2 != 0;
}

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

ThreadPool::ThreadPool(int threads)
    : ids_(static_cast<std::size_t>(std::max(threads - 1, 0))),
      active_(std::max(threads, 1)),
      governor_(std::max(threads, 1)) {
  for (int worker = 1; worker < threads; ++worker)
    workers_.emplace_back([this, worker] { work(worker); });
  std::vector<pid_t> started;
  for (std::atomic<pid_t>& id : ids_) {
    id.wait(0);
    started.push_back(id.load());
  }
  if (!workers_.empty()) watch_.watch(started);
}

ThreadPool::~ThreadPool() {
  stopping_.store(true);
  set_active(static_cast<int>(workers_.size()) + 1);
  epoch_.fetch_add(1);
  epoch_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

std::uint64_t ThreadPool::await_job(std::uint64_t seen) {
  const auto waits = [seen](std::uint64_t epoch) { return epoch == seen || is_closed(epoch); };
  std::uint64_t current = epoch_.load(std::memory_order_acquire);
  for (int round = 0; waits(current) && round < kSpinRounds; ++round) {
    pause();
    current = epoch_.load(std::memory_order_acquire);
  }
  while (waits(current)) {
    sleeping_.fetch_add(1);
    epoch_.wait(current);
    sleeping_.fetch_sub(1);
    current = epoch_.load(std::memory_order_acquire);
  }
  return current;
}

void ThreadPool::take_chunks(const backends::FunctionRef<void(std::int64_t)>& body,
                             std::int64_t chunks) {
  for (std::int64_t chunk = next_.fetch_add(1); chunk < chunks; chunk = next_.fetch_add(1)) {
    body(chunk);
    done_.fetch_add(1, std::memory_order_acq_rel);
  }
}

void ThreadPool::work(int worker) {
  std::atomic<pid_t>& id = ids_[static_cast<std::size_t>(worker - 1)];
  id.store(own_thread_id());
  id.notify_one();
  std::uint64_t seen = 0;
  while (true) {
    seen = await_job(seen);
    if (stopping_.load(std::memory_order_acquire)) return;
    if (park(worker)) continue;
    // Once inside under an open epoch, the job stays as it is until this worker has left: run()
    // closes the epoch first and then waits for inside_ to fall to zero.
    inside_.fetch_add(1);
    if (epoch_.load() == seen) take_chunks(*body_, chunks_);
    inside_.fetch_sub(1, std::memory_order_release);
  }
}

void ThreadPool::run(std::int64_t chunks, backends::FunctionRef<void(std::int64_t)> body) {
  if (workers_.empty() || chunks <= 1) {
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) body(chunk);
    if (active_.load(std::memory_order_relaxed) <= static_cast<int>(workers_.size()))
      look_at_machine();
    return;
  }
  body_ = &body;
  chunks_ = chunks;
  done_.store(0);
  next_.store(0);
  epoch_.fetch_add(1);  // open
  if (sleeping_.load() > 0) epoch_.notify_all();
  take_chunks(body, chunks);
  // Where more threads than cores share the machine, the one waited for may need this core: hence
  // the yield after a while.
  const auto await = [](auto&& reached) {
    for (int round = 0; !reached(); ++round)
      round < kSpinRounds ? pause() : std::this_thread::yield();
  };
  await([&] { return done_.load(std::memory_order_acquire) == chunks; });
  epoch_.fetch_add(1);  // closed
  await([&] { return inside_.load() == 0; });
  look_at_machine();
}

void ThreadPool::set_active(int threads) {
  active_.store(threads);
  active_.notify_all();
}

// Where this worker is one too many: sleeps until it may take part, and is true.
bool ThreadPool::park(int worker) {
  int active = active_.load();
  if (worker < active) return false;
  for (; worker >= active; active = active_.load()) active_.wait(active);
  return true;
}

void ThreadPool::look_at_machine() {
  const std::int64_t time_ns = now_ns();
  if (time_ns < next_look_ns_) return;
  const int active = governor_.active();
  const bool lowered = active <= static_cast<int>(workers_.size());
  governor_.observe(watch_.use(time_ns, static_cast<std::size_t>(active - 1), lowered));
  if (governor_.active() != active) set_active(governor_.active());
  next_look_ns_ = time_ns + (active > 1 ? kLookNs : kIdleLookNs);
}

}  // namespace tessera::runtime
