#include "runtime/thread_pool.h"

#include <algorithm>
#include <utility>

#include "runtime/trace.h"

namespace tessera::runtime {
namespace {

// Between two looks at the machine: long enough for a look to cost nothing, with all threads; and
// for idle times in ticks of 10 ms, with fewer.
constexpr std::int64_t kLookNs = 4'000'000;
constexpr std::int64_t kIdleLookNs = 10'000'000;

}  // namespace

ThreadPool::ThreadPool(int threads)
    : ThreadPool(threads, threads > 1 ? WorkerCrew::of_process() : nullptr) {}

ThreadPool::ThreadPool(int threads, std::shared_ptr<WorkerCrew> crew)
    : all_(std::max(threads, 1)), crew_(std::move(crew)), governor_(all_) {
  if (all_ == 1) return;
  job_ = &crew_->enlist(all_ - 1);
  // Beside other sessions it may be others that help; these tell as well whether cores are free.
  watch_.watch(crew_->ids(all_ - 1));
}

ThreadPool::~ThreadPool() {
  if (job_ != nullptr) crew_->dismiss(*job_);
}

void ThreadPool::run(std::int64_t chunks, backends::FunctionRef<void(std::int64_t)> body) {
  const bool lowered = governor_.active() < all_;
  if (chunks > 1 && governor_.active() > 1) {
    crew_->run(*job_, chunks, body);
  } else {
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) body(chunk);
    if (!lowered) return;
  }
  look_at_machine();
}

void ThreadPool::look_at_machine() {
  const std::int64_t time_ns = now_ns();
  if (time_ns < next_look_ns_) return;
  const int active = governor_.active();
  governor_.observe(watch_.use(time_ns, static_cast<std::size_t>(active - 1), active < all_));
  if (governor_.active() != active) crew_->set_helpers(*job_, governor_.active() - 1);
  next_look_ns_ = time_ns + (active > 1 ? kLookNs : kIdleLookNs);
}

}  // namespace tessera::runtime
