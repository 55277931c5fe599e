// Normalisations, activations, products and convolutions of com.microsoft, against numbers of ONNX
// Runtime 1.32.

#include "ops/contrib/contrib_case_test.h"

namespace tessera::ops {
namespace {

using namespace contrib::testing;

TEST(Simplified, DividesByTheRootOfTheMeanOfSquares) {
  const auto found = run("SimplifiedLayerNormalization", attributes({{"epsilon", 1e-5F}}),
                         {pattern({1, 2, 4}, 1), pattern({4}, 3)}, {true, true});
  expect_reals(found, 0,
               {-0.6405073F, 0, -0.3202537F, -0.7205707F, 1.24938F, 0, 1.24938F, 0.7027764F});
  expect_reals(found, 1, {1.281015F, 1.24938F});
  EXPECT_EQ(find_op("", "SimplifiedLayerNormalization")->versions, std::vector<int>{1});
}

TEST(SkipLayerNormalization, NormalizesTheSumAndGivesIt) {
  const auto found = run("SkipLayerNormalization", attributes({{"epsilon", 1e-5F}}),
                         {pattern({1, 2, 4}, 1), pattern({1, 2, 4}, 2), pattern({4}, 3),
                          pattern({4}, 4), pattern({4}, 5)},
                         {true, false, false, true});
  expect_reals(
      found, 0,
      {-1.271562F, 0.75F, -1.933683F, -1.942482F, 0.341555F, 0.75F, 0.197185F, -2.256166F});
  expect_reals(found, 3, {-0.5F, -0.75F, 1.75F, -1.25F, -0.25F, -0.5F, -0.75F, -1});
  const auto simplified = run("SkipSimplifiedLayerNormalization", attributes({{"epsilon", 1e-5F}}),
                              {pattern({1, 2, 4}, 1), pattern({1, 2, 4}, 2), pattern({4}, 3)},
                              {true, false, false, true});
  expect_reals(simplified, 0,
               {-0.3202537F, 0, -1.601268F, -0.7205707F, 0, 0, 1.622201F, -0.4866602F});
}

TEST(EmbedLayerNormalization, SumsWhatItLooksUpAndCountsTheMask) {
  const auto ids = tensor<std::int32_t>({1, 3}, {1, 2, 0});
  const auto segments = tensor<std::int32_t>({1, 3}, {0, 1, 0});
  const auto mask = tensor<std::int32_t>({1, 3}, {1, 1, 0});
  std::vector<Tensor> inputs = {ids,
                                segments,
                                pattern({3, 4}, 1),
                                pattern({5, 4}, 2),
                                pattern({2, 4}, 3),
                                pattern({4}, 4),
                                pattern({4}, 5),
                                mask};
  const auto found =
      run("EmbedLayerNormalization", attributes({{"epsilon", 1e-5F}}), inputs, {true, true});
  expect_reals(found, 0,
               {-1.497216F, -1.918151F, 0.7672606F, -1.390869F, 0.02156171F, -1.616608F,
                0.07907936F, 0.6541373F, -1.591555F, -0.9146113F, 0.6117963F, 1.176944F});
  expect_whole<std::int32_t>(found, 1, {2});
  inputs.pop_back();
  expect_whole<std::int32_t>(run("EmbedLayerNormalization", {}, inputs, {true, true}), 1, {0});
  inputs[4] = Tensor();
  EXPECT_EQ(
      error_of("EmbedLayerNormalization", {}, inputs),
      "input 'segment_ids': expected it together with 'segment_embedding', found one of them");
}

TEST(ContribGelu, TakesABiasAndApproximates) {
  expect_reals(run("BiasGelu", {}, {pattern({2, 3}, 1), pattern({3}, 2)}), 0,
               {-0.1003234F, 0.3457312F, 1.117938F, -0.1542688F, 0.1496766F, 0.8413447F});
  expect_reals(run("FastGelu", {}, {pattern({2, 3}, 1), pattern({3}, 2)}), 0,
               {-0.1003247F, 0.345714F, 1.117714F, -0.154286F, 0.1496754F, 0.841192F});
  expect_reals(run("BiasAdd", {}, {pattern({1, 2}, 1), pattern({2}, 2), pattern({1, 2}, 3)}), 0,
               {0.75F, 0.5F});
}

TEST(GroupNorm, RefusesOtherActivations) {
  EXPECT_EQ(error_of("GroupNorm", attributes({{"activation", 2}, {"groups", 1}}),
                     {pattern({1, 2, 2, 2}, 1), pattern({2}, 1), pattern({2}, 2)}),
            "attribute 'activation': expected 0 or 1, found 2");
  EXPECT_EQ(error_of("GroupNorm", attributes({{"groups", 1}}),
                     {pattern({1, 2, 2, 2}, 1), pattern({2}, 1), pattern({2}, 2)}),
            "attribute 'activation': is required, but absent");
}

TEST(FusedMatMul, TurnsItsOperands) {
  expect_reals(run("FusedMatMul", attributes({{"transBatchA", 1}, {"transB", 1}, {"alpha", 0.5F}}),
                   {pattern({3, 2, 2}, 1), pattern({2, 4, 2}, 2)}),
               0, {-0.53125F, -0.25F,    0.71875F,  -0.71875F, 0.125F, 0.5F,    -0.5F,     -0.125F,
                   0.4375F,   -0.125F,   -0.34375F, 0.8125F,   0.25F,  0.0625F, -0.46875F, 0.375F,
                   -0.4375F,  -0.53125F, 0.75F,     -0.375F,   0.25F,  0.25F,   -0.4375F,  0.25F});
}

TEST(FusedGemm, EndsWithAnActivation) {
  const std::vector<Tensor> inputs = {pattern({2, 3}, 1), pattern({2, 3}, 2), pattern({2}, 3)};
  Attributes attrs = attributes({{"transB", 1}, {"activation", "LeakyRelu"}});
  attrs.set("activation_alpha", 0.1F);
  expect_reals(run("FusedGemm", attrs, inputs), 0, {0.1875F, -0.10625F, 0.0625F, -0.1F});
  Attributes third = attrs;
  third.set("activation_gamma", 2.0F);
  EXPECT_EQ(error_of("FusedGemm", third, inputs),
            "attribute 'activation_gamma': expected 0 beside the activation 'LeakyRelu', found 2");
  attrs.set("activation", "Erf");
  EXPECT_EQ(error_of("FusedGemm", attrs, inputs),
            "attribute 'activation': expected Relu, Tanh, Sigmoid, LeakyRelu, HardSigmoid, Elu, "
            "ThresholdedRelu, Softplus, Softsign or Clip with its bounds, found 'Erf' with 1 "
            "parameters");
}

TEST(FusedConv, AddsAndClips) {
  Attributes attrs = attributes({{"activation", "Clip"}});
  attrs.set("activation_params", std::vector<float>{-1.0F, 0.5F});
  expect_reals(run("FusedConv", attrs,
                   {pattern({1, 2, 3, 3}, 1), pattern({2, 2, 2, 2}, 2), pattern({2}, 3),
                    pattern({1, 2, 2, 2}, 4)}),
               0, {-0.8125F, 0.5F, -1, 0.5F, 0.125F, 0.5F, -1, 0.5F});
}

TEST(Expansion, ChecksNodesAgainstTheirSchema) {
  EXPECT_EQ(error_of("Gelu", attributes({{"approximate", "tanh"}}), {pattern({2}, 1)}),
            "attribute 'approximate' is unknown");
  EXPECT_EQ(error_of("BiasGelu", {}, {pattern({2}, 1)}), "input 'B': is required, but omitted");
  EXPECT_EQ(error_of("Gelu", {}, {pattern({2}, 1), pattern({2}, 1)}),
            "expected at most 1 inputs, found 2");
  EXPECT_EQ(error_of("Gelu", {}, {unsigned_bytes({2}, 1)}),
            "input 'X': dtype uint8 is not allowed");
  EXPECT_EQ(error_of("BiasGelu", {}, {pattern({2}, 1), tensor<double>({1}, {1})}),
            "input 'B': expected fp32, found fp64");
}

TEST(Expansion, HasNoPlaceInTheGraph) {
  const OpSchema* op = find_op("com.microsoft", "Gelu");
  InferContext context{*op, {}, {}, {}, {}, {}, {}};
  const auto status = op->infer(context);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().to_string(),
            "'com.microsoft::Gelu' stands in models only: import makes other operators of it");
}

}  // namespace
}  // namespace tessera::ops
