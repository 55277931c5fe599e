#include "compiler/machine_rates.h"

#include <atomic>
#include <chrono>
#include <thread>

#include "backends/registry_compile/registry_compile.h"
#include "base/statistics.h"
#include "runtime/thread_pool.h"

namespace tessera::compiler {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSamples = 25;
constexpr int kJobsPerSample = 50;
constexpr int kMaxTries = 200;
constexpr auto kPause = std::chrono::milliseconds(2);  // longer than a worker spins
constexpr double kLongestWaitUs = 2000;                // for a thread that has no core

double elapsed_us(Clock::time_point since) {
  return std::chrono::duration<double, std::micro>(Clock::now() - since).count();
}

// A job in which all threads take part: each waits until all are there.
void meet(runtime::ThreadPool& pool) {
  const int threads = pool.threads();
  std::atomic<int> there{0};
  const auto begin = Clock::now();
  pool.run(threads, [&](std::int64_t) {
    there.fetch_add(1);
    for (int round = 0; there.load() < threads; ++round)
      if (round % 64 == 63 && elapsed_us(begin) > kLongestWaitUs) return;
  });
}

// One summary of `kSamples` times of `jobs` jobs, each a job's; `before` is not timed. What the
// pool did with fewer threads does not count; while it has fewer it gets time to see free cores.
template <typename Before>
SampleSummary time_jobs(runtime::ThreadPool& pool, int threads, int jobs, const Before& before) {
  std::vector<double> samples_us;
  for (int i = 0; i < kMaxTries && samples_us.size() < kSamples; ++i) {
    before();
    const auto begin = Clock::now();
    for (int job = 0; job < jobs; ++job) meet(pool);
    if (pool.threads() == threads)
      samples_us.push_back(elapsed_us(begin) / jobs);
    else
      std::this_thread::sleep_for(kPause);
  }
  return summarize(samples_us);
}

}  // namespace

Result<backends::RatesFile> measure_machine(int threads) {
  TESSERA_ASSIGN(backends::RatesFile file, backends::measure_device(threads));
  if (threads == 1) return file;  // a run stays on the caller's thread
  runtime::ThreadPool pool(threads);
  const auto hand_over = time_jobs(pool, threads, kJobsPerSample, [&] { meet(pool); });
  const auto wake_up = time_jobs(pool, threads, 1, [] { std::this_thread::sleep_for(kPause); });
  auto& measured = file.measured;
  measured.rates.hand_over_us = hand_over.median;
  measured.rates.wake_up_us = wake_up.median;
  if (hand_over.count > 0) measured.spreads["hand_over"] = hand_over.spread / hand_over.median;
  if (wake_up.count > 0) measured.spreads["wake_up"] = wake_up.spread / wake_up.median;
  measured.busy = measured.busy || hand_over.count < kSamples || wake_up.count < kSamples;
  return file;
}

}  // namespace tessera::compiler
