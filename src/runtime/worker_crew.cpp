#include "runtime/worker_crew.h"

#include <algorithm>
#include <utility>

#include "runtime/machine_watch.h"

namespace tessera::runtime {
namespace {

constexpr int kSpinRounds = 4000;  // about 40 to 100 us of pauses before a worker sleeps
constexpr int kLongestSpinRounds = 10 * kSpinRounds;  // while a run is under way

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

}  // namespace

void WorkerCrew::Job::open(std::int64_t chunks, const Body& body) {
  body_ = &body;
  chunks_ = chunks;
  done_.store(0, std::memory_order_relaxed);
  left_.store(chunks);
}

bool WorkerCrew::Job::take_chunk() {
  const std::int64_t left = left_.fetch_sub(1);
  if (left <= 0) return false;
  (*body_)(chunks_ - left);
  done_.fetch_add(1, std::memory_order_acq_rel);
  return true;
}

bool WorkerCrew::Job::join() {
  if (!is_open()) return false;
  if (helping_.fetch_add(1) < helpers_.load()) return true;
  leave();
  return false;
}

std::shared_ptr<WorkerCrew> WorkerCrew::of_process() {
  static std::mutex mutex;
  static std::weak_ptr<WorkerCrew> known;
  const std::lock_guard lock(mutex);
  std::shared_ptr<WorkerCrew> crew = known.lock();
  if (crew == nullptr) known = crew = std::make_shared<WorkerCrew>(usable_processors() - 1);
  return crew;
}

WorkerCrew::WorkerCrew(int enough, Leave leave) : enough_(enough), leave_(std::move(leave)) {}

WorkerCrew::~WorkerCrew() {
  stopping_.store(true);
  change_active(size());
  opened_.fetch_add(1);
  opened_.notify_all();
  for (Worker& worker : workers_) worker.thread.join();
}

WorkerCrew::Job& WorkerCrew::enlist(int helpers) {
  const std::lock_guard lock(mutex_);
  wanted_ += helpers;
  most_wanted_ = std::max(most_wanted_, helpers);
  const int needed = std::min(wanted_, std::max(most_wanted_, enough_));
  while (static_cast<int>(workers_.size()) < needed) start_worker();
  Job& job = free_job();
  job.enlisted_helpers_ = helpers;
  set_helpers(job, helpers);
  return job;
}

void WorkerCrew::start_worker() {
  const int number = static_cast<int>(workers_.size());
  Worker& worker = workers_.emplace_back();
  caller_processor_.store(current_processor(), std::memory_order_relaxed);
  worker.thread = std::thread([this, &worker, number] { work(worker, number); });
  worker.id.wait(0);
}

WorkerCrew::Job& WorkerCrew::free_job() {
  const auto found =
      std::ranges::find_if(jobs_, [](const Job& job) { return job.enlisted_helpers_ == 0; });
  if (found != jobs_.end()) return *found;
  Job& job = jobs_.emplace_back();
  job.next_ = first_.load();
  first_.store(&job);
  return job;
}

void WorkerCrew::dismiss(Job& job) {
  const std::lock_guard lock(mutex_);
  wanted_ -= job.enlisted_helpers_;
  job.enlisted_helpers_ = 0;
  set_helpers(job, 0);
}

void WorkerCrew::set_helpers(Job& job, int helpers) {
  change_active(helpers - job.helpers_.exchange(helpers));
}

void WorkerCrew::change_active(int by) {
  active_.fetch_add(by);
  active_.notify_all();
}

std::vector<pid_t> WorkerCrew::ids(int count) const {
  const std::lock_guard lock(mutex_);
  std::vector<pid_t> ids;
  for (const Worker& worker : workers_)
    if (static_cast<int>(ids.size()) < count) ids.push_back(worker.id.load());
  return ids;
}

int WorkerCrew::size() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(workers_.size());
}

void WorkerCrew::run(Job& job, std::int64_t chunks, const Body& body) {
  job.open(chunks, body);
  caller_processor_.store(current_processor(), std::memory_order_relaxed);
  opened_.fetch_add(1);
  // As many as find something to do; a worker woken too few is missed by nobody for long, since
  // the caller takes every chunk that is left.
  const std::int64_t useful =
      std::min<std::int64_t>({chunks - 1, job.helpers_.load(), sleeping_.load()});
  for (std::int64_t i = 0; i < useful; ++i) opened_.notify_one();
  while (job.take_chunk()) {
  }
  // Where more threads than cores share the machine, the one waited for may need this core: hence
  // the yield after a while.
  for (int round = 0; !job.is_done(); ++round)
    round < kSpinRounds ? pause() : std::this_thread::yield();
}

WorkerCrew::Job* WorkerCrew::join_next(const Job* last) {
  Job* const first = first_.load();
  if (first == nullptr) return nullptr;
  const auto after = [first](const Job* job) {
    return job == nullptr || job->next_ == nullptr ? first : job->next_;
  };
  Job* const start = after(last);
  Job* job = start;
  do {
    if (job->join()) return job;
    job = after(job);
  } while (job != start);
  return nullptr;
}

bool WorkerCrew::is_another_open(const Job& job) const {
  for (const Job* other = first_.load(); other != nullptr; other = other->next_)
    if (other != &job && other->is_open()) return true;
  return false;
}

// A thread starts, and often wakes, where the one who wants its help runs. The two then take turns
// there beside an idle processor until the kernel balances its load: for 50 ms and more.
void WorkerCrew::leave_caller(int number) const {
  leave_(caller_processor_.load(std::memory_order_relaxed), number);
}

void WorkerCrew::work(Worker& worker, int number) {
  worker.id.store(own_thread_id());
  leave_caller(number);
  worker.id.notify_one();
  Job* job = nullptr;  // the one served last
  while (true) {
    const std::uint32_t seen = opened_.load();
    if (stopping_.load()) return;
    if (park(number)) continue;
    Job* const next = join_next(job);
    if (next == nullptr) {
      if (await_opening(seen)) leave_caller(number);
      continue;
    }
    job = next;
    while (job->take_chunk() && !is_another_open(*job)) {
    }
    job->leave();
  }
}

// Where this worker is one too many: sleeps until it may take part, and is true.
bool WorkerCrew::park(int number) {
  int active = active_.load();
  if (number < active) return false;
  for (; number >= active; active = active_.load()) active_.wait(active);
  return true;
}

bool WorkerCrew::await_opening(std::uint32_t seen) {
  // Waking up takes a job of 10 us as long again: one does not sleep between the kernels of a run.
  int without_run = 0;
  for (int round = 0; round < kLongestSpinRounds && without_run < kSpinRounds; ++round) {
    if (opened_.load(std::memory_order_acquire) != seen) return false;
    without_run = runs_.load(std::memory_order_relaxed) > 0 ? 0 : without_run + 1;
    pause();
  }
  sleeping_.fetch_add(1);
  opened_.wait(seen);
  sleeping_.fetch_sub(1);
  return true;
}

}  // namespace tessera::runtime
