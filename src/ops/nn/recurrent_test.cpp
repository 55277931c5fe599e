// LSTM, GRU, RNN: one step by hand, lengths and directions, old versions, errors.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ops/nn/nn_test_util.h"

namespace tessera::ops::nn::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatEq;

// Identity activations make the arithmetic of the cells plain.
Attributes identity(std::size_t count) {
  return attributes({{"activations", std::vector<std::string>(count, "Affine")}});
}

std::vector<Tensor> rnn_inputs() {
  return {floats({3, 1, 1}, {1, 2, 3}), floats({1, 1, 1}, {1}), floats({1, 1, 1}, {10})};
}

TEST(Rnn, CarriesItsState) {
  const auto y = run_op("RNN", identity(1), rnn_inputs(), 2).value();
  EXPECT_EQ(y[0].dims(), (Dims{3, 1, 1, 1}));
  EXPECT_THAT(to_vector(y[0]), ElementsAre(1, 12, 123));
  EXPECT_THAT(to_vector(y[1]), ElementsAre(123));
}

TEST(Rnn, RunsBackwardsWithinEachLength) {
  Attributes attrs = identity(1);
  attrs.set("direction", std::string("reverse"));
  std::vector<Tensor> inputs = rnn_inputs();
  inputs.push_back({});
  const std::int32_t length[] = {2};
  inputs.push_back(Tensor::copy_of({DType::kInt32, {1}, length}));
  const auto y = run_op("RNN", attrs, inputs, 2).value();
  EXPECT_THAT(to_vector(y[0]), ElementsAre(21, 2, 0));
  EXPECT_THAT(to_vector(y[1]), ElementsAre(21));
}

TEST(Lstm, GatesInputOutputForgetCell) {
  // W gives the gates i, o, f, c the values 2, 3, 5, 7 for x = 1; the cell starts at 11.
  const std::vector<Tensor> inputs{floats({1, 1, 1}, {1}),
                                   floats({1, 4, 1}, {2, 3, 5, 7}),
                                   floats({1, 4, 1}, {0, 0, 0, 0}),
                                   {},
                                   {},
                                   {},
                                   floats({1, 1, 1}, {11})};
  const auto y = run_op("LSTM", identity(3), inputs, 3).value();
  EXPECT_THAT(to_vector(y[2]), ElementsAre(5 * 11 + 2 * 7));
  EXPECT_THAT(to_vector(y[1]), ElementsAre(3 * 69));
}

TEST(Gru, MixesTheStateByTheUpdateGate) {
  // z = 0.5, r = 2, candidate from the state alone: r * h * 3 = 24; h = 0.5 * 24 + 0.5 * 4.
  const std::vector<Tensor> inputs{
      floats({1, 1, 1}, {1}), floats({1, 3, 1}, {0.5F, 2, 0}), floats({1, 3, 1}, {0, 0, 3}), {}, {},
      floats({1, 1, 1}, {4})};
  EXPECT_THAT(to_vector(run_op("GRU", identity(2), inputs, 2).value()[1]), ElementsAre(14));
}

TEST(Rnn, ReluKeepsNan) {
  const Attributes relu = attributes({{"activations", std::vector<std::string>{"Relu"}}});
  const auto y =
      run_op("RNN", relu,
             {floats({3, 1, 1}, {-1, NAN, 2}), floats({1, 1, 1}, {1}), floats({1, 1, 1}, {10})}, 2)
          .value();
  EXPECT_THAT(to_vector(y[0]), ElementsAre(0, ::testing::IsNan(), ::testing::IsNan()));
}

TEST(Rnn, TakesTanhByDefault) {
  EXPECT_THAT(to_vector(run_op("RNN", {}, rnn_inputs(), 2).value()[0])[0],
              FloatEq(std::tanh(1.0F)));
}

TEST(RecurrentInference, PutsTheBatchFirstOnRequest) {
  const std::vector<std::string> types{"fp32[s, b, 8]", "fp32[2, 64, 8]", "fp32[2, 64, 16]"};
  Attributes attrs = attributes({{"direction", std::string("bidirectional")}});
  EXPECT_EQ(infer_text("LSTM", attrs, types), "fp32[s, 2, b, 16]");
  attrs.set("layout", std::int64_t{1});
  EXPECT_EQ(infer_text("LSTM", attrs, types), "fp32[s, b, 2, 16]");
}

TEST(RecurrentUpgrade, DropsOutputSequence) {
  Attributes attrs = identity(1);
  attrs.set("output_sequence", std::int64_t{1});
  EXPECT_THAT(to_vector(run_old("RNN", 1, attrs, rnn_inputs(), {true, true}).value().outputs[1]),
              ElementsAre(123));
}

TEST(RecurrentErrors, NameWhatIsWrong) {
  const std::vector<std::string> types{"fp32[3, 1, 1]", "fp32[1, 1, 1]", "fp32[1, 1, 1]"};
  const auto with = [&](std::string name, AttributeValue value) {
    return infer_text("RNN", attributes({{std::move(name), std::move(value)}}), types);
  };
  EXPECT_EQ(with("direction", std::string("up")),
            "RNN: direction: expected forward, reverse or bidirectional, found 'up'");
  EXPECT_EQ(with("direction", std::string("bidirectional")),
            "RNN: first size of input 'W': expected 2 (directions), found 1");
  EXPECT_EQ(with("layout", std::int64_t{2}), "RNN: layout: expected 0 or 1, found 2");
  EXPECT_EQ(with("clip", -1.0F), "RNN: clip: expected at least 0, found -1");
  EXPECT_EQ(with("hidden_size", std::int64_t{2}),
            "RNN: hidden_size: expected 1 (as 'R' has units), found 2");
  EXPECT_EQ(with("activations", std::vector<std::string>{"Cube"}),
            "RNN: activations[0]: expected the name of an activation, found 'Cube'");
  EXPECT_EQ(
      infer_text("LSTM", attributes({{"activations", std::vector<std::string>{"Tanh"}}}), types),
      "LSTM: activations: expected 3 values, found 1");
  EXPECT_EQ(
      infer_text("LSTM", {}, types),
      "LSTM: size 1 of input 'W': expected 4 (4 gates of the 1 hidden units of 'R'), found 1");
  EXPECT_EQ(infer_text("RNN", {}, {"fp32[3, 1]", "fp32[1, 1, 1]", "fp32[1, 1, 1]"}),
            "RNN: input 'X': expected rank 3, found rank 2");
  std::vector<Tensor> inputs = rnn_inputs();
  inputs.push_back(floats({1, 3}, {0, 0, 0}));
  EXPECT_EQ(error_text(run_op("RNN", {}, inputs)), "RNN: input 'B': expected 2 elements, found 3");
  const std::int32_t length[] = {4};
  inputs[3] = {};
  inputs.push_back(Tensor::copy_of({DType::kInt32, {1}, length}));
  EXPECT_EQ(error_text(run_op("RNN", {}, inputs)),
            "RNN: input 'sequence_lens': expected values from 0 to 3, found 4");
}

}  // namespace
}  // namespace tessera::ops::nn::testing
