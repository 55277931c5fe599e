#include "plan/choices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/plan_testing_test.h"

namespace tessera::plan {
namespace {

using ::testing::ElementsAre;
using Kind = PlacementRule::Kind;

// Two devices that take everything, and a chain of two Relu and an Exp.
struct Case : Stages {
  Case()
      : Stages(
            R"(input %x : fp32[1, 8, 2, 2] %a = Relu(%x) name "a" %b = Relu(%a) name "b" %c = Exp(%b) name "c" output %c)") {
    for (const char* device : {"cpu", "acc"}) {
      auto& added = devices.add(device);
      for (const char* node : {"a", "b", "c", "cover0"}) added.offer(node, 1, {kPlain}, kPlain);
    }
  }
  // Names of the devices that each node may use, as "cpu+acc".
  std::vector<std::string> permitted(const std::vector<PlacementRule>& rules) {
    const Status status = enumerate(rules);
    if (!status) return {status.error().to_string()};
    std::vector<std::string> result;
    for (const ItemOptions& entry : choices.nodes) {
      std::string names;
      for (std::uint32_t device = 0; device < 2; ++device)
        if (entry.permitted[device])
          names += (names.empty() ? "" : "+") + target().info(device).name;
      result.push_back(names);
    }
    return result;
  }
};

TEST(Choices, WithoutRulesEveryDeviceIsAsked) {
  Case stages;
  EXPECT_EQ(stages.permitted({}), (std::vector<std::string>{"cpu+acc", "cpu+acc", "cpu+acc"}));
  EXPECT_EQ(stages.choices.nodes[0].options.size(), 2U);
  EXPECT_TRUE(stages.choices.nodes[0].refusals.empty());
}

// An estimate does not make the device of last resort the cheapest, where a real one offers.
TEST(Choices, ALastResortDoesNotWinByAnEstimate) {
  Case stages;
  auto& last = dynamic_cast<testing::FakeDevice&>(*stages.target().devices[1]).mutable_info();
  last.last_resort = true;
  last.rates.default_gflops *= 1000;
  auto& real = dynamic_cast<testing::FakeDevice&>(*stages.target().devices[0]).mutable_info();
  const auto price_of_last = [&](const std::vector<PlacementRule>& rules) {
    stages.permitted(rules);
    return stages.choices.nodes[0].options.back().price.us;
  };
  EXPECT_LT(price_of_last({}), 0.01);  // beside a simulated one
  real.simulated = false;
  EXPECT_NEAR(price_of_last({}), 2, 0.05);
  EXPECT_LT(price_of_last({{Kind::kPin, "acc", "a"}}), 0.01);  // nobody else may
}

TEST(Choices, APermitLeavesADeviceOnlyToWhatItNames) {
  Case stages;
  EXPECT_EQ(stages.permitted({{Kind::kPermit, "acc", "a"}}),
            (std::vector<std::string>{"cpu+acc", "cpu", "cpu"}));
  EXPECT_EQ(stages.choices.nodes[1].refusals.at(1), "not permitted by the options");
  EXPECT_EQ(stages.permitted({{Kind::kPermit, "acc", "a"}, {Kind::kPermit, "acc", "op:Exp"}}),
            (std::vector<std::string>{"cpu+acc", "cpu", "cpu+acc"}));
}

TEST(Choices, AForbidTakesNodesAway) {
  Case stages;
  EXPECT_EQ(stages.permitted({{Kind::kForbid, "acc", "op:Relu"}}),
            (std::vector<std::string>{"cpu", "cpu", "cpu+acc"}));
  EXPECT_EQ(stages.permitted({{Kind::kPermit, "acc", "*"}, {Kind::kForbid, "acc", "b"}}),
            (std::vector<std::string>{"cpu+acc", "cpu", "cpu+acc"}));
}

TEST(Choices, APinLeavesOneDevice) {
  Case stages;
  EXPECT_EQ(stages.permitted({
                {Kind::kPin, "acc", "?"},
            }),
            (std::vector<std::string>{"acc", "acc", "acc"}));
  EXPECT_EQ(stages.permitted({{Kind::kPin, "acc", "b"}}),
            (std::vector<std::string>{"cpu+acc", "acc", "cpu+acc"}));
}

// NonZero decides a size, so its result, and what is made from it, get memory when they are made.
TEST(Choices, ItemsKnowWhatOnlyTheRunDecides) {
  Stages stages(R"(input %x : fp32[n, 3] %i = NonZero(%x) name "a" %t = Transpose(%i) name "b"
                   %y = Relu(%x) name "c" output %t output %y)",
                {{"n", 2}, {"nonzero", 1}});
  for (const auto& [symbol, range] : stages.module.symbols) stages.point.try_emplace(symbol, 4);
  auto& device = stages.devices.add("cpu");
  const backends::TensorForm whole{Layout::row_major(), DType::kInt64};
  device.offer("a", 1, {kPlain}, whole);
  device.offer("b", 1, {whole}, whole);
  device.offer("c", 1, {kPlain}, kPlain);
  ASSERT_TRUE(stages.enumerate());
  const auto& nodes = stages.choices.nodes;
  ASSERT_EQ(nodes.size(), 3U);
  EXPECT_TRUE(nodes[0].item.is_late && nodes[0].item.is_loose);
  EXPECT_TRUE(!nodes[1].item.is_late && nodes[1].item.is_loose);
  EXPECT_TRUE(!nodes[2].item.is_late && !nodes[2].item.is_loose);
}

TEST(Choices, ACoverMayGoWhereAllItsNodesMay) {
  Case stages;
  stages.cover({"a", "b"});
  ASSERT_TRUE(stages.enumerate({{Kind::kForbid, "acc", "b"}}));
  ASSERT_EQ(stages.choices.cover_options.size(), 1U);
  EXPECT_THAT(stages.choices.cover_options[0].permitted, ElementsAre(true, false));
  ASSERT_EQ(stages.choices.cover_options[0].options.size(), 1U);
  EXPECT_EQ(stages.choices.cover_options[0].options[0].device, 0U);
  EXPECT_EQ(stages.choices.cover_options[0].refusals.at(1), "not permitted by the options");
}

TEST(Choices, RulesThatNameNothing) {
  Case stages;
  EXPECT_EQ(stages.permitted({{Kind::kPermit, "npu", "*"}}),
            (std::vector<std::string>{"permit npu=*: no device 'npu': expected one of cpu, acc"}));
  EXPECT_EQ(stages.permitted({{Kind::kForbid, "npu", "*"}}),
            (std::vector<std::string>{"forbid npu=*: no device 'npu': expected one of cpu, acc"}));
  EXPECT_EQ(stages.permitted({{Kind::kPin, "cpu", "conv*"}}),
            (std::vector<std::string>{"pin cpu=conv*: no node of the model matches 'conv*'"}));
  EXPECT_EQ(stages.permitted({{Kind::kPin, "cpu", "op:Conv"}}),
            (std::vector<std::string>{"pin cpu=op:Conv: no node of the model matches 'op:Conv'"}));
}

TEST(Choices, NobodyTakesANode) {
  Stages stages(R"(input %x : fp32[1, 8, 2, 2] %a = Relu(%x) name "a" output %a)");
  stages.devices.add("cpu").refuse("a", "dtype: expected fp32, found int8");
  stages.devices.add("acc").offer("a", 1, {kPlain}, kPlain);
  const Status status = stages.enumerate({{Kind::kForbid, "acc", "a"}});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kUnimplemented);
  EXPECT_EQ(status.error().to_string(),
            "node 'a' (Relu): no device takes it; cpu: dtype: expected fp32, found int8; acc: not "
            "permitted by the options");
}

TEST(Choices, SizesThatNobodyCanCount) {
  const auto error = [](const std::string& statements, const SymbolBindings& point) {
    Stages stages(statements, point);
    const Status status = stages.enumerate();
    return status ? std::string("no error") : status.error().to_string();
  };
  const std::string relu = "input %x : fp32[n, 8, 2, 2] %a = Relu(%x) name \"a\" output %a";
  EXPECT_EQ(
      error(relu, {{"n", std::int64_t{1} << 60}}),
      "value 'x': the number of elements of [1152921504606846976, 8, 2, 2] overflows 63 bits");
  EXPECT_EQ(error(relu, {{"n", std::int64_t{1} << 57}}),
            "value 'x': the bytes of fp32[144115188075855872, 8, 2, 2] exceed 63 bits");
  EXPECT_EQ(error(relu, {}), "value 'x': dim 0: symbol 'n' has no value");
  EXPECT_EQ(error("input %x : fp32[n, 1] input %z : fp32[n] %a = Add(%x, %z) name \"a\" output %a",
                  {{"n", std::int64_t{1} << 40}}),
            "node 'a' (Add): value 'a': the number of elements of [1099511627776, 1099511627776] "
            "overflows 63 bits");
}

TEST(Choices, ACoverMayBeTheOnlyWay) {
  Stages stages(
      R"(input %x : fp32[1, 8, 2, 2] %a = Relu(%x) name "a" %b = Exp(%a) name "b" output %b)");
  stages.devices.add("cpu").offer("cover0", 4, {kPlain}, kPlain);
  stages.cover({"a", "b"});
  stages.lower();
  EXPECT_EQ(stages.steps(), (std::vector<std::string>{"call cpu 'a': x!in -> b!out"}));
  EXPECT_EQ(stages.solution.cost, round_price_us(4));
}

TEST(Greedy, NeverAsksWhatACrossingCosts) {
  Stages split(
      R"(input %x : fp32[1, 8, 2, 2] %a = Relu(%x) name "a" %b = Exp(%a) name "b" output %b)");
  auto& cpu = split.devices.add("cpu");
  cpu.offer("a", 10, {kPlain}, kPlain);
  cpu.offer("b", 10, {kPlain}, kPlain);
  auto& npu = split.devices.add("npu", "npu");
  npu.mutable_info().rates.link_latency_us = 100;
  npu.offer("a", 1, {kPlain}, kPlain);
  npu.refuse("b", "lacks Exp");
  split.assign();
  const auto greedy =
      greedy_by_priority(split.graph(), split.choices, split.target(), split.problem);
  ASSERT_TRUE(greedy);
  const Assignment assignment = decode(split.problem, *greedy);
  EXPECT_EQ(assignment.nodes[0].device, 1U);
  EXPECT_EQ(assignment.nodes[1].device, 0U);
  EXPECT_EQ(split.assignment.nodes[0].device, 0U);
  EXPECT_EQ(split.solution.cost, 2 * round_price_us(10));
}

TEST(Greedy, NothingWhereAConversionDoesNotExist) {
  Stages stages(R"(input %x : fp32[1, 8, 2, 2] %a = Relu(%x) name "a" output %a)");
  stages.devices.add("cpu").offer("a", 10, {kPlain}, kPlain);
  stages.devices.add("npu", "npu").offer("a", 1, {kLast}, kLast);
  stages.assign();
  EXPECT_FALSE(greedy_by_priority(stages.graph(), stages.choices, stages.target(), stages.problem));
  EXPECT_EQ(stages.solution.cost, round_price_us(10));
}

}  // namespace
}  // namespace tessera::plan
