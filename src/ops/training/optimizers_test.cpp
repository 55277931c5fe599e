// One step of each optimiser.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/op_testing.h"

namespace tessera::ops {
namespace {

using testing::floats;
using testing::infer_text;
using testing::near;
using testing::op_error;
using testing::run_all;
using testing::tensor;
using testing::typed;
using testing::values;

std::string name(const char* op) {
  return std::string("ai.onnx.preview.training::") + op;
}

std::vector<Tensor> step(std::int64_t number, std::initializer_list<Tensor> tensors) {
  std::vector<Tensor> inputs{tensor<float>({}, {0.1F}), tensor<std::int64_t>({}, {number})};
  inputs.insert(inputs.end(), tensors);
  return inputs;
}

TEST(Optimizers, Adagrad) {
  const auto results =
      run_all(name("Adagrad"), step(2, {floats({1}), floats({-1}), floats({2})}),
              {{"norm_coefficient", 0.001F}, {"epsilon", 1e-5F}, {"decay_factor", 0.1F}}, 2);
  EXPECT_THAT(values<float>(results[0]), near({1.04808F}));
  EXPECT_THAT(values<float>(results[1]), near({2.998001F}));
}

TEST(Optimizers, Adam) {
  const auto results = run_all(
      name("Adam"), step(1, {floats({1.2F}), floats({-0.9F}), floats({1.7F}), floats({0.1F})}),
      {{"norm_coefficient", 0.001F}, {"alpha", 0.95F}, {"beta", 0.1F}, {"epsilon", 1e-7F}}, 3);
  EXPECT_THAT(values<float>(results[0]), near({-2.269898F}));
  EXPECT_THAT(values<float>(results[1]), near({1.57006F}));
  EXPECT_THAT(values<float>(results[2]), near({0.7370572F}));
}

const testing::AttributeList kMomentum = {
    {"norm_coefficient", 0.001F}, {"alpha", 0.95F}, {"beta", 0.1F}, {"mode", "nesterov"}};

TEST(Optimizers, MomentumOfSeveralTensors) {
  const auto results = run_all(name("Momentum"),
                               step(0, {floats({1.2F}), floats({1.2F}), floats({-0.9F}),
                                        floats({-0.9F}), floats({1.7F}), floats({1.7F})}),
                               kMomentum, 4);
  for (const std::size_t i : {0U, 1U}) {
    EXPECT_THAT(values<float>(results[i]), near({1.221841F}));
    EXPECT_THAT(values<float>(results[2 + i]), near({0.7162001F}));
  }
  EXPECT_EQ(infer_text(name("Momentum"),
                       {typed("fp32[]"), typed("int64[]"), typed("fp32[n]"), typed("fp32[n]"),
                        typed("fp32[n]")},
                       kMomentum, 2),
            "fp32[n]; fp32[n]");
}

TEST(Optimizers, SayWhatDoesNotFit) {
  EXPECT_EQ(op_error(name("Adagrad"), step(1, {floats({1}), floats({1})}), {}, 2),
            "expected 2 inputs and 3 for each tensor, found 4");
  EXPECT_EQ(op_error(name("Adagrad"), step(1, {floats({1}), floats({1, 2}), floats({1})}), {}, 2),
            "expected tensors of [1], found [1] and [2]");
  testing::AttributeList plain = kMomentum;
  plain.back().second = std::string("plain");
  EXPECT_EQ(op_error(name("Momentum"), step(0, {floats({1}), floats({1}), floats({1})}), plain, 2),
            "attribute 'mode': expected 'standard' or 'nesterov', found 'plain'");
}

}  // namespace
}  // namespace tessera::ops
