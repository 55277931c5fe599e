#include "runtime/thread_governor.h"

#include <gtest/gtest.h>

#include "runtime/machine_watch.h"

namespace tessera::runtime {
namespace {

constexpr std::int64_t kMs = 1'000'000;

// Looks of 10 ms until `ms` have passed; `waited` and `idle` in milliseconds of each look.
void pass(ThreadGovernor& governor, std::int64_t ms, std::int64_t waited, std::int64_t idle) {
  for (std::int64_t passed = 0; passed < ms; passed += 10)
    governor.observe({10 * kMs, 0, waited * kMs, idle * kMs});
}

TEST(ThreadGovernor, KeepsAllThreadsOnAQuietMachine) {
  ThreadGovernor governor(4);
  pass(governor, 1000, 1, 0);
  EXPECT_EQ(governor.active(), 4);
}

TEST(ThreadGovernor, GoesDownWhereThreadsWaitAndComesBackWhereACoreIsFree) {
  ThreadGovernor governor(2);
  pass(governor, 20, 4, 0);
  EXPECT_EQ(governor.active(), 1);
  pass(governor, 500, 0, 1);  // the other core is taken
  EXPECT_EQ(governor.active(), 1);
  pass(governor, 60, 0, 9);
  EXPECT_EQ(governor.active(), 2);
}

// Another process that needs a core for some milliseconds does not cost a thread.
TEST(ThreadGovernor, BearsAPassingTask) {
  ThreadGovernor governor(2);
  for (int second = 0; second < 10; ++second) {
    governor.observe({4 * kMs, 0, 1 * kMs, 0});
    for (int look = 0; look < 5; ++look) governor.observe({4 * kMs, 0, 0, 0});
  }
  EXPECT_EQ(governor.active(), 2);
}

TEST(ThreadGovernor, NeverGoesBelowTheCaller) {
  ThreadGovernor governor(3);
  pass(governor, 1000, 10, 0);
  EXPECT_EQ(governor.active(), 1);
}

TEST(ThreadGovernor, MeasuresWaitingAgainstItsOwnTime) {
  ThreadGovernor governor(2);
  for (int look = 0; look < 3; ++look)
    governor.observe({100 * kMs, 95 * kMs, 2 * kMs, 0});  // 2 of 5 ms
  EXPECT_EQ(governor.active(), 1);
}

// While the caller does nothing, its core is idle: that is not a free one.
TEST(ThreadGovernor, DoesNotTakeItsOwnCoreForAFreeOne) {
  ThreadGovernor governor(2);
  pass(governor, 20, 4, 0);
  for (int look = 0; look < 50; ++look) governor.observe({10 * kMs, 9 * kMs, 0, 9 * kMs});
  EXPECT_EQ(governor.active(), 1);
}

TEST(ThreadGovernor, WaitsLongerAfterARaiseThatDidNotLast) {
  ThreadGovernor governor(2);
  const auto looks_until_raised = [&] {
    int looks = 0;
    for (; governor.active() < 2; ++looks) pass(governor, 10, 0, 10);
    return looks;
  };
  pass(governor, 20, 4, 0);
  const int first = looks_until_raised();
  pass(governor, 20, 4, 0);
  const int second = looks_until_raised();
  pass(governor, 20, 4, 0);
  EXPECT_GT(second, first);
  EXPECT_GT(looks_until_raised(), second);
  pass(governor, 300, 0, 0);  // this one lasts
  pass(governor, 20, 4, 0);
  EXPECT_EQ(looks_until_raised(), first);
}

TEST(MachineWatch, ReadsAThreadsTimes) {
  const ThreadTimes times = parse_schedstat("123456 789 42\n");
  EXPECT_EQ(times.ran_ns, 123456);
  EXPECT_EQ(times.waited_ns, 789);
  EXPECT_EQ(parse_schedstat("").ran_ns, 0);
}

TEST(MachineWatch, SumsIdleTimesOfAllowedProcessors) {
  constexpr auto kStat =
      "cpu  10 20 30 1000 5 0 0 0 0 0\ncpu0 1 2 3 100 5 0 0 0 0 0\ncpu1 1 2 3 200 0 0 0 0 0 0\n"
      "cpu10 1 2 3 400 0 0 0 0 0 0\nintr 77 88\n";
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  CPU_SET(0, &allowed);
  CPU_SET(10, &allowed);
  EXPECT_EQ(parse_idle_ns(kStat, allowed, 10), 5050);
  EXPECT_EQ(parse_idle_ns("", allowed, 10), 0);
}

TEST(MachineWatch, CountsFromCallToCall) {
  MachineWatch watch;
  watch.watch({own_thread_id()});
  EXPECT_EQ(watch.use(1'000'000, 1, true).wall_ns, 0);  // nothing to compare with
  const MachineUse use = watch.use(5'000'000, 1, true);
  EXPECT_EQ(use.wall_ns, 4'000'000);
  EXPECT_GE(use.waited_ns, 0);
  EXPECT_GE(use.idle_ns, 0);
  EXPECT_LE(use.caller_idle_ns, 4'000'000);
}

}  // namespace
}  // namespace tessera::runtime
