// The normalisations: values by hand, old versions, errors.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ops/nn/nn_test_util.h"

namespace tessera::ops::nn::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;

std::vector<Tensor> batch_inputs() {
  return {floats({1, 2, 2}, {1, 3, 10, 30}), floats({2}, {2, 1}), floats({2}, {0, 5}),
          floats({2}, {1, 10}), floats({2}, {4, 100})};
}

const Attributes kNoEpsilon = attributes({{"epsilon", 0.0F}});

TEST(BatchNormalization, UsesTheGivenStatistics) {
  const auto y = run_op("BatchNormalization", kNoEpsilon, batch_inputs()).value();
  EXPECT_THAT(to_vector(y[0]), ElementsAre(0, 2, 5, 7));
}

TEST(BatchNormalization, TrainingUsesThoseOfTheBatchAndMovesTheRunningOnes) {
  Attributes attrs =
      attributes({{"epsilon", 0.0F}, {"training_mode", std::int64_t{1}}, {"momentum", 0.5F}});
  const auto y = run_op("BatchNormalization", attrs, batch_inputs(), 3).value();
  EXPECT_THAT(to_vector(y[0]), ElementsAre(-2, 2, 4, 6));
  EXPECT_THAT(to_vector(y[1]), ElementsAre(1.5F, 15));   // means 2 and 20
  EXPECT_THAT(to_vector(y[2]), ElementsAre(2.5F, 100));  // variances 1 and 100
}

TEST(BatchNormalizationUpgrade, KeepsInferenceOfEachVersion) {
  EXPECT_THAT(
      to_vector(run_old("BatchNormalization", 9, kNoEpsilon, batch_inputs()).value().outputs[0]),
      ElementsAre(0, 2, 5, 7));
  Attributes old = attributes({{"epsilon", 0.0F},
                               {"is_test", std::int64_t{1}},
                               {"spatial", std::int64_t{1}},
                               {"consumed_inputs", std::vector<std::int64_t>{0, 0}}});
  EXPECT_THAT(to_vector(run_old("BatchNormalization", 1, old, batch_inputs()).value().outputs[0]),
              ElementsAre(0, 2, 5, 7));
}

TEST(BatchNormalizationUpgrade, TrainsWhereOldVersionsDid) {
  Attributes old = attributes({{"epsilon", 0.0F}, {"is_test", std::int64_t{0}}});
  EXPECT_THAT(to_vector(run_old("BatchNormalization", 6, old, batch_inputs()).value().outputs[0]),
              ElementsAre(-2, 2, 4, 6));
  const auto trained =
      run_old("BatchNormalization", 9, kNoEpsilon, batch_inputs(), {true, true, true, false, false})
          .value();
  EXPECT_THAT(to_vector(trained.outputs[0]), ElementsAre(-2, 2, 4, 6));
  EXPECT_FALSE(trained.outputs[3].is_defined());
  EXPECT_EQ(
      error_text(run_old("BatchNormalization", 9, kNoEpsilon, batch_inputs(),
                         {true, true, true, true, false})),
      "BatchNormalization: the outputs saved_mean and saved_var of training are not supported");
}

TEST(BatchNormalizationUpgrade, NormalisesEachElementWithoutSpatial) {
  const std::vector<Tensor> inputs{floats({1, 1, 2}, {3, 10}), floats({1, 2}, {1, 2}),
                                   floats({1, 2}, {0, 1}), floats({1, 2}, {1, 4}),
                                   floats({1, 2}, {4, 9})};
  Attributes old = attributes({{"epsilon", 0.0F}, {"spatial", std::int64_t{0}}});
  EXPECT_THAT(to_vector(run_old("BatchNormalization", 7, old, inputs).value().outputs[0]),
              ElementsAre(1, 5));
  old.set("is_test", std::int64_t{0});
  EXPECT_EQ(error_text(run_old("BatchNormalization", 6, old, inputs)),
            "BatchNormalization: training with spatial = 0 is not supported");
}

TEST(BatchNormalizationErrors, NameTheParameter) {
  EXPECT_EQ(infer_text("BatchNormalization", {},
                       {"fp32[1, 3, 4]", "fp32[3]", "fp32[3]", "fp32[2]", "fp32[3]"}),
            "BatchNormalization: elements of input 'input_mean': expected 3 (one for each "
            "channel), found 2");
  EXPECT_EQ(infer_text("BatchNormalization", {},
                       {"fp32[1, 3, 4]", "fp32[3, 1]", "fp32[3]", "fp32[3]", "fp32[3]"}),
            "BatchNormalization: input 'scale': expected rank 1, found rank 2");
  EXPECT_EQ(
      error_text(infer_types("BatchNormalization", {},
                             {"fp32[1, 3]", "fp32[3]", "fp32[3]", "fp32[3]", "fp32[3]"}, {}, 3)),
      "BatchNormalization: training_mode: expected 1 for 3 outputs, found 0");
}

TEST(InstanceNormalization, NormalisesEachPlane) {
  const auto y =
      run_op("InstanceNormalization", kNoEpsilon,
             {floats({1, 2, 2}, {1, 3, 10, 30}), floats({2}, {1, 2}), floats({2}, {0, 1})})
          .value();
  EXPECT_THAT(to_vector(y[0]), ElementsAre(-1, 1, -1, 3));
}

TEST(GroupNormalization, NormalisesGroupsAndScalesChannels) {
  Attributes attrs = attributes({{"epsilon", 0.0F}, {"num_groups", std::int64_t{1}}});
  const Tensor x = floats({1, 2, 1}, {1, 3});
  EXPECT_THAT(
      to_vector(run_op("GroupNormalization", attrs, {x, floats({2}, {1, 2}), floats({2}, {0, 5})})
                    .value()[0]),
      ElementsAre(-1, 7));
}

TEST(GroupNormalizationUpgrade, RepeatsTheScaleOfEachGroup) {
  Attributes attrs = attributes({{"epsilon", 0.0F}, {"num_groups", std::int64_t{2}}});
  const Tensor x = floats({1, 4, 1}, {1, 3, 10, 30});
  const auto y =
      run_old("GroupNormalization", 18, attrs, {x, floats({2}, {1, 2}), floats({2}, {0, 5})})
          .value();
  EXPECT_THAT(to_vector(y.outputs[0]), ElementsAre(-1, 1, 3, 7));
}

TEST(GroupNormalizationErrors, NameTheAttribute) {
  EXPECT_EQ(infer_text("GroupNormalization", attributes({{"num_groups", std::int64_t{2}}}),
                       {"fp32[1, 3, 4]", "fp32[3]", "fp32[3]"}),
            "GroupNormalization: num_groups: expected a divisor of the 3 channels, found 2");
  EXPECT_EQ(infer_text("GroupNormalization", attributes({{"num_groups", std::int64_t{0}}}),
                       {"fp32[1, 3, 4]", "fp32[3]", "fp32[3]"}),
            "GroupNormalization: num_groups: expected at least 1, found 0");
  EXPECT_EQ(infer_text("InstanceNormalization", {}, {"fp32[1, 3, 4]", "fp32[2]", "fp32[3]"}),
            "InstanceNormalization: elements of scale: expected 3 (one for each channel), found 2");
}

TEST(LayerNormalization, GivesTheStatisticsToo) {
  const auto y =
      run_op("LayerNormalization", kNoEpsilon,
             {floats({2, 2}, {1, 3, 10, 30}), floats({2}, {1, 2}), floats({2}, {0, 1})}, 3)
          .value();
  EXPECT_THAT(to_vector(y[0]), ElementsAre(-1, 3, -1, 3));
  EXPECT_EQ(y[1].dims(), (Dims{2, 1}));
  EXPECT_THAT(to_vector(y[1]), ElementsAre(2, 20));
  EXPECT_THAT(to_vector(y[2]), ElementsAre(1, FloatNear(0.1F, 1e-7F)));
}

TEST(RmsNormalization, DividesByTheRootOfTheMeanSquare) {
  const auto y =
      run_op("RMSNormalization", kNoEpsilon, {floats({2}, {1, 7}), floats({2}, {1, 2})}).value();
  EXPECT_THAT(to_vector(y[0]), ElementsAre(FloatNear(0.2F, 1e-6F), FloatNear(2.8F, 1e-6F)));
}

TEST(LayerNormalizationErrors, NameTheInput) {
  EXPECT_EQ(
      infer_text("LayerNormalization", {}, {"fp32[2, 4]", "fp32[3]"}),
      "LayerNormalization: input 'Scale': expected a shape that broadcasts to [2, 4], found [3]");
  EXPECT_EQ(infer_text("LayerNormalization", attributes({{"stash_type", std::int64_t{7}}}),
                       {"fp32[2, 4]", "fp32[4]"}),
            "LayerNormalization: stash_type: expected 1 (fp32), 16 (bf16), 10 (fp16) or 11 (fp64), "
            "found 7");
  EXPECT_EQ(infer_text("LayerNormalization", attributes({{"axis", std::int64_t{2}}}),
                       {"fp32[2, 4]", "fp32[4]"}),
            "axis: expected a value from -2 to 1, found 2");
}

TEST(Lrn, DividesByNeighbouringChannels) {
  // size 2: the channel and the next one. alpha / size = 1, beta 1, bias 0.
  Attributes attrs =
      attributes({{"size", std::int64_t{2}}, {"alpha", 2.0F}, {"beta", 1.0F}, {"bias", 0.0F}});
  EXPECT_THAT(to_vector(run_op("LRN", attrs, {floats({1, 3, 1}, {1, 2, 4})}).value()[0]),
              ElementsAre(0.2F, 0.1F, 0.25F));
  EXPECT_EQ(infer_text("LRN", attributes({{"size", std::int64_t{0}}}), {"fp32[1, 3, 1]"}),
            "LRN: size: expected at least 1, found 0");
  EXPECT_EQ(infer_text("LRN", attributes({{"size", std::int64_t{1}}}), {"fp32[3]"}),
            "LRN: input 'X': expected rank 2 or more (batch, channels, ...), found rank 1");
}

TEST(MeanVarianceNormalization, ReducesTheAxes) {
  const auto y =
      run_op("MeanVarianceNormalization", attributes({{"axes", std::vector<std::int64_t>{0}}}),
             {floats({2, 2}, {1, 10, 3, 30})})
          .value();
  EXPECT_THAT(to_vector(y[0]), ElementsAre(-1, -1, 1, 1));
}

TEST(LpNormalization, LeavesZerosAlone) {
  EXPECT_THAT(to_vector(run_op("LpNormalization", {}, {floats({2, 2}, {3, 4, 0, 0})}).value()[0]),
              ElementsAre(0.6F, 0.8F, 0, 0));
  EXPECT_THAT(to_vector(run_op("LpNormalization", attributes({{"p", std::int64_t{1}}}),
                               {floats({2}, {1, -3})})
                            .value()[0]),
              ElementsAre(0.25F, -0.75F));
  EXPECT_EQ(infer_text("LpNormalization", attributes({{"p", std::int64_t{3}}}), {"fp32[2]"}),
            "LpNormalization: p: expected 1 or 2, found 3");
}

}  // namespace
}  // namespace tessera::ops::nn::testing
