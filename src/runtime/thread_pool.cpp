#include "runtime/thread_pool.h"

#include <chrono>

namespace tessera::runtime {
namespace {

constexpr int kSpinRounds = 4000;    // about 40 to 100 us of pauses before a worker sleeps
constexpr int kJoinsPerWindow = 64;  // joins between two decisions on the number of threads
constexpr double kLostShareToLower = 0.3;
constexpr int kWindowsUntilProbe = 16;  // windows at fewer threads before one more is tried

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

ThreadPool::ThreadPool(int threads) : active_(threads < 1 ? 1 : threads) {
  for (int worker = 1; worker < threads; ++worker)
    workers_.emplace_back([this, worker] { work(worker); });
}

ThreadPool::~ThreadPool() {
  stopping_.store(true);
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
  std::uint64_t seen = 0;
  while (true) {
    seen = await_job(seen);
    if (stopping_.load(std::memory_order_acquire)) return;
    if (worker >= active_.load(std::memory_order_relaxed)) continue;
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
    return;
  }
  const std::int64_t start_ns = now_ns();
  body_ = &body;
  chunks_ = chunks;
  done_.store(0);
  next_.store(0);
  epoch_.fetch_add(1);  // open
  if (sleeping_.load() > 0) epoch_.notify_all();
  take_chunks(body, chunks);
  const std::int64_t own_end_ns = now_ns();
  // Where more threads than cores share the machine, the one waited for may need this core: hence
  // the yield after a while.
  const auto await = [](auto&& reached) {
    for (int round = 0; !reached(); ++round)
      round < kSpinRounds ? pause() : std::this_thread::yield();
  };
  await([&] { return done_.load(std::memory_order_acquire) == chunks; });
  epoch_.fetch_add(1);  // closed
  await([&] { return inside_.load() == 0; });
  adapt(own_end_ns - start_ns, now_ns() - own_end_ns);
}

void ThreadPool::adapt(std::int64_t busy_ns, std::int64_t lost_ns) {
  window_busy_ns_ += busy_ns;
  window_lost_ns_ += lost_ns;
  if (++window_joins_ < kJoinsPerWindow) return;
  const int all = static_cast<int>(workers_.size()) + 1;
  const int active = active_.load(std::memory_order_relaxed);
  if (static_cast<double>(window_lost_ns_) >
          kLostShareToLower * static_cast<double>(window_busy_ns_ + window_lost_ns_) &&
      active > 1) {
    active_.store(active - 1, std::memory_order_relaxed);
    windows_until_probe_ = kWindowsUntilProbe;
  } else if (active < all && --windows_until_probe_ <= 0) {
    active_.store(active + 1, std::memory_order_relaxed);
    windows_until_probe_ = kWindowsUntilProbe;
  }
  window_busy_ns_ = window_lost_ns_ = 0;
  window_joins_ = 0;
}

}  // namespace tessera::runtime
