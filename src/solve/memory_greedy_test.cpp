#include "solve/memory_greedy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>

#include "solve/memory_validate.h"
#include "testing/sanitizers.h"

namespace tessera::solve {
namespace {

using ::testing::ElementsAre;

MemorySolution allocated(const MemoryProblem& problem) {
  const Result<MemorySolution> solution = allocate_greedy(problem);
  EXPECT_TRUE(solution) << solution.error().to_string();
  const Status valid = validate(problem, *solution);
  EXPECT_TRUE(valid) << valid.error().to_string();
  return *solution;
}

TEST(AllocateGreedy, AnEmptyProblemNeedsNothing) {
  EXPECT_EQ(allocated({}).arena_bytes, 0);
}

TEST(AllocateGreedy, SharesRoomBetweenBuffersThatDoNotMeet) {
  const MemoryProblem problem = {
      {{"a", 0, 2, 10, 1, {}}, {"b", 2, 4, 8, 1, {}}, {"c", 1, 3, 5, 1, {}}}, {}};
  const MemorySolution solution = allocated(problem);
  EXPECT_THAT(solution.offsets, ElementsAre(0, 0, 10));
  EXPECT_EQ(solution.arena_bytes, 15);
  EXPECT_EQ(solution.peak_live_bytes, 15);
}

TEST(AllocateGreedy, FillsGapsAndAligns) {
  const MemoryProblem problem = {{{"a", 0, 9, 10, 1, {}},
                                  {"b", 0, 9, 7, 16, {}},
                                  {"c", 0, 9, 6, 1, {}},
                                  {"d", 0, 9, 1, 4, {}}},
                                 {}};
  const MemorySolution solution = allocated(problem);
  EXPECT_THAT(solution.offsets, ElementsAre(0, 16, 10, 24));
  EXPECT_EQ(solution.arena_bytes, 25);
}

TEST(AllocateGreedy, KeepsFixedOffsets) {
  const MemoryProblem problem = {{{"big", 0, 4, 100, 1, {}}, {"fixed", 1, 3, 10, 1, 50}}, {}};
  const MemorySolution solution = allocated(problem);
  EXPECT_THAT(solution.offsets, ElementsAre(60, 50));
}

TEST(AllocateGreedy, BuffersWithoutSizeOrLifespanTakeNoRoom) {
  const MemoryProblem problem = {
      {{"a", 0, 4, 0, 1, {}}, {"b", 2, 2, 10, 1, {}}, {"c", 0, 4, 6, 1, {}}}, {}};
  EXPECT_EQ(allocated(problem).arena_bytes, 6);
}

TEST(AllocateGreedy, RandomProblemsAreValid) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    MemoryProblem problem;
    const std::size_t count = random() % 60;
    for (std::size_t i = 0; i < count; ++i) {
      const auto lower = static_cast<std::int64_t>(random() % 40);
      problem.buffers.push_back({std::to_string(i),
                                 lower,
                                 lower + static_cast<std::int64_t>(random() % 12),
                                 static_cast<std::int64_t>(random() % 1000),
                                 std::int64_t{1} << (random() % 7),
                                 {}});
    }
    const MemorySolution solution = allocated(problem);
    EXPECT_GE(solution.arena_bytes, solution.peak_live_bytes);
    EXPECT_EQ(solution, allocated(problem));
  }
}

// Time grows with the square of the count.
TEST(AllocateGreedy, ManyBuffers) {
  constexpr std::uint32_t kBuffers = testing::kThreadSanitizer ? 3'000 : 30'000;
  std::mt19937 random(5);
  MemoryProblem problem;
  for (std::uint32_t i = 0; i < kBuffers; ++i) {
    const auto lower = static_cast<std::int64_t>(random() % kBuffers);
    const std::uint32_t longest = i % 50 == 0 ? kBuffers / 10 * 3 : 30;
    const std::int64_t length = 1 + static_cast<std::int64_t>(random() % longest);
    const std::int64_t size = 64 * (1 + static_cast<std::int64_t>(random() % 5000));
    problem.buffers.push_back({"", lower, lower + length, size, 64, {}});
  }
  const MemorySolution solution = allocated(problem);
  EXPECT_LE(static_cast<double>(solution.arena_bytes),
            1.2 * static_cast<double>(solution.peak_live_bytes));
}

TEST(AllocateGreedy, RefusesTooSmallACapacity) {
  const MemoryProblem problem = {{{"a", 0, 2, 10, 1, {}}, {"b", 1, 3, 10, 1, {}}}, 19};
  const Result<MemorySolution> solution = allocate_greedy(problem);
  ASSERT_FALSE(solution);
  EXPECT_EQ(solution.error().code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(solution.error().to_string(),
            "the smallest arena found, 20 bytes, is larger than the capacity, 19 bytes (peak of "
            "live bytes: 20)");
}

TEST(AllocateGreedy, RefusesAMalformedProblem) {
  const MemoryProblem problem = {{{"a", 0, 2, -1, 1, {}}}, {}};
  const Result<MemorySolution> solution = allocate_greedy(problem);
  ASSERT_FALSE(solution);
  EXPECT_EQ(solution.error().to_string(), "buffer 'a': size -1 is negative");
}

}  // namespace
}  // namespace tessera::solve
