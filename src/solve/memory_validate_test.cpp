#include "solve/memory_validate.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace tessera::solve {
namespace {

MemoryProblem small_problem() {
  return {{{"a", 0, 2, 10, 1, {}}, {"b", 2, 4, 8, 4, {}}, {"c", 1, 3, 5, 1, 10}}, 20};
}
MemorySolution small_solution() {
  return {{0, 0, 10}, 15, 15};
}

std::string refusal(const MemoryProblem& problem, const MemorySolution& solution) {
  const Status status = validate(problem, solution);
  return status ? "" : status.error().to_string();
}
std::string refusal(const MemoryProblem& problem) {
  const Status status = check_memory_problem(problem);
  return status ? "" : status.error().to_string();
}

TEST(ValidateMemory, AcceptsARightSolution) {
  EXPECT_EQ(refusal(small_problem(), small_solution()), "");
}

TEST(ValidateMemory, NumberOfOffsets) {
  EXPECT_EQ(refusal(small_problem(), {{0, 0}, 15, 15}), "expected 3 offsets, found 2");
}

TEST(ValidateMemory, NegativeOffset) {
  EXPECT_EQ(refusal(small_problem(), {{-1, 0, 10}, 15, 15}), "buffer 'a': offset -1 is negative");
}

TEST(ValidateMemory, Alignment) {
  EXPECT_EQ(refusal(small_problem(), {{0, 2, 10}, 15, 15}),
            "buffer 'b': offset 2 is not a multiple of its alignment, 4");
}

TEST(ValidateMemory, FixedOffset) {
  EXPECT_EQ(refusal(small_problem(), {{0, 0, 11}, 16, 15}),
            "buffer 'c': offset 11 is not the fixed one, 10");
}

TEST(ValidateMemory, Overlap) {
  EXPECT_EQ(refusal(small_problem(), {{1, 0, 10}, 15, 15}),
            "buffers 'a' at [1, 11) and 'c' at [10, 15) overlap at step 1");
  EXPECT_EQ(refusal(small_problem(), {{0, 4, 10}, 15, 15}),
            "buffers 'c' at [10, 15) and 'b' at [4, 12) overlap at step 2");
}

TEST(ValidateMemory, BuffersInsideAnother) {
  const MemoryProblem problem = {{{"", 0, 9, 100, 1, {}}, {"", 3, 4, 1, 1, {}}}, {}};
  EXPECT_EQ(refusal(problem, {{0, 50}, 100, 101}),
            "buffers 0 at [0, 100) and 1 at [50, 51) overlap at step 3");
}

TEST(ValidateMemory, ClaimedArenaAndPeak) {
  EXPECT_EQ(refusal(small_problem(), {{0, 0, 10}, 14, 15}),
            "claimed arena of 14 bytes is not where the highest buffer ends, 15");
  EXPECT_EQ(refusal(small_problem(), {{0, 0, 10}, 15, 10}),
            "claimed peak of 10 live bytes is not that of the lifespans, 15");
}

TEST(ValidateMemory, Capacity) {
  EXPECT_EQ(refusal(small_problem(), {{0, 16, 10}, 24, 15}),
            "arena of 24 bytes is larger than the capacity, 20");
}

TEST(ValidateMemory, OffsetOverflow) {
  MemoryProblem problem = {{{"a", 0, 2, 10, 1, {}}}, {}};
  EXPECT_EQ(refusal(problem, {{std::numeric_limits<std::int64_t>::max()}, 0, 10}),
            "buffer 'a': offset 9223372036854775807 and size 10 do not fit 63 bits");
}

TEST(CheckMemoryProblem, NamesEachFault) {
  EXPECT_EQ(refusal({{{"a", 0, 1, -5, 1, {}}}, {}}), "buffer 'a': size -5 is negative");
  EXPECT_EQ(refusal({{{"a", 0, 1, 5, 0, {}}}, {}}), "buffer 'a': alignment 0 is not positive");
  EXPECT_EQ(refusal({{{"a", 3, 1, 5, 1, {}}}, {}}),
            "buffer 'a': lifespan [3, 1) ends before it begins");
  EXPECT_EQ(refusal({{{"a", 0, 1, 5, 1, -8}}, {}}), "buffer 'a': fixed offset -8 is negative");
  EXPECT_EQ(refusal({{{"a", 0, 1, 5, 4, 6}}, {}}),
            "buffer 'a': fixed offset 6 is not a multiple of its alignment, 4");
  EXPECT_EQ(refusal({{{"a", 0, 1, 5, 1, {}}, {"a", 0, 1, 5, 1, {}}}, {}}),
            "two buffers have the id 'a'");
  EXPECT_EQ(refusal({{{"a", 0, 2, 5, 1, 0}, {"b", 1, 3, 5, 1, 4}}, {}}),
            "fixed offsets: buffers 'a' at [0, 5) and 'b' at [4, 9) overlap at step 1");
  EXPECT_EQ(refusal({{{"a", 0, 1, 5, 1, {}}}, -1}), "capacity -1 is negative");
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(refusal({{{"a", 0, 1, most, 1, {}}}, {}}),
            "the sum of all sizes and alignments does not fit 63 bits");
  EXPECT_EQ(
      refusal({{{"a", 0, 1, 5, 1, most}}, {}}),
      "the sum of all sizes and alignments and the highest fixed offset does not fit 63 bits");
}

TEST(PeakLiveBytes, LifespansAreHalfOpen) {
  EXPECT_EQ(peak_live_bytes({{{"a", 0, 2, 10, 1, {}}, {"b", 2, 4, 8, 1, {}}}, {}}), 10);
  EXPECT_EQ(peak_live_bytes({{{"a", 0, 3, 10, 1, {}}, {"b", 2, 4, 8, 1, {}}}, {}}), 18);
}

}  // namespace
}  // namespace tessera::solve
