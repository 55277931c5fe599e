// Conv and ConvTranspose: values by hand, against seven plain loops over random attributes,
// inference, errors.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/nn/nn_test_util.h"

namespace tessera::ops::nn::testing {
namespace {

using Ints = std::vector<std::int64_t>;

TEST(Conv, SumsAThreeByThreeWindow) {
  const Tensor x = floats({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const Tensor w = floats({1, 1, 3, 3}, std::vector<float>(9, 1));
  const auto y = run_op("Conv", attributes({{"pads", Ints{1, 1, 1, 1}}}), {x, w}).value();
  EXPECT_EQ(to_vector(y[0]), (std::vector<float>{12, 21, 16, 27, 45, 33, 24, 39, 28}));
}

TEST(Conv, AddsTheBiasOfEachChannel) {
  const Tensor x = floats({1, 1, 2}, {1, 2});
  const Tensor w = floats({2, 1, 1}, {1, 10});
  const auto y = run_op("Conv", {}, {x, w, floats({2}, {100, 1000})}).value();
  EXPECT_EQ(y[0].dims(), (Dims{1, 2, 2}));
  EXPECT_EQ(to_vector(y[0]), (std::vector<float>{101, 102, 1010, 1020}));
}

TEST(Conv, RoundsOnceInFp16) {
  // 2049 does not fit fp16: sums are kept wider and rounded at the end, so that 2048 + 1 + 1 is
  // 2050.
  const std::uint16_t x_bits[] = {0x6800, 0x3c00, 0x3c00};  // 2048, 1, 1
  const std::uint16_t w_bits[] = {0x3c00, 0x3c00, 0x3c00};
  const Tensor x = Tensor::copy_of({DType::kFp16, {1, 1, 3}, x_bits});
  const Tensor w = Tensor::copy_of({DType::kFp16, {1, 1, 3}, w_bits});
  const auto y = run_op("Conv", {}, {x, w}).value();
  EXPECT_EQ(y[0].dtype(), DType::kFp16);
  EXPECT_EQ(y[0].span<std::uint16_t>()[0], 0x6801);  // 2050
}

TEST(Conv, AllowsEmptyBatchesAndChannels) {
  const auto none =
      run_op("Conv", {}, {floats({0, 1, 3, 3}, {}), floats({2, 1, 1, 1}, {1, 1})}).value();
  EXPECT_EQ(none[0].dims(), (Dims{0, 2, 3, 3}));
  const auto bias_only =
      run_op("Conv", {}, {floats({1, 0, 2}, {}), floats({1, 0, 1}, {}), floats({1}, {5})}).value();
  EXPECT_EQ(to_vector(bias_only[0]), (std::vector<float>{5, 5}));
}

// A window along one axis, written down again from the standard and kept apart from ops/nn/window.
struct Axis {
  std::int64_t in, kernel, stride, dilation, begin, end;
  [[nodiscard]] std::int64_t out() const {
    return (in + begin + end - dilation * (kernel - 1) - 1) / stride + 1;
  }
};

struct Case {
  std::int64_t batch, group, in_channels, out_channels;
  Axis h, w;
  Attributes attributes;
};

Axis random_axis(std::mt19937& random) {
  Axis axis{0,
            pick(random, 1, 3),
            pick(random, 1, 3),
            pick(random, 1, 2),
            pick(random, 0, 2),
            pick(random, 0, 2)};
  axis.in = axis.dilation * (axis.kernel - 1) + 1 + pick(random, 0, 8);
  return axis;
}

Case random_case(std::mt19937& random) {
  Case c{pick(random, 1, 2),
         pick(random, 1, 3),
         pick(random, 1, 3),
         pick(random, 1, 3),
         random_axis(random),
         random_axis(random),
         {}};
  c.attributes = attributes({{"group", c.group},
                             {"strides", Ints{c.h.stride, c.w.stride}},
                             {"dilations", Ints{c.h.dilation, c.w.dilation}},
                             {"pads", Ints{c.h.begin, c.w.begin, c.h.end, c.w.end}}});
  return c;
}

// The seven loops. `transposed` scatters each input element instead of gathering each output
// element.
std::vector<double> naive(const Case& c, const Tensor& x, const Tensor& w, bool transposed,
                          std::int64_t out_h, std::int64_t out_w) {
  std::vector<double> y(
      static_cast<std::size_t>(c.batch * c.group * c.out_channels * out_h * out_w), 0.0);
  const auto xs = x.span<float>();
  const auto ws = w.span<float>();
  const std::int64_t rows = transposed ? c.h.in : out_h;
  const std::int64_t columns = transposed ? c.w.in : out_w;
  for (std::int64_t n = 0; n < c.batch; ++n)
    for (std::int64_t oc = 0; oc < c.group * c.out_channels; ++oc)
      for (std::int64_t ic = 0; ic < c.in_channels; ++ic)
        for (std::int64_t kh = 0; kh < c.h.kernel; ++kh)
          for (std::int64_t kw = 0; kw < c.w.kernel; ++kw)
            for (std::int64_t i = 0; i < rows; ++i)
              for (std::int64_t j = 0; j < columns; ++j) {
                const std::int64_t far_h = i * c.h.stride - c.h.begin + kh * c.h.dilation;
                const std::int64_t far_w = j * c.w.stride - c.w.begin + kw * c.w.dilation;
                if (far_h < 0 || far_w < 0 || far_h >= (transposed ? out_h : c.h.in) ||
                    far_w >= (transposed ? out_w : c.w.in))
                  continue;
                const std::int64_t channel =
                    oc / c.out_channels * c.in_channels + ic;  // over all groups
                const std::int64_t ih = transposed ? i : far_h, iw = transposed ? j : far_w;
                const std::int64_t oh = transposed ? far_h : i, ow = transposed ? far_w : j;
                const std::int64_t weight = transposed
                                                ? channel * c.out_channels + oc % c.out_channels
                                                : oc * c.in_channels + ic;
                y[((n * c.group * c.out_channels + oc) * out_h + oh) * out_w + ow] +=
                    static_cast<double>(
                        xs[((n * c.group * c.in_channels + channel) * c.h.in + ih) * c.w.in + iw]) *
                    static_cast<double>(ws[(weight * c.h.kernel + kh) * c.w.kernel + kw]);
              }
  return y;
}

void expect_near(const Tensor& found, const std::vector<double>& expected) {
  ASSERT_EQ(static_cast<std::size_t>(found.numel()), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(found.span<float>()[i], expected[i], 1e-4) << "element " << i;
}

TEST(Conv, EqualsSevenLoops) {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const Case c = random_case(random);
    const Tensor x = random_floats({c.batch, c.group * c.in_channels, c.h.in, c.w.in}, random);
    const Tensor w =
        random_floats({c.group * c.out_channels, c.in_channels, c.h.kernel, c.w.kernel}, random);
    const auto y = run_op("Conv", c.attributes, {x, w}).value();
    ASSERT_EQ(y[0].dims(), (Dims{c.batch, c.group * c.out_channels, c.h.out(), c.w.out()}));
    expect_near(y[0], naive(c, x, w, false, c.h.out(), c.w.out()));
  }
}

TEST(ConvTranspose, EqualsSevenLoops) {
  const auto size = [](const Axis& a) {
    return a.stride * (a.in - 1) + a.dilation * (a.kernel - 1) + 1 - a.begin - a.end;
  };
  int ran = 0;
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const Case c = random_case(random);
    if (size(c.h) <= 0 || size(c.w) <= 0) continue;
    const Tensor x = random_floats({c.batch, c.group * c.in_channels, c.h.in, c.w.in}, random);
    const Tensor w =
        random_floats({c.group * c.in_channels, c.out_channels, c.h.kernel, c.w.kernel}, random);
    const auto y = run_op("ConvTranspose", c.attributes, {x, w}).value();
    ASSERT_EQ(y[0].dims(), (Dims{c.batch, c.group * c.out_channels, size(c.h), size(c.w)}));
    expect_near(y[0], naive(c, x, w, true, size(c.h), size(c.w)));
    ++ran;
  }
  EXPECT_GT(ran, 100);
}

TEST(Conv, IsTheSameForMoreColumnsThanOneBlock) {
  std::mt19937 random(7);
  Case c{1,
         1,
         40,
         70,
         {30, 3, 1, 1, 1, 1},
         {31, 3, 1, 1, 1, 1},
         attributes({{"pads", Ints{1, 1, 1, 1}}})};
  const Tensor x = random_floats({1, 40, 30, 31}, random);
  const Tensor w = random_floats({70, 40, 3, 3}, random);
  expect_near(run_op("Conv", c.attributes, {x, w}).value()[0], naive(c, x, w, false, 30, 31));
}

TEST(ConvTranspose, SpreadsEachElementOverItsStride) {
  const Tensor x = floats({1, 1, 1, 2}, {1, 2});
  const Tensor w = floats({1, 1, 2, 2}, {1, 2, 3, 4});
  const auto y =
      run_op("ConvTranspose", attributes({{"strides", Ints{2, 2}}}), {x, w, floats({1}, {10})})
          .value();
  EXPECT_EQ(y[0].dims(), (Dims{1, 1, 2, 4}));
  EXPECT_EQ(to_vector(y[0]), (std::vector<float>{11, 12, 12, 14, 13, 14, 16, 18}));
}

// What no tap meets is 0, and no product of a weight that is not finite.
TEST(ConvTranspose, MultipliesNothingBetweenItsStrides) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const Tensor x = floats({1, 1, 2}, {1, -2});
  const auto spread = [&](std::vector<float> w, Ints strides, Ints pads) {
    const auto size = static_cast<std::int64_t>(w.size());
    return to_vector(run_op("ConvTranspose", attributes({{"strides", strides}, {"pads", pads}}),
                            {x, floats({1, 1, size}, w), floats({1}, {10})})
                         .value()[0]);
  };
  EXPECT_EQ(spread({kInf}, {3}, {0, 0}), (std::vector<float>{kInf, 10, 10, -kInf}));
  EXPECT_EQ(spread({1, kInf}, {2}, {0, 0}), (std::vector<float>{11, kInf, 8, -kInf}));
  EXPECT_EQ(spread({kInf, 1}, {1}, {0, 0}), (std::vector<float>{kInf, -kInf, 8}));
  EXPECT_EQ(spread({kInf, 1}, {1}, {1, 0}), (std::vector<float>{-kInf, 8}));
}

TEST(ConvTranspose, TakesTheSizeThatOutputShapeNames) {
  const Tensor x = floats({1, 1, 3}, {1, 2, 3});
  const Tensor w = floats({1, 1, 3}, {1, 1, 1});
  // The full result has 5 elements {1, 3, 6, 5, 3}; two too many are cut, the odd one in front
  // unless SAME_UPPER says otherwise.
  const auto cut = run_op("ConvTranspose", attributes({{"output_shape", Ints{4}}}), {x, w}).value();
  EXPECT_EQ(to_vector(cut[0]), (std::vector<float>{3, 6, 5, 3}));
  const auto upper =
      run_op("ConvTranspose",
             attributes({{"output_shape", Ints{4}}, {"auto_pad", std::string("SAME_UPPER")}}),
             {x, w})
          .value();
  EXPECT_EQ(to_vector(upper[0]), (std::vector<float>{1, 3, 6, 5}));
}

TEST(ConvTranspose, OutputPaddingAddsElementsAtTheEnd) {
  const auto y =
      run_op("ConvTranspose", attributes({{"strides", Ints{2}}, {"output_padding", Ints{1}}}),
             {floats({1, 1, 2}, {1, 2}), floats({1, 1, 1}, {1})})
          .value();
  EXPECT_EQ(to_vector(y[0]), (std::vector<float>{1, 0, 2, 0}));
}

// ---- Inference ----

TEST(ConvInference, KeepsSymbolicSizes) {
  EXPECT_EQ(infer_text("Conv", attributes({{"pads", Ints{1, 1, 1, 1}}}),
                       {"fp32[n, 3, h, w]", "fp32[8, 3, 3, 3]"}),
            "fp32[n, 8, h, w]");
  EXPECT_EQ(infer_text("Conv", attributes({{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{2, 2}}}),
                       {"fp32[n, 3, h, 640]", "fp32[8, 3, 3, 3]"}),
            "fp32[n, 8, floordiv(h + 1, 2), 320]");  // floordiv(h - 1, 2) + 1
  EXPECT_EQ(infer_text("Conv",
                       attributes({{"auto_pad", std::string("SAME_UPPER")}, {"strides", Ints{2}}}),
                       {"fp32[n, 3, h]", "fp32[8, 3, 3]"}),
            "fp32[n, 8, floordiv(h + 1, 2)]");  // ceildiv(h, 2)
}

TEST(ConvInference, OfAKernelThatOnlyTheRunTells) {
  EXPECT_EQ(infer_text("Conv", {}, {"fp32[n, 3, h]", "fp32[8, 3, k]"}), "fp32[n, 8, h - k + 1]");
  EXPECT_EQ(infer_text("Conv", attributes({{"strides", Ints{2, 1}}, {"dilations", Ints{1, 3}}}),
                       {"fp32[n, 3, 9, w]", "fp32[8, 3, 3, k]"}),
            "fp32[n, 8, 4, -3*k + w + 3]");
  EXPECT_EQ(infer_text("Conv",
                       attributes({{"auto_pad", std::string("SAME_LOWER")}, {"strides", Ints{2}}}),
                       {"fp32[n, c, h]", "fp32[o, i, k]"}),
            "fp32[n, o, floordiv(h + 1, 2)]");
  EXPECT_EQ(infer_text("ConvTranspose", attributes({{"strides", Ints{2}}}),
                       {"fp32[n, 3, h]", "fp32[3, o, k]"}),
            "fp32[n, o, 2*h + k - 2]");
  EXPECT_EQ(infer_text("Conv", {}, {"fp32[n, 3, h]", "fp32[?]"}), "fp32[n, conv0, conv1]");
  EXPECT_EQ(infer_text("Conv", {}, {"fp32[?]", "fp32[8, 3, 3]"}), "fp32[?]");
}

TEST(ConvTransposeInference, KeepsSymbolicSizes) {
  EXPECT_EQ(infer_text("ConvTranspose", attributes({{"strides", Ints{2, 2}}}),
                       {"fp32[n, 24, h, w]", "fp32[24, 8, 2, 2]"}),
            "fp32[n, 8, 2*h, 2*w]");
  EXPECT_EQ(infer_text("ConvTranspose", attributes({{"group", std::int64_t{2}}}),
                       {"fp32[n, 4, 5]", "fp32[4, 8, 3]"}),
            "fp32[n, 16, 7]");
}

TEST(ConvErrors, NameTheAttribute) {
  const std::vector<std::string> types{"fp32[1, 4, 8, 8]", "fp32[6, 4, 3, 3]"};
  const auto with = [&](std::string name, AttributeValue value) {
    return infer_text("Conv", attributes({{std::move(name), std::move(value)}}), types);
  };
  EXPECT_EQ(with("strides", Ints{0, 1}), "Conv: strides[0]: expected at least 1, found 0");
  EXPECT_EQ(with("strides", Ints{1}), "Conv: strides: expected 2 values, found 1");
  EXPECT_EQ(with("dilations", Ints{1, -2}), "Conv: dilations[1]: expected at least 1, found -2");
  EXPECT_EQ(with("dilations", Ints{1, std::int64_t{1} << 40}),
            "Conv: dilations[1]: expected at most 1073741824, found 1099511627776");
  EXPECT_EQ(with("pads", Ints{0, 0, -1, 0}), "Conv: pads[2]: expected at least 0, found -1");
  EXPECT_EQ(with("kernel_shape", Ints{5, 5}),
            "Conv: kernel_shape: expected [3, 3] as the weight has, found [5, 5]");
  EXPECT_EQ(with("auto_pad", std::string("SAME")),
            "Conv: auto_pad: expected NOTSET, SAME_UPPER, SAME_LOWER or VALID, found 'SAME'");
  EXPECT_EQ(with("group", std::int64_t{0}), "Conv: group: expected at least 1, found 0");
  EXPECT_EQ(with("group", std::int64_t{4}),
            "Conv: group: expected a divisor of the 6 output channels, found 4");
  EXPECT_EQ(with("group", std::int64_t{3}),
            "Conv: group: expected a divisor of the 4 input channels, found 3");
  EXPECT_EQ(
      with("group", std::int64_t{2}),
      "Conv: channels of input 'X': expected 8 (group 2 times the 4 channels of 'W'), found 4");
}

TEST(ConvErrors, NameTheInput) {
  EXPECT_EQ(infer_text("Conv", {}, {"fp32[1, 4]", "fp32[6, 4]"}),
            "Conv: input 'X': expected rank 3 or more (batch, channels, spatial), found rank 2");
  EXPECT_EQ(infer_text("Conv", {}, {"fp32[1, 4, 8]", "fp32[6, 4, 3, 3]"}),
            "Conv: input 'W': expected rank 3 as 'X' has, found rank 4");
  EXPECT_EQ(infer_text("Conv", {}, {"fp32[1, 4, 8]", "fp32[6, 4, 3]", "fp32[6, 1]"}),
            "Conv: input 'B': expected rank 1, found rank 2");
  EXPECT_EQ(infer_text("Conv", {}, {"fp32[1, 4, 8]", "fp32[6, 4, 3]", "fp32[4]"}),
            "Conv: elements of input 'B': expected 6 (one for each output channel), found 4");
  EXPECT_EQ(
      infer_text("Conv", {}, {"fp32[1, 4, 2]", "fp32[6, 4, 7]"}),
      "Conv: spatial axis 0: expected a padded size of at least 7 (the dilated kernel), found 2");
}

TEST(ConvInference, NoWindowIsNoOutputAndMoreIsMissingAnError) {
  const auto with = [](const char* x, std::int64_t stride) {
    return infer_text("Conv", attributes({{"strides", Ints{stride}}}), {x, "fp32[6, 4, 3]"});
  };
  EXPECT_EQ(with("fp32[1, 4, 2]", 1), "fp32[1, 6, 0]");
  EXPECT_EQ(with("fp32[1, 4, 0]", 3), "fp32[1, 6, 0]");
  EXPECT_EQ(
      with("fp32[1, 4, 0]", 2),
      "Conv: spatial axis 0: expected a padded size of at least 3 (the dilated kernel), found 0");
}

TEST(ConvErrors, AreThoseOfTheKernelToo) {
  const auto result = run_op("Conv", {}, {floats({1, 1, 2}, {1, 2}), floats({1, 2, 1}, {1, 1})});
  EXPECT_EQ(
      error_text(result),
      "Conv: channels of input 'X': expected 2 (group 1 times the 2 channels of 'W'), found 1");
}

TEST(ConvTransposeErrors, NameTheAttribute) {
  const std::vector<std::string> types{"fp32[1, 4, 8]", "fp32[4, 6, 3]"};
  const auto with = [&](std::string name, AttributeValue value) {
    return infer_text("ConvTranspose", attributes({{std::move(name), std::move(value)}}), types);
  };
  EXPECT_EQ(with("output_padding", Ints{-1}),
            "ConvTranspose: output_padding[0]: expected at least 0, found -1");
  EXPECT_EQ(with("output_padding", Ints{1, 1}),
            "ConvTranspose: output_padding: expected 1 values, found 2");
  EXPECT_EQ(with("output_shape", Ints{1, 2}),
            "ConvTranspose: output_shape: expected 1 values, found 2");
  EXPECT_EQ(with("output_shape", Ints{-3}),
            "ConvTranspose: output_shape[0]: expected at least 0, found -3");
  EXPECT_EQ(with("pads", Ints{8, 8}),
            "ConvTranspose: spatial axis 0: expected pads of at most 10, found 8 and 8");
  EXPECT_EQ(infer_text("ConvTranspose", attributes({{"strides", Ints{4}}}),
                       {"fp32[1, 4, 0]", "fp32[4, 6, 3]"}),
            "ConvTranspose: spatial axis 0: expected a size of at least 1, found 0");
  EXPECT_EQ(infer_text("ConvTranspose", {}, {"fp32[1, 4, 0]", "fp32[4, 6, 3]"}), "fp32[1, 6, 2]");
  EXPECT_EQ(infer_text("ConvTranspose", {}, {"fp32[1, 4, 8]", "fp32[5, 6, 3]"}),
            "ConvTranspose: channels of input 'X': expected 5 (the first size of 'W'), found 4");
}

TEST(ConvWork, CountsTwoFlopsForEachProduct) {
  const TensorSpec x{DType::kFp32, {1, 64, 56, 56}, true}, w{DType::kFp32, {64, 64, 3, 3}, true},
      y{DType::kFp32, {1, 64, 56, 56}, true};
  const TensorSpec inputs[] = {x, w}, outputs[] = {y};
  const Work work = work_of(*find_op("", "Conv"), {}, inputs, outputs);
  EXPECT_DOUBLE_EQ(work.flops, 2.0 * 64 * 56 * 56 * 64 * 9);  // 231 MFLOP
  EXPECT_DOUBLE_EQ(work.bytes_read, 4.0 * (64 * 56 * 56 + 64 * 64 * 9));
  EXPECT_DOUBLE_EQ(work.bytes_written, 4.0 * 64 * 56 * 56);
}

}  // namespace
}  // namespace tessera::ops::nn::testing
