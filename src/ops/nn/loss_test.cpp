// Losses, LinearAttention and CausalConvWithState.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/nn/nn_test_util.h"
#include "testing/op_testing.h"

namespace tessera::ops {
namespace {

using ::testing::ElementsAre;
using testing::floats;
using testing::infer_text;
using testing::near;
using testing::op_error;
using testing::run_all;
using testing::run_op;
using testing::tensor;
using testing::typed;
using testing::values;

const Tensor& scores() {
  static const Tensor kept = tensor<float>({1, 3, 2}, {0.25F, 0.5F, 0.75F, 0.25F, 0, 1});
  return kept;
}
Tensor labels(std::int64_t first, std::int64_t second) {
  return tensor<std::int64_t>({1, 2}, {first, second});
}

TEST(Losses, NegativeLogLikelihood) {
  const auto loss = [](const std::vector<Tensor>& inputs,
                       const testing::AttributeList& attributes) {
    return values<float>(run_op("NegativeLogLikelihoodLoss", inputs, attributes));
  };
  const Tensor weights = floats({0.2F, 0.3F, 0.1F});
  EXPECT_THAT(loss({scores(), labels(2, 0), weights}, {}), near({-1.0F / 3}));
  EXPECT_THAT(loss({scores(), labels(2, 0)}, {{"reduction", "none"}}), near({0, -0.5F}));
  EXPECT_THAT(loss({scores(), labels(1, -7)}, {{"reduction", "mean"}, {"ignore_index", -7}}),
              near({-0.75F}));
  EXPECT_THAT(loss({scores(), labels(-7, -7)}, {{"ignore_index", -7}}),
              ElementsAre(::testing::IsNan()));
  EXPECT_THAT(loss({scores(), labels(1, 2)}, {{"reduction", "sum"}}), near({-1.75F}));
}

TEST(Losses, CrossEntropyGivesLogProbabilities) {
  const auto results = run_all("SoftmaxCrossEntropyLoss",
                               {scores(), labels(2, 0), floats({0.2F, 0.3F, 0.1F})}, {}, 2);
  EXPECT_THAT(values<float>(results[0]), near({1.315171F}));
  EXPECT_THAT(values<float>(results[1]),
              near({-1.231838F, -1.231838F, -0.7318376F, -1.481838F, -1.481838F, -0.7318376F}));
}

TEST(Losses, InferAndSayWhatDoesNotFit) {
  EXPECT_EQ(infer_text("NegativeLogLikelihoodLoss", {typed("fp32[n, 3, d]"), typed("int64[n, d]")},
                       {{"reduction", "none"}}),
            "fp32[n, d]");
  EXPECT_EQ(infer_text("SoftmaxCrossEntropyLoss", {typed("fp16[n, 3]"), typed("int32[n]")}),
            "fp16[]");
  EXPECT_EQ(infer_text("NegativeLogLikelihoodLoss", {typed("fp32[n, 3]"), typed("int64[n]")},
                       {{"reduction", "max"}}),
            "attribute 'reduction': expected 'none', 'sum' or 'mean', found 'max'");
  EXPECT_EQ(op_error("NegativeLogLikelihoodLoss", {scores(), labels(3, 0)}),
            "NegativeLogLikelihoodLoss: expected labels from 0 to 2, found 3");
  EXPECT_EQ(op_error("NegativeLogLikelihoodLoss", {scores(), labels(0, 0), floats({1})}),
            "NegativeLogLikelihoodLoss: expected one weight for each of 3 classes, found [1]");
  EXPECT_EQ(
      op_error("SoftmaxCrossEntropyLoss", {scores(), testing::int64s({0})}),
      "SoftmaxCrossEntropyLoss: expected labels of the scores' sizes without axis 1, found [1] "
      "beside scores [1, 3, 2]");
}

const testing::AttributeList kOneHead = {{"q_num_heads", 1}, {"kv_num_heads", 1}};

TEST(LinearAttention, DecaysCorrectsAndAdds) {
  const Tensor q = tensor<float>({1, 2, 2}, {1, 0.5F, 0.2F, -1});
  const Tensor k = tensor<float>({1, 2, 2}, {0.6F, 0.8F, 1, 0});
  const Tensor v = tensor<float>({1, 2, 2}, {2, -1, 0.5F, 3});
  const Tensor decay = tensor<float>({1, 2, 1}, {-0.1F, -0.5F});
  const Tensor beta = tensor<float>({1, 2, 1}, {0.5F, 1});
  const auto results = run_all("LinearAttention", {q, k, v, Tensor(), decay, beta}, kOneHead, 2);
  EXPECT_THAT(values<float>(results[0]), near({0.7071068F, -0.3535534F, -0.2723949F, 0.5958169F}));
  EXPECT_THAT(values<float>(results[1]), near({0.5F, 3, 0.4852245F, -0.2426123F}));
}

TEST(LinearAttention, InfersAndSaysWhatDoesNotFit) {
  const Tensor one = tensor<float>({1, 1, 2}, {1, 2});
  testing::AttributeList linear = kOneHead;
  linear.emplace_back("update_rule", std::string("linear"));
  EXPECT_EQ(infer_text("LinearAttention",
                       {typed("fp16[b, t, 8]"), typed("fp16[b, t, 4]"), typed("fp16[b, t, 6]")},
                       {{"q_num_heads", 2}, {"kv_num_heads", 1}, {"update_rule", "linear"}}),
            "fp16[b, t, 12]");
  EXPECT_EQ(op_error("LinearAttention", {one, one, one}, kOneHead),
            "LinearAttention: input 'decay': expected one with this update_rule, found none");
  EXPECT_EQ(op_error("LinearAttention", {one, one, one},
                     {{"q_num_heads", 3}, {"kv_num_heads", 2}, {"update_rule", "linear"}}),
            "LinearAttention: expected q_num_heads in multiples of kv_num_heads, found 3 and 2");
  EXPECT_EQ(op_error("LinearAttention", {one, one, one},
                     {{"q_num_heads", 1}, {"kv_num_heads", 1}, {"update_rule", "none"}}),
            "attribute 'update_rule': expected 'linear', 'gated', 'delta' or 'gated_delta', found "
            "'none'");
  EXPECT_EQ(op_error("LinearAttention", {one, tensor<float>({1, 2, 2}, {1, 2, 3, 4}), one}, linear),
            "LinearAttention: input 'key': expected [1, 1, 2], found [1, 2, 2]");
}

TEST(CausalConvWithState, IsReplacedByWhatBackendsKnow) {
  const Tensor x = tensor<float>({1, 2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor w = tensor<float>({2, 1, 2}, {1, 10, 2, 20});
  const Tensor bias = floats({0.5F, 0});
  const auto fresh =
      nn::testing::run_old("CausalConvWithState", 27, {}, {x, w, bias}, {true, true});
  ASSERT_TRUE(fresh) << fresh.error().to_string();
  EXPECT_EQ(fresh->ops, (std::vector<std::string>{"Pad", "Conv", "Slice"}));
  EXPECT_THAT(values<float>(fresh->outputs[0]), near({10.5F, 21.5F, 32.5F, 80, 108, 130}));
  EXPECT_THAT(values<float>(fresh->outputs[1]), ElementsAre(3, 6));
  const auto after =
      nn::testing::run_old("CausalConvWithState", 27, testing::attributes({{"activation", "silu"}}),
                           {x, w, bias, tensor<float>({1, 2, 1}, {-1, -2})}, {true, true});
  ASSERT_TRUE(after) << after.error().to_string();
  EXPECT_EQ(after->ops, (std::vector<std::string>{"Concat", "Conv", "Swish", "Slice"}));
  EXPECT_NEAR(values<float>(after->outputs[0])[0], 9.4992895F, 1e-4F);
  EXPECT_EQ(infer_text("CausalConvWithState", {typed("fp32[n, 4, t]"), typed("fp32[4, 1, 3]")}),
            "fp32[n, 4, t]");
  EXPECT_EQ(infer_text("CausalConvWithState", {typed("fp32[n, 4, t]"), typed("fp32[4, 1, 3]")},
                       {{"activation", "relu"}}),
            "attribute 'activation': expected 'silu', 'swish' or 'none', found 'relu'");
}

}  // namespace
}  // namespace tessera::ops
