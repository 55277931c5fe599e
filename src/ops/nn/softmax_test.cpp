// Softmax, LogSoftmax, Hardmax, and their meaning before version 13.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ops/nn/nn_test_util.h"

namespace tessera::ops::nn::testing {
namespace {

const float kE = std::exp(1.0F);

TEST(Softmax, NormalisesAlongTheAxis) {
  const Tensor x = floats({2, 2}, {0, 1, 0, 0});
  const auto last = to_vector(run_op("Softmax", {}, {x}).value()[0]);
  EXPECT_FLOAT_EQ(last[0], 1 / (1 + kE));
  EXPECT_FLOAT_EQ(last[2], 0.5F);
  const auto first =
      to_vector(run_op("Softmax", attributes({{"axis", std::int64_t{0}}}), {x}).value()[0]);
  EXPECT_FLOAT_EQ(first[0], 0.5F);
  EXPECT_FLOAT_EQ(first[1], kE / (1 + kE));
}

TEST(Softmax, DoesNotOverflow) {
  EXPECT_THAT(to_vector(run_op("Softmax", {}, {floats({2}, {1000, 1000})}).value()[0]),
              ::testing::ElementsAre(0.5F, 0.5F));
  EXPECT_THAT(to_vector(run_op("LogSoftmax", {}, {floats({2}, {1000, 0})}).value()[0]),
              ::testing::ElementsAre(0.0F, -1000.0F));
}

TEST(Softmax, ALineThatHasNoSumIsNan) {
  for (const char* op : {"Softmax", "LogSoftmax"})
    for (const auto& line : {std::vector<float>{1, NAN}, std::vector<float>{INFINITY, 1},
                             std::vector<float>{-INFINITY, -INFINITY}})
      EXPECT_THAT(to_vector(run_op(op, {}, {floats({2}, line)}).value()[0]),
                  ::testing::Each(::testing::IsNan()))
          << op << " of " << line[0] << " and " << line[1];
}

TEST(Hardmax, ANanCountsWhereItComesFirst) {
  EXPECT_THAT(to_vector(run_op("Hardmax", {}, {floats({2, 2}, {1, NAN, NAN, 5})}).value()[0]),
              ::testing::ElementsAre(1, 0, 1, 0));
}

TEST(Hardmax, MarksTheFirstOfTheLargest) {
  EXPECT_THAT(to_vector(run_op("Hardmax", {}, {floats({2, 3}, {1, 3, 3, 0, -1, -1})}).value()[0]),
              ::testing::ElementsAre(0, 1, 0, 1, 0, 0));
}

TEST(Softmax, AllowsEmptyTensors) {
  EXPECT_EQ(run_op("Softmax", {}, {floats({0, 3}, {})}).value()[0].dims(), (Dims{0, 3}));
  EXPECT_EQ(run_op("Softmax", {}, {floats({3, 0}, {})}).value()[0].dims(), (Dims{3, 0}));
}

TEST(SoftmaxUpgrade, FlattensFromTheAxisOn) {
  // The default axis was 1, and all that follows it was normalised together.
  const auto y = run_old("Softmax", 11, {}, {floats({1, 2, 2}, {0, 0, 0, 0})}).value();
  EXPECT_EQ(y.outputs[0].dims(), (Dims{1, 2, 2}));
  EXPECT_THAT(to_vector(y.outputs[0]), ::testing::ElementsAre(0.25F, 0.25F, 0.25F, 0.25F));
  EXPECT_THAT(y.ops, ::testing::ElementsAre("Shape", "Flatten", "Softmax", "Reshape"));
}

TEST(SoftmaxUpgrade, StaysOneNodeWhereTheAxisStandsAlone) {
  const auto last = run_old("LogSoftmax", 1, attributes({{"axis", std::int64_t{1}}}),
                            {floats({2, 2}, {0, 0, 0, 0})})
                        .value();
  EXPECT_TRUE(last.ops.empty());
  const auto ones =
      run_old("Softmax", 1, {}, {floats({1, 2, 1, 1}, {0, 0})}).value();  // as SqueezeNet ends
  EXPECT_TRUE(ones.ops.empty());
  EXPECT_THAT(to_vector(ones.outputs[0]), ::testing::ElementsAre(0.5F, 0.5F));
}

TEST(SoftmaxErrors, NameTheAxis) {
  EXPECT_EQ(infer_text("Softmax", attributes({{"axis", std::int64_t{2}}}), {"fp32[2, 3]"}),
            "axis: expected a value from -2 to 1, found 2");
  EXPECT_EQ(error_text(run_old("Softmax", 11, attributes({{"axis", std::int64_t{5}}}),
                               {floats({1, 2}, {0, 0})})),
            "Softmax: axis: expected a value from -2 to 2, found 5");
  EXPECT_EQ(error_text(run_old("Softmax", 11, {}, {})),
            "Softmax: expected at least 1 input, found 0");
}

}  // namespace
}  // namespace tessera::ops::nn::testing
