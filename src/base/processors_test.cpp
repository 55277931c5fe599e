#include "base/processors.h"

#include <gtest/gtest.h>
#include <sched.h>

namespace tessera {
namespace {

TEST(Processors, ReadsTheQuotaOfAGroup) {
  EXPECT_EQ(quota_processors("200000 100000"), 2);
  EXPECT_EQ(quota_processors("150000 100000"), 2);
  EXPECT_EQ(quota_processors("10000 100000"), 1);
  EXPECT_EQ(quota_processors("9223372036854775807 1"), 2147483647);
  for (const auto* none : {"max 100000", "", "100000", "100000 ", "0 100000", "-1 100000", "5 0"})
    EXPECT_EQ(quota_processors(none), std::nullopt) << none;
}

TEST(Processors, RespectsTheAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_GE(usable_processors(), 1);
  EXPECT_LE(usable_processors(), CPU_COUNT(&before));
  cpu_set_t one;
  CPU_ZERO(&one);
  for (int cpu = 0; CPU_COUNT(&one) == 0; ++cpu)
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usable_processors(), 1);
  ASSERT_EQ(allowed_processors().size(), 1U);
  EXPECT_TRUE(CPU_ISSET(allowed_processors().front(), &one));
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

TEST(Processors, AThreadMovesAndKeepsItsMask) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_TRUE(CPU_ISSET(current_processor(), &before));
  for (const int processor : allowed_processors()) EXPECT_TRUE(move_to_processor(processor));
  EXPECT_FALSE(move_to_processor(-1));
  EXPECT_FALSE(move_to_processor(CPU_SETSIZE));
  cpu_set_t after;
  ASSERT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
  EXPECT_TRUE(CPU_EQUAL(&before, &after));
}

// The kernel may move a thread between any two of its steps: so it is put there until it finds
// itself there.
std::optional<int> leave_from(int processor, int number) {
  std::optional<int> to;
  for (int attempt = 0; attempt < 1000 && !to; ++attempt) {
    move_to_processor(processor);
    to = leave_processor(processor, number);
  }
  return to;
}

TEST(Processors, AThreadLeavesOneForEachOfTheOthersInTurn) {
  const std::vector<int> allowed = allowed_processors();
  if (allowed.size() < 2) GTEST_SKIP() << "only one processor is allowed";
  const auto others = static_cast<int>(allowed.size()) - 1;
  for (int number = 0; number < 2 * others; ++number)
    EXPECT_EQ(leave_from(allowed.front(), number),
              allowed[static_cast<std::size_t>(1 + number % others)]);
  EXPECT_EQ(leave_from(allowed.back(), 0), allowed.front());
}

TEST(Processors, AThreadStaysWhereNobodyIsInItsWay) {
  cpu_set_t before;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  const int here = allowed_processors().front();
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(here), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(leave_processor(here + 1, 0), std::nullopt);
  EXPECT_EQ(leave_processor(-1, 0), std::nullopt);
  EXPECT_EQ(leave_processor(here, 0), std::nullopt);  // where to?
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace
}  // namespace tessera
