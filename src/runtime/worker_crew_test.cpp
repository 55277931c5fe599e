// Several pools on one crew of workers. What a thread waits for here is another thread's progress,
// never a time: a crew that lets a caller wait for a worker hangs.

#include "runtime/worker_crew.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <latch>
#include <numeric>

#include "runtime/machine_watch.h"
#include "runtime/thread_pool.h"
#include "testing/random.h"

namespace tessera::runtime {
namespace {

using ::testing::Each;

constexpr std::int64_t kChunks = 20;

// Two callers hold a chunk each until the one worker has done all the others.
TEST(WorkerCrew, AWorkerServesOpenJobsInTurn) {
  const auto crew = std::make_shared<WorkerCrew>(1);
  std::array<ThreadPool, 2> pools = {ThreadPool(2, crew), ThreadPool(2, crew)};
  ASSERT_EQ(crew->size(), 1);
  std::latch both_callers(2);
  std::atomic<std::int64_t> left_to_worker{2 * (kChunks - 1)};
  std::vector<std::size_t> served;  // by the worker
  const auto call = [&](std::size_t pool) {
    const auto caller = std::this_thread::get_id();
    pools.at(pool).run(kChunks, [&](std::int64_t) {
      if (std::this_thread::get_id() == caller) {
        both_callers.count_down();
        while (left_to_worker.load() > 0) std::this_thread::yield();
      } else {
        both_callers.wait();
        served.push_back(pool);
        left_to_worker.fetch_sub(1);
      }
    });
  };
  std::thread other([&] { call(1); });
  call(0);
  other.join();
  ASSERT_EQ(served.size(), 2 * (kChunks - 1));
  for (std::size_t i = 1; i < served.size(); ++i) EXPECT_NE(served[i], served[i - 1]) << i;
}

TEST(WorkerCrew, ACallerDoesAllOfItsJobWhereTheWorkerIsTaken) {
  const auto crew = std::make_shared<WorkerCrew>(1);
  ThreadPool busy(2, crew);
  ThreadPool pool(2, crew);
  std::latch both_inside(2);
  std::latch is_done(1);
  std::thread other([&] {
    busy.run(2, [&](std::int64_t) {
      both_inside.count_down();
      is_done.wait();
    });
  });
  both_inside.wait();
  std::vector<std::thread::id> by(kChunks);
  for (int job = 0; job < 100; ++job) {
    pool.run(kChunks, [&](std::int64_t chunk) {
      by[static_cast<std::size_t>(chunk)] = std::this_thread::get_id();
    });
    ASSERT_THAT(by, Each(std::this_thread::get_id()));
  }
  is_done.count_down();
  other.join();
}

TEST(WorkerCrew, APoolIsHelpedByNoMoreThreadsThanItHas) {
  const auto crew = std::make_shared<WorkerCrew>(3);
  ThreadPool large(4, crew);
  ThreadPool pool(2, crew);
  ASSERT_EQ(crew->size(), 3);
  std::atomic<int> inside{0};
  std::atomic<int> too_many{0};
  for (int job = 0; job < 200; ++job)
    pool.run(8, [&](std::int64_t) {
      too_many.fetch_add(inside.fetch_add(1) >= 2 ? 1 : 0);
      std::this_thread::yield();
      inside.fetch_sub(1);
    });
  EXPECT_EQ(too_many.load(), 0);
}

TEST(WorkerCrew, HasNoMoreWorkersThanAreEnoughOrThanOnePoolAsksFor) {
  const auto crew = std::make_shared<WorkerCrew>(2);
  const ThreadPool one(2, crew);
  EXPECT_EQ(crew->size(), 1);
  const ThreadPool two(2, crew);
  EXPECT_EQ(crew->size(), 2);
  const ThreadPool three(2, crew);
  EXPECT_EQ(crew->size(), 2);
  {
    const ThreadPool large(6, crew);
    EXPECT_EQ(crew->size(), 5);
  }
  const ThreadPool again(6, crew);
  EXPECT_EQ(crew->size(), 5);
}

TEST(WorkerCrew, OfTheProcessIsThereAsLongAsSomebodyHoldsIt) {
  std::weak_ptr<WorkerCrew> crew;
  {
    const ThreadPool one(2);
    const ThreadPool two(2);
    const auto held = WorkerCrew::of_process();
    EXPECT_EQ(held.use_count(), 3);
    crew = held;
  }
  EXPECT_TRUE(crew.expired());
}

// Whether the kernel says that a thread of this process sleeps.
class SleepWatch {
 public:
  explicit SleepWatch(pid_t thread)
      : stat_(fmt::format("/proc/self/task/{}/stat", thread).c_str()), buffer_(512) {}
  bool sleeps() {
    const std::string_view text = stat_.read(buffer_);  // "ID (NAME) STATE ..."
    return text.find(") S ") != std::string_view::npos;
  }

 private:
  ProcFile stat_;
  std::vector<char> buffer_;
};

// Two chunks that wait for each other: the worker takes one.
void share_a_job(WorkerCrew& crew, WorkerCrew::Job& job) {
  std::latch both(2);
  crew.run(job, 2, [&](std::int64_t) { both.arrive_and_wait(); });
}

// Each time that it should leave, it is put beside its caller first, until it finds itself there.
TEST(WorkerCrew, AWorkerLeavesTheProcessorOfItsCallerWhenItStartsAndWhenItWasWoken) {
  if (allowed_processors().size() < 2) GTEST_SKIP() << "only one processor is allowed";
  std::atomic<int> left{0};
  std::atomic<int> stayed{0};
  WorkerCrew crew(1, [&](int taken, int number) {
    std::optional<int> to;
    for (int attempt = 0; attempt < 1000 && !to; ++attempt) {
      move_to_processor(taken);
      to = leave_processor(taken, number);
    }
    (to && *to != taken ? left : stayed).fetch_add(1);
  });
  WorkerCrew::Job& job = crew.enlist(1);
  SleepWatch worker(crew.ids(1).front());
  const auto wait_until_it_sleeps = [&] {
    while (!worker.sleeps()) std::this_thread::yield();
  };
  wait_until_it_sleeps();
  EXPECT_EQ(left.load(), 1);
  for (int woken = 0; woken < 20; ++woken) {
    share_a_job(crew, job);
    EXPECT_GT(left.load(), 1 + woken);
    wait_until_it_sleeps();
  }
  EXPECT_EQ(stayed.load(), 0);
  crew.dismiss(job);
}

// Sum of the squares below `chunks`, through `pool`, against the formula.
bool sums_up(ThreadPool& pool, std::int64_t chunks) {
  std::vector<std::int64_t> squares(static_cast<std::size_t>(chunks), -1);
  pool.run(chunks,
           [&](std::int64_t chunk) { squares[static_cast<std::size_t>(chunk)] = chunk * chunk; });
  return std::accumulate(squares.begin(), squares.end(), std::int64_t{0}) ==
         (chunks - 1) * chunks * (2 * chunks - 1) / 6;
}

TEST(WorkerCrew, RunsEveryChunkOnceWhilePoolsComeAndGo) {
  const auto crew = std::make_shared<WorkerCrew>(2);
  constexpr int kCallers = 4;
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < kCallers; ++caller)
    callers.emplace_back([&, caller] {
      testing::Random random(static_cast<std::uint64_t>(caller));
      for (int life = 0; life < 40; ++life) {
        ThreadPool pool(static_cast<int>(random.integer(2, 4)), crew);
        for (int job = 0; job < 30; ++job)
          wrong.fetch_add(sums_up(pool, random.integer(1, 12)) ? 0 : 1);
      }
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace tessera::runtime
