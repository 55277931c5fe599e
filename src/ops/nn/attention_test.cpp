// Attention and RotaryEmbedding: values of ONNX's reference evaluator, shapes, errors.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ops/nn/nn_test_util.h"

namespace tessera::ops::nn::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::Pointwise;

// (i * factor) mod modulus / modulus - 1/2, element by element.
Tensor ramp(const Dims& dims, std::int64_t factor, std::int64_t modulus) {
  std::vector<float> values(static_cast<std::size_t>(numel(dims)));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(static_cast<std::int64_t>(i) * factor % modulus) /
                    static_cast<float>(modulus) -
                0.5F;
  return floats(dims, values);
}

void expect_values(const Tensor& found, const Dims& dims, const std::vector<float>& wanted) {
  EXPECT_EQ(found.dims(), dims);
  EXPECT_THAT(to_vector(found), Pointwise(FloatNear(2e-6F), wanted));
}

// Two heads of queries share one of keys.
std::vector<Tensor> grouped() {
  return {ramp({1, 2, 2, 2}, 7, 11), ramp({1, 1, 3, 2}, 5, 13), ramp({1, 1, 3, 2}, 3, 7)};
}

std::vector<Tensor> with(std::vector<Tensor> inputs, const std::vector<Tensor>& more) {
  inputs.insert(inputs.end(), more.begin(), more.end());
  return inputs;
}

Tensor float_mask() {
  return floats({2, 3}, {0, -1, 2, 0.5F, 0, -HUGE_VALF});
}

TEST(Attention, SharesKeysAmongHeads) {
  expect_values(run_op("Attention", {}, grouped()).value()[0], {1, 2, 2, 2},
                {-0.0180854F, -0.207224F, 0.00858339F, -0.217819F, 0.0264146F, -0.209559F,
                 0.0500477F, -0.219012F});
}

TEST(Attention, RowsWithoutAnyKeyAreZero) {
  Tensor mask = *Tensor::zeros(DType::kBool, {2, 3});
  static_cast<bool*>(mask.mutable_data())[0] = static_cast<bool*>(mask.mutable_data())[1] = true;
  expect_values(run_op("Attention", {}, with(grouped(), {mask})).value()[0], {1, 2, 2, 2},
                {-0.134024F, -0.132425F, 0, 0, -0.0550128F, -0.145593F, 0, 0});
}

TEST(Attention, RowsWithoutAnyKeyWhereAskedOtherwise) {
  const auto row = [](std::int64_t nan_rows) {
    const auto y =
        run_op("Attention", attributes({{"nan_rows", nan_rows}}),
               with(grouped(), {floats({2, 3}, {0, 0, 0, -HUGE_VALF, -HUGE_VALF, -HUGE_VALF})}))
            .value();
    return to_vector(y[0])[2];
  };
  EXPECT_EQ(row(0), 0);
  EXPECT_TRUE(std::isnan(row(1)));
  EXPECT_EQ(row(2), 0);
}

TEST(Attention, ScaleAndSoftcapBeforeTheMask) {
  expect_values(run_op("Attention", attributes({{"scale", 2.0F}, {"softcap", 0.5F}}),
                       with(grouped(), {float_mask()}))
                    .value()[0],
                {1, 2, 2, 2},
                {0.111849F, -0.310602F, -0.263524F, -0.110841F, 0.122491F, -0.30775F, -0.0786459F,
                 -0.141654F});
}

TEST(Attention, AppendsToItsCache) {
  const auto y = run_op("Attention", attributes({{"is_causal", std::int64_t{1}}}),
                        {grouped()[0], ramp({1, 1, 2, 2}, 5, 13), ramp({1, 1, 2, 2}, 3, 7),
                         Tensor(), ramp({1, 1, 1, 2}, 2, 5), ramp({1, 1, 1, 2}, 4, 5)},
                        3)
                     .value();
  expect_values(
      y[0], {1, 2, 2, 2},
      {-0.5F, 0.114423F, -0.249725F, 0.0186395F, -0.5F, 0.113964F, -0.178891F, -0.00883493F});
  expect_values(y[1], {1, 1, 3, 2}, {-0.5F, -0.1F, -0.5F, -0.115385F, 0.269231F, -0.346154F});
  expect_values(y[2], {1, 1, 3, 2}, {-0.5F, 0.3F, -0.5F, -0.0714286F, 0.357143F, -0.214286F});
}

TEST(Attention, GivesItsScores) {
  const auto y = run_op("Attention", attributes({{"qk_matmul_output_mode", std::int64_t{2}}}),
                        with(grouped(), {float_mask()}), 4)
                     .value();
  const std::vector<float> scores = to_vector(y[3]);
  EXPECT_EQ(y[3].dims(), (Dims{1, 2, 2, 3}));
  EXPECT_NEAR(scores[1], -1.12856F, 1e-5F);
  EXPECT_EQ(scores[5], -HUGE_VALF);
}

TEST(Attention, HeadsSideBySide) {
  const Attributes heads =
      attributes({{"q_num_heads", std::int64_t{2}}, {"kv_num_heads", std::int64_t{2}}});
  expect_values(run_op("Attention", heads,
                       {ramp({1, 2, 4}, 7, 11), ramp({1, 3, 4}, 5, 13), ramp({1, 3, 4}, 3, 7)})
                    .value()[0],
                {1, 2, 4},
                {-0.134491F, -0.0113098F, 0.0705598F, -0.191873F, -0.13068F, -0.0143634F,
                 0.0699566F, -0.151593F});
}

TEST(Attention, MasksThatAreShortAndKeysThatArePadding) {
  expect_values(
      run_op("Attention", {}, with(grouped(), {floats({2, 2}, {0, -1, 0.5F, 0})})).value()[0],
      {1, 2, 2, 2},
      {-0.315594F, -0.102163F, -0.213757F, -0.119136F, -0.256336F, -0.112039F, -0.139319F,
       -0.131542F});
  const auto padded = with(grouped(), {Tensor(), Tensor(), Tensor(), ints({1}, {2})});
  expect_values(run_op("Attention", {}, padded).value()[0], {1, 2, 2, 2},
                {-0.134024F, -0.132425F, -0.1121F, -0.136079F, -0.0550128F, -0.145593F, -0.0328578F,
                 -0.149286F});
  expect_values(
      run_op("Attention", attributes({{"is_causal", std::int64_t{1}}}), padded).value()[0],
      {1, 2, 2, 2},
      {-0.5F, -0.0714286F, -0.1121F, -0.136079F, -0.5F, -0.0714286F, -0.0328578F, -0.149286F});
}

// Values of one key each, so that the result tells which keys a query has seen.
TEST(Attention, SeesTheKeysOfItsWindow) {
  const Tensor zeros = floats({1, 1, 4, 1}, {0, 0, 0, 0});
  const Tensor v = floats({1, 1, 4, 1}, {1, 2, 4, 8});
  const auto result = [&](std::int64_t left, std::int64_t right) {
    const Attributes window =
        attributes({{"left_window_size", left}, {"right_window_size", right}});
    return to_vector(run_op("Attention", window, {zeros, zeros, v}).value()[0]);
  };
  EXPECT_EQ(result(0, 0), (std::vector<float>{1, 2, 4, 8}));
  EXPECT_EQ(result(1, 0), (std::vector<float>{1, 1.5F, 3, 6}));
  EXPECT_EQ(result(-1, 1), (std::vector<float>{1.5F, 7.0F / 3, 3.75F, 3.75F}));
  EXPECT_EQ(error_text(run_op("Attention", attributes({{"left_window_size", std::int64_t{-2}}}),
                              {zeros, zeros, v})),
            "attribute 'left_window_size': expected -1 or more, found -2");
}

TEST(Attention, InfersItsShapes) {
  EXPECT_EQ(
      infer_text("Attention", {}, {"fp32[b, 8, s, 64]", "fp32[b, 2, t, 64]", "fp32[b, 2, t, 32]"}),
      "fp32[b, 8, s, 32]");
  EXPECT_EQ(
      infer_text("Attention",
                 attributes({{"q_num_heads", std::int64_t{4}}, {"kv_num_heads", std::int64_t{2}}}),
                 {"fp32[b, s, 32]", "fp32[b, t, 16]", "fp32[b, t, 8]"}),
      "fp32[b, s, 16]");
}

TEST(Attention, SaysWhatDoesNotFit) {
  const auto error = [](const Attributes& attrs, const std::vector<Tensor>& inputs) {
    return error_text(run_op("Attention", attrs, inputs));
  };
  const Tensor q = ramp({1, 3, 2, 2}, 7, 11);
  const Tensor two = ramp({1, 2, 2, 2}, 5, 13);
  EXPECT_EQ(error({}, {q, two, two}),
            "Attention: expected a number of heads of Q that the 2 heads of K divide, found 3");
  EXPECT_EQ(error({}, {two, two, ramp({1, 2, 2}, 3, 7)}),
            "Attention: expected Q, K and V all of rank 3 or all of rank 4, found ranks 4, 4 and "
            "3");
  const Tensor flat = ramp({1, 2, 4}, 3, 7);
  EXPECT_EQ(error({}, {flat, flat, flat}),
            "Attention: attribute 'q_num_heads': expected 1 or more beside inputs of rank 3, found "
            "none");
  EXPECT_EQ(error(attributes({{"q_num_heads", std::int64_t{3}}, {"kv_num_heads", std::int64_t{1}}}),
                  {flat, flat, flat}),
            "Attention: input 'Q': expected a multiple of 3 heads, found size 4");
  EXPECT_EQ(error({}, {two, two, two, floats({3}, {0, 0, 0})}),
            "Attention: input 'attn_mask': expected a shape that broadcasts to [1, 2, 2, 2], found "
            "[3]");
  EXPECT_EQ(error({}, {two, two, two, Tensor(), two}),
            "Attention: expected past_key and past_value together, found one of them");
  EXPECT_EQ(error({}, {two, two, two, Tensor(), two, two, ints({1}, {1})}),
            "Attention: expected past_key or nonpad_kv_seqlen, found both");
  EXPECT_EQ(error(attributes({{"qk_matmul_output_mode", std::int64_t{4}}}), {two, two, two}),
            "attribute 'qk_matmul_output_mode': expected a value from 0 to 3, found 4");
  EXPECT_EQ(error({}, {two, two, two, Tensor(), Tensor(), Tensor(), ints({2}, {1, 1})}),
            "Attention: input 'nonpad_kv_seqlen': expected 1 elements, found 2");
}

TEST(RotaryEmbedding, TurnsHalvesOrNeighbours) {
  const std::vector<Tensor> inputs = {ramp({1, 2, 2, 4}, 7, 11), ramp({1, 2, 2}, 5, 13),
                                      ramp({1, 2, 2}, 3, 7)};
  expect_values(run_op("RotaryEmbedding", {}, inputs).value()[0], {1, 2, 2, 4},
                {0.136364F, 0.0134865F, 0.363636F, -0.0569431F, -0.101399F, 0.1004F, 0.101898F,
                 0.0839161F, 0.136364F, -0.0619381F, 0.272727F, 0.0414585F, -0.109391F, 0.0884116F,
                 0.158841F, 0.032967F});
  expect_values(
      run_op("RotaryEmbedding", attributes({{"interleaved", std::int64_t{1}}}), inputs).value()[0],
      {1, 2, 2, 4},
      {0.318182F, 0.181818F, 0.0554446F, -0.030969F, 0.125874F, -0.0694306F, -0.11988F, -0.0524476F,
       0.318182F, 0.0909091F, -0.01998F, 0.0674326F, 0.117882F, -0.0124875F, -0.131868F,
       -0.103397F});
}

TEST(RotaryEmbedding, PartOfAHeadAtGivenPositions) {
  const std::vector<Tensor> inputs = {ramp({1, 2, 2, 4}, 7, 11), ramp({3, 1}, 5, 13),
                                      ramp({3, 1}, 3, 7), ints({1, 2}, {2, 0})};
  const Attributes part = attributes({{"rotary_embedding_dim", std::int64_t{2}}});
  expect_values(
      run_op("RotaryEmbedding", part, inputs).value()[0], {1, 2, 2, 4},
      {-0.183317F, -0.141858F, -0.227273F, 0.409091F, -0.181818F, 0.136364F, 0.318182F, -0.0454545F,
       -0.191309F, -0.0849151F, -0.136364F, -0.5F, -0.181818F, 0.0454545F, 0.409091F, 0.0454545F});
  auto beyond = inputs;
  beyond[3] = ints({1, 2}, {3, 0});
  EXPECT_EQ(error_text(run_op("RotaryEmbedding", part, beyond)),
            "RotaryEmbedding: input 'position_ids': expected values from 0 to 2, found 3");
}

TEST(RotaryEmbedding, HeadsSideBySide) {
  expect_values(run_op("RotaryEmbedding", attributes({{"num_heads", std::int64_t{2}}}),
                       {ramp({1, 2, 4}, 7, 11), ramp({1, 2, 1}, 5, 13), ramp({1, 2, 1}, 3, 7)})
                    .value()[0],
                {1, 2, 4},
                {0.318182F, 0.181818F, 0.318182F, -0.0909091F, -0.027972F, 0.0334665F, -0.03996F,
                 -0.0174825F});
}

TEST(RotaryEmbedding, SaysWhatDoesNotFit) {
  const auto error = [](const Attributes& attrs, const std::vector<Tensor>& inputs) {
    return error_text(run_op("RotaryEmbedding", attrs, inputs));
  };
  const Tensor table = ramp({1, 2, 2}, 5, 13);
  EXPECT_EQ(error({}, {ramp({1, 2, 4}, 7, 11), table, table}),
            "RotaryEmbedding: attribute 'num_heads': expected 1 or more beside an input of rank 3, "
            "found 0");
  EXPECT_EQ(error({}, {ramp({1, 2, 2, 6}, 7, 11), table, table}),
            "RotaryEmbedding: input 'cos_cache': expected [1, 2, 3], found [1, 2, 2]");
  EXPECT_EQ(error({}, {ramp({1, 2, 2, 5}, 7, 11), table, table}),
            "RotaryEmbedding: expected an even number of elements to turn, at most 5, found 5");
  EXPECT_EQ(error({}, {ramp({2, 2}, 7, 11), table, table}),
            "RotaryEmbedding: input 'X': expected rank 3 or 4, found rank 2");
}

TEST(QuickGelu, IsSwishWithAFactorOfItsOwn) {
  const OpSchema* op = find_op("com.microsoft", "QuickGelu");
  ASSERT_NE(op, nullptr);
  const std::vector<Tensor> x = {floats({2}, {1, -2})};
  const auto y = run_reference(*op, {}, x, 1);
  ASSERT_TRUE(y);
  EXPECT_THAT(to_vector((*y)[0]), ElementsAre(FloatNear(1 / (1 + std::exp(-1.702F)), 1e-6F),
                                              FloatNear(-2 / (1 + std::exp(3.404F)), 1e-6F)));
}

}  // namespace
}  // namespace tessera::ops::nn::testing
