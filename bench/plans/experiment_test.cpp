#include "plans/experiment.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "plans/results.h"
#include "testing/onnx_builder.h"
#include "testing/temp_dir.h"

namespace tessera::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string small_model() {
  testing::OnnxModel model(17);
  model.input("x", testing::kFloat, {1, 16, 4, 4});
  model.node("Relu", {"x"}, {"r"}, "relu");
  model.node("GlobalAveragePool", {"r"}, {"y"}, "pool");
  model.output("y", testing::kFloat, {1, 16, 1, 1});
  return model.serialize();
}

io::NamedTensors output(const std::string& name, const std::vector<float>& values) {
  return {
      {name, Tensor::of<float>(DType::kFp32, {static_cast<std::int64_t>(values.size())}, values)}};
}

TEST(Experiment, MeasuresEveryPlanOfEveryGroup) {
  const testing::TempDir folder;
  Settings settings;
  settings.flags.threads = 1;
  settings.flags.quiet = true;
  settings.subgraph = {"relu"};
  settings.random = 2;
  settings.neighbours = 3;
  settings.rounds = settings.final_rounds = 1;
  const auto result = measure_model({"small", folder.write("m.onnx", small_model())}, settings);
  ASSERT_TRUE(result) << result.error().to_string();
  EXPECT_THAT(result->subgraph, ElementsAre("relu"));
  std::map<std::string, std::size_t> plans;
  std::size_t measured_again = 0;
  for (const MeasuredPlan& plan : result->plans) {
    ++plans[result->groups[plan.group].name];
    EXPECT_THAT(plan.problem, IsEmpty());
    EXPECT_EQ(plan.timing.rounds, 1);
    EXPECT_GT(plan.timing.plan_us, 0);
    EXPECT_FALSE(plan.differences.empty());
    measured_again += plan.final_timing ? 1 : 0;
  }
  EXPECT_GE(plans["subgraph"], 2U);
  EXPECT_EQ(plans["random"], 2U);
  EXPECT_EQ(plans["one-step"], 3U);
  EXPECT_GE(measured_again, 5U);
  EXPECT_NE(result->best(), nullptr);
  const auto json = nlohmann::json::parse(results_json({*result}, settings), nullptr, false);
  ASSERT_FALSE(json.is_discarded());
  EXPECT_EQ(json["models"][0]["plans"].size(), result->plans.size());
  EXPECT_THAT(results_text(*result), HasSubstr("subgraph: relu\n"));
}

TEST(Experiment, AModelWithoutAKnownSubgraphNeedsOne) {
  const auto result = measure_model({"small", "m.onnx"}, {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().to_string(), "no subgraph of 'small' is known: expected --subgraph");
}

TEST(Experiment, AnUnknownModelIsNamed) {
  const auto model = find_model("no_such_model");
  ASSERT_FALSE(model);
  EXPECT_EQ(model.error().to_string(), "expected a file or a shared model, found 'no_such_model'");
}

ModelResult result_of(std::vector<double> final_ratios) {
  ModelResult result;
  result.groups.push_back({"random", {}, 0, 0, 0});
  for (const double ratio : final_ratios) {
    MeasuredPlan& plan = result.plans.emplace_back();
    plan.timing = {100, 50, 0.5, 3};
    plan.final_timing = Timing{100, 100 * ratio, ratio, 15};
    plan.differences.push_back({"conv", "this", "that"});
  }
  return result;
}

TEST(Verdict, HoldsWithinFivePercentOfTheBestMeasuredAgain) {
  EXPECT_EQ(result_of({1.2, 0.96}).verdict(), Verdict::kHolds);
  EXPECT_EQ(result_of({1.2, 0.94, 0.96}).verdict(), Verdict::kFails);
  EXPECT_EQ(result_of({}).verdict(), Verdict::kFails) << "nothing was measured";
  EXPECT_THAT(results_text(result_of({1.2, 0.8})),
              HasSubstr("verdict: FAILS: the chosen plan takes 1.250 of the best plan's time "
                        "(allowed: 1.05)"));
}

TEST(Verdict, IsOpenWhereTheChosenPlanIsNotAsFastAsItself) {
  for (const double noise : {0.94, 1.06}) {
    ModelResult result = result_of({1.2, 0.8});
    result.again.ratio = noise;
    EXPECT_EQ(result.verdict(), Verdict::kUndecided);
    EXPECT_THAT(results_text(result),
                HasSubstr(fmt::format("the machine was disturbed: the chosen plan beside itself "
                                      "took {:.3f} of its time",
                                      noise)));
  }
}

TEST(Verdict, APlanThatFailsIsNamedAndFailsIt) {
  ModelResult result = result_of({1.2, 1.1});
  result.plans.back().problem = "output 'y': wrong";
  EXPECT_EQ(result.verdict(), Verdict::kFails);
  EXPECT_THAT(results_text(result),
              HasSubstr("problem: random plan ('conv' and others differ): output 'y': wrong"));
}

TEST(Disagreement, NamesTheOutputAndHowFarItIsOff) {
  const auto expected = output("y", {1, 2, 100});
  EXPECT_THAT(disagreement(expected, output("y", {1.005F, 2, 100.05F})), IsEmpty());
  EXPECT_EQ(disagreement(expected, output("y", {1.5F, 2, 100})),
            "output 'y': 1 elements leave the tolerance, the largest difference is 0.5 of 100");
  EXPECT_EQ(disagreement(expected, output("y", {1, 2})),
            "output 'y': expected fp32[3], found fp32[2]");
}

}  // namespace
}  // namespace tessera::bench
