// Window functions, MelWeightMatrix, DFT and STFT.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/op_testing.h"

namespace tessera::ops {
namespace {

using testing::floats;
using testing::infer_text;
using testing::int64s;
using testing::known;
using testing::near;
using testing::op_error;
using testing::run_op;
using testing::tensor;
using testing::typed;
using testing::values;

Tensor scalar(std::int64_t value) {
  return tensor<std::int64_t>({}, {value});
}

TEST(WindowFunctions, PeriodicAndSymmetric) {
  EXPECT_THAT(values<float>(run_op("HannWindow", {scalar(4)})), near({0, 0.5F, 1, 0.5F}));
  EXPECT_THAT(values<float>(run_op("HammingWindow", {scalar(3)}, {{"periodic", 0}})),
              near({0.08695652F, 1, 0.08695652F}));
  EXPECT_THAT(values<float>(run_op("BlackmanWindow", {scalar(4)})), near({0, 0.34F, 1, 0.34F}));
  EXPECT_THAT(values<float>(run_op("HannWindow", {scalar(1)}, {{"periodic", 0}})), near({1}));
  EXPECT_EQ(infer_text("HannWindow", {testing::sized({"n"})}, {{"output_datatype", 10}}),
            "fp16[n]");
  EXPECT_EQ(infer_text("HannWindow", {typed("int64[]")}, {{"output_datatype", 8}}),
            "attribute 'output_datatype': expected the number of a numeric dtype, found 8");
  EXPECT_EQ(op_error("HannWindow", {scalar(-1)}), "expected one size of 0 or more");
}

TEST(MelWeightMatrix, HasATriangleForEachBin) {
  const Tensor low = tensor<float>({}, {0});
  const auto mel = [&](std::int64_t rate, float high) {
    return std::vector<Tensor>{scalar(2), scalar(8), scalar(rate), low, tensor<float>({}, {high})};
  };
  const Tensor matrix = run_op("MelWeightMatrix", mel(8000, 4000));
  EXPECT_EQ(matrix.dims(), (Dims{5, 2}));
  EXPECT_THAT(values<float>(matrix), near({1, 0, 0, 1, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(infer_text("MelWeightMatrix", {known(scalar(3)), known(scalar(16)), typed("int64[]"),
                                           typed("fp32[]"), typed("fp32[]")}),
            "fp32[9, 3]");
  EXPECT_THAT(op_error("MelWeightMatrix", mel(1000, 9000)),
              ::testing::HasSubstr("expected edges below half of the sample rate 1000, found"));
  EXPECT_EQ(op_error("MelWeightMatrix", mel(0, 4000)),
            "MelWeightMatrix: expected bins, a length and a sample rate of 0 or more, found 2, 8 "
            "and 0");
}

const Tensor& signal() {
  static const Tensor kept = tensor<float>({1, 5, 1}, {1, 2, 0, -1, 3});
  return kept;
}

TEST(Dft, ForwardsAndBack) {
  EXPECT_THAT(values<float>(run_op("DFT", {signal(), Tensor(), scalar(1)})),
              near({5, 0, 3.354102F, 0.3632713F, -3.354102F, 1.538842F, -3.354102F, -1.538842F,
                    3.354102F, -0.3632713F}));
  EXPECT_THAT(values<float>(run_op("DFT", {signal(), scalar(4), scalar(1)}, {{"onesided", 1}})),
              near({2, 0, 1, -3, 0, 0}));
  const Tensor spectrum = tensor<float>({1, 3, 2}, {2, 0, 1, -2, 3, 1});
  EXPECT_THAT(values<float>(run_op("DFT", {spectrum}, {{"inverse", 1}})),
              near({2, -0.3333333F, 0.8660254F, -0.4106836F, -0.8660254F, 0.744017F}));
  const Tensor real = run_op("DFT", {spectrum}, {{"inverse", 1}, {"onesided", 1}});
  EXPECT_EQ(real.dims(), (Dims{1, 4, 1}));
  EXPECT_THAT(values<float>(real), near({1.75F, 0.75F, 0.75F, -1.25F}));
}

TEST(Dft, InfersUpgradesAndSaysWhatDoesNotFit) {
  EXPECT_EQ(infer_text("DFT", {typed("fp32[b, n, 1]")}, {{"onesided", 1}}),
            "fp32[b, floordiv(n, 2) + 1, 2]");
  EXPECT_EQ(infer_text("DFT", {typed("fp32[b, 5, 2]")}, {{"onesided", 1}, {"inverse", 1}}),
            "fp32[b, 8, 1]");
  EXPECT_EQ(infer_text("DFT", {typed("fp32[b, n, 1]"), testing::omitted(), known(scalar(2))}),
            "DFT: axis: expected an axis of the signal, found the last one");
  EXPECT_EQ(op_error("DFT", {floats({1, 2})}),
            "DFT: expected a signal with a last axis of 1 or 2, found [2]");
  EXPECT_EQ(op_error("DFT", {signal(), scalar(0), scalar(1)}),
            "DFT: dft_length: expected 1 or more, found 0");
  EXPECT_EQ(op_error("DFT", {signal()}, {{"onesided", 1}, {"inverse", 1}}),
            "DFT: expected a complex signal, found a last axis of 1");
  EXPECT_EQ(op_error("DFT", {signal(), int64s({1, 2})}), "input 1: expected a scalar, found [2]");
  ops::UpgradeNode node;
  node.op_type = "DFT";
  node.inputs = {0};
  node.attributes.set("axis", std::int64_t{2});
  testing::RecordingBuilder builder;
  ASSERT_TRUE(testing::upgrade(node, 17, builder));
  ASSERT_EQ(node.inputs.size(), 3U);
  EXPECT_EQ(to_int64_vector(builder.constants.at(node.inputs[2]).view()), (Dims{2}));
  EXPECT_FALSE(node.attributes.has("axis"));
}

TEST(Stft, TransformsEachFrame) {
  const Tensor frames = run_op("STFT", {signal(), scalar(2), floats({0.5F, 1, 0.5F})});
  EXPECT_EQ(frames.dims(), (Dims{1, 2, 2, 2}));
  EXPECT_THAT(values<float>(frames),
              near({2.5F, 0, -0.5F, -1.732051F, 0.5F, 0, -0.25F, 2.165064F}));
  EXPECT_EQ(infer_text("STFT", {typed("fp32[b, 128, 1]"), known(scalar(8)), typed("fp32[16]")}),
            "fp32[b, 15, 9, 2]");
  EXPECT_EQ(op_error("STFT", {signal(), scalar(0)}),
            "STFT: expected a step of 1 or more and frames of 1 to 5, found 0 and 5");
  EXPECT_EQ(op_error("STFT", {signal(), scalar(1), Tensor(), scalar(6)}),
            "STFT: expected a step of 1 or more and frames of 1 to 5, found 1 and 6");
  EXPECT_EQ(op_error("STFT", {signal(), scalar(1), floats({1, 1}), scalar(3)}),
            "STFT: input 'window': expected 3 elements, found [2]");
  EXPECT_EQ(op_error("STFT", {floats({1}), scalar(1)}),
            "STFT: expected a signal of [batch, length, 1 or 2], found [1]");
  EXPECT_EQ(op_error("STFT", {tensor<float>({1, 1, 2}, {1, 2}), scalar(1)}),
            "STFT: onesided: expected 0 for a complex signal, found 1");
}

}  // namespace
}  // namespace tessera::ops
