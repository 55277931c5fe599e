#include "runtime/thread_pool.h"

#include <gtest/gtest.h>

#include <chrono>

#include "testing/random.h"

namespace tessera::runtime {
namespace {

// Runs a job; how many of its chunks ran other than once.
std::int64_t wrong_chunks(ThreadPool& pool, std::int64_t chunks,
                          std::vector<std::atomic<int>>& counts) {
  for (auto& count : counts) count.store(0);
  pool.run(chunks,
           [&](std::int64_t chunk) { counts[static_cast<std::size_t>(chunk)].fetch_add(1); });
  std::int64_t wrong = 0;
  for (std::size_t i = 0; i < counts.size(); ++i)
    wrong += counts[i].load() != (static_cast<std::int64_t>(i) < chunks ? 1 : 0);
  return wrong;
}

TEST(ThreadPool, RunsEveryChunkOnce) {
  for (const int threads : {1, 2, 4}) {
    SCOPED_TRACE(threads);
    ThreadPool pool(threads);
    testing::Random random(static_cast<std::uint64_t>(threads));
    std::vector<std::atomic<int>> counts(40);
    for (int job = 0; job < 3000; ++job)
      ASSERT_EQ(wrong_chunks(pool, random.integer(0, 39), counts), 0) << job;
    EXPECT_GE(pool.threads(), 1);
    EXPECT_LE(pool.threads(), threads);
  }
}

TEST(ThreadPool, WakesSleepingWorkers) {
  ThreadPool pool(3);
  std::vector<std::atomic<int>> counts(6);
  for (int job = 0; job < 10; ++job) {
    std::this_thread::sleep_for(std::chrono::milliseconds(3));  // longer than workers spin
    ASSERT_EQ(wrong_chunks(pool, 6, counts), 0) << job;
  }
}

// Two chunks that wait for each other end only if two threads take one each.
TEST(ThreadPool, WorkersTakePart) {
  ThreadPool pool(2);
  std::atomic<int> arrived{0};
  pool.run(2, [&](std::int64_t) {
    arrived.fetch_add(1);
    while (arrived.load() < 2) std::this_thread::yield();
  });
  EXPECT_EQ(arrived.load(), 2);
}

TEST(ThreadPool, EndsWithoutWork) {
  for (int i = 0; i < 50; ++i) ThreadPool pool(4);
}

}  // namespace
}  // namespace tessera::runtime
