// The parts of the runner: words, values, regions, processes, the table and the summary.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <limits>
#include <stdexcept>

#include "cases/compare_values.h"
#include "cases/isolate.h"
#include "cases/not_built.h"
#include "cases/region_graph.h"
#include "cases/summary.h"
#include "testing/mentions.h"
#include "testing/run_programs.h"

namespace tessera::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// ---- Words and values
// ----------------------------------------------------------------------------------------

TEST(Mentions, AnyCaseAndShortWordsAsWholeOnes) {
  EXPECT_TRUE(mentions("Expected a Directory", "directory"));
  EXPECT_TRUE(mentions("travels outside", "outsid"));
  EXPECT_TRUE(mentions("axis of x is 3", "x"));
  EXPECT_FALSE(mentions("axis", "x"));
  EXPECT_FALSE(mentions("w_bad", "bad")) << "a part of a name";
  EXPECT_EQ(without("a/b/c: a/b/d", "a/b/"), "c: d");
}

Tensor floats(const std::vector<float>& values) {
  return Tensor::of<float>(DType::kFp32, {static_cast<std::int64_t>(values.size())},
                           std::span<const float>(values));
}
Tensor longs(const std::vector<std::int64_t>& values) {
  return Tensor::of<std::int64_t>(DType::kInt64, {static_cast<std::int64_t>(values.size())},
                                  std::span<const std::int64_t>(values));
}

TEST(Difference, OfFloats) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(difference(floats({1, nan, infinity}), floats({1, nan, infinity}), {0, 0}), "");
  EXPECT_EQ(difference(floats({100, 0}), floats({101, 0.5F}), {0.01, 0.5}), "");
  EXPECT_EQ(difference(floats({1, 2}), floats({1, 2.5F}), {0.1, 0.1}),
            "1 of 2 elements differ, the first at 1: expected 2, found 2.5");
  EXPECT_THAT(difference(floats({nan}), floats({1}), {1, 1}), HasSubstr("expected nan, found 1"));
  EXPECT_THAT(difference(floats({1}), floats({infinity}), {1, 1}), HasSubstr("found inf"));
  EXPECT_EQ(difference(floats({1}), longs({1}), {1, 1}), "expected fp32[1], found int64[1]");
}

TEST(Difference, OfIntegersIsExact) {
  EXPECT_EQ(difference(longs({3}), longs({3}), {0, 0}), "");
  EXPECT_THAT(difference(longs({1000}), longs({1001}), {0.1, 0.5}), HasSubstr("found 1001"));
  EXPECT_EQ(difference(longs({1000}), longs({1001}), {0, 1}), "");
  const std::int64_t large = (std::int64_t{1} << 60);
  EXPECT_THAT(difference(longs({large}), longs({large + 1}), {0, 0}), Not(IsEmpty()));
}

TEST(Difference, OfStringsAndStoredBits) {
  const auto texts = [](const std::vector<std::string>& words) {
    return Tensor::of<std::string>(DType::kString, {static_cast<std::int64_t>(words.size())},
                                   std::span<const std::string>(words));
  };
  EXPECT_EQ(difference(texts({"a", "b"}), texts({"a", "c"}), {0, 0}),
            "element 1: expected 'b', found 'c'");
  const std::vector<std::uint16_t> bits = {0x3f80};
  EXPECT_EQ(difference(Tensor::of<std::uint16_t>(DType::kUInt16, {1}, bits),
                       Tensor::of<std::uint16_t>(DType::kBf16, {1}, bits), {0, 0}),
            "");
}

TEST(Difference, OfNamedOutputs) {
  EXPECT_EQ(difference({{"y", floats({1})}}, {{"z", floats({1})}}, {0, 0}),
            "output 'y': expected, found none of that name; output 'z': not expected");
}

// ---- Regions
// -------------------------------------------------------------------------------------------------

// Calls x -> a -> b and x -> c, in the given regions; then a result that reads b and c.
artefact::MethodImage three_calls(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  ProgramBuilder builder;
  const Shape shape = to_shape({2});
  const auto x = builder.input("x", shape);
  const auto first = builder.temporary("a", shape);
  const auto second = builder.temporary("b", shape);
  const auto third = builder.temporary("c", shape);
  builder.call("Relu", {x}, {first}).region = a;
  builder.call("Relu", {x}, {third}).region = c;
  builder.call("Relu", {first}, {second}).region = b;
  return builder.method();
}

TEST(RegionGraph, CyclesAndWidth) {
  EXPECT_TRUE(RegionGraph(three_calls(0, 1, 2)).is_dag());
  EXPECT_EQ(RegionGraph(three_calls(0, 1, 2)).width(), 2U);
  EXPECT_EQ(RegionGraph(three_calls(0, 0, 0)).width(), 1U);
  artefact::MethodImage cycle = three_calls(0, 1, 2);
  cycle.instructions.push_back(cycle.instructions[1]);  // region 2 again, with what region 1 made
  cycle.instructions.back().inputs = {cycle.instructions[2].outputs.front()};
  cycle.instructions[0].inputs = {cycle.instructions[1].outputs.front()};
  std::swap(cycle.instructions[0], cycle.instructions[1]);
  cycle.instructions.back().region = 0;
  EXPECT_FALSE(RegionGraph(cycle).is_dag());
}

// ---- Processes
// -----------------------------------------------------------------------------------------------

TEST(JudgeApart, GivesWhatTheJudgeSays) {
  const std::vector<Verdict> said = {{"run", Outcome::kHeld, ""},
                                     {"values", Outcome::kFailed, "line\nbreak"},
                                     {"k", Outcome::kNotJudged, "why"}};
  EXPECT_EQ(judge_apart([&] { return said; }), said);
}

TEST(JudgeApart, AnyOtherEndingIsAFinding) {
  if (std::getenv("TESSERA_CASES_IN_PROCESS") != nullptr)
    GTEST_SKIP() << "TESSERA_CASES_IN_PROCESS is set: no judge has a process of its own";
  const auto detail = [](const Judge& judge, int seconds) {
    const auto verdicts = judge_apart(judge, seconds);
    return verdicts.size() == 1 && verdicts[0].key == "run" ? verdicts[0].detail : "?";
  };
  EXPECT_THAT(detail(
                  []() -> std::vector<Verdict> {
                    ::raise(SIGKILL);
                    return {};
                  },
                  60),
              HasSubstr("its process died of signal 9"));
  EXPECT_EQ(detail([]() -> std::vector<Verdict> { ::_exit(3); }, 60),
            "its process ended with code 3");
  EXPECT_EQ(detail([]() -> std::vector<Verdict> { throw std::runtime_error("oh"); }, 60),
            "threw oh");
  EXPECT_EQ(detail(
                []() -> std::vector<Verdict> {
                  while (true) ::usleep(1000);
                },
                1),
            "no answer within 1 s");
}

// ---- The table
// -----------------------------------------------------------------------------------------------

TEST(Weigh, ListsWhatTheTableKnowsAndFindsStaleEntries) {
  const std::vector<NotBuilt> table = {{"A*", "values", "no strings"},
                                       {"A1", "max_copies", "copies too much"},
                                       {"A?", "*", "anything"},
                                       {"B*", "run", "no B"}};
  const Judgement first = weigh("A1",
                                {{"run", Outcome::kFailed, "x"},
                                 {"values", Outcome::kFailed, "y"},
                                 {"max_copies", Outcome::kHeld, ""},
                                 {"max_load_seconds", Outcome::kNotJudged, "time"}},
                                table);
  EXPECT_THAT(first.failed, IsEmpty());
  EXPECT_THAT(first.held, ElementsAre(Verdict{"max_copies", Outcome::kHeld, ""}));
  EXPECT_THAT(first.listed, ElementsAre(Verdict{"run", Outcome::kFailed, "anything"},
                                        Verdict{"values", Outcome::kFailed, "no strings"}));
  EXPECT_THAT(first.stale, ElementsAre(Verdict{"max_copies", Outcome::kFailed,
                                               "the entry 'A1' no longer holds: copies too much"}));
  EXPECT_EQ(first.not_judged.size(), 1U);
  const Judgement second = weigh("C", {{"run", Outcome::kFailed, "x"}}, table);
  EXPECT_EQ(second.failed.size(), 1U);
  EXPECT_THAT(second.stale, IsEmpty());
}

TEST(Summary, CountsByKindAndNamesWhatIsAmiss) {
  Summary summary;
  EXPECT_TRUE(summary.is_empty());
  summary.add("shapes", "S1", weigh("S1", {{"run", Outcome::kHeld, ""}}, {}));
  summary.add("shapes", "S2",
              weigh("S2", {{"run", Outcome::kFailed, "no"}, {"t", Outcome::kNotJudged, "time"}},
                    {{"S2", "run", "later"}}));
  summary.add("qdq", "Q1", weigh("Q1", {{"run", Outcome::kFailed, "broken"}}, {}));
  EXPECT_EQ(summary.text(),
            "kind            cases   hold  judged   held  not built  not judged  failed\n"
            "qdq                 1      0       1      0          0           0       1\n"
            "shapes              2      1       2      1          1           1       0\n"
            "FAILED     Q1 run: broken\n"
            "not built  S2 run: later\n"
            "not judged S2 t: time\n");
}

}  // namespace
}  // namespace tessera::testing
