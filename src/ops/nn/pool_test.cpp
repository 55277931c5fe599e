// Pooling: values by hand, against plain loops over random attributes, sizes with ceil_mode,
// upgrades, errors.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/nn/nn_test_util.h"

namespace tessera::ops::nn::testing {
namespace {

using Ints = std::vector<std::int64_t>;

Tensor one_to(std::int64_t count, Dims dims) {
  std::vector<float> values;
  for (std::int64_t i = 1; i <= count; ++i) values.push_back(static_cast<float>(i));
  return floats(std::move(dims), values);
}

TEST(MaxPool, TakesTheLargestAndSaysWhereItWas) {
  const auto y =
      run_op("MaxPool", attributes({{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}}),
             {one_to(16, {1, 1, 4, 4})}, 2)
          .value();
  EXPECT_EQ(to_vector(y[0]), (std::vector<float>{6, 8, 14, 16}));
  EXPECT_EQ(to_int64_vector(y[1].view()), (Ints{5, 7, 13, 15}));
}

TEST(MaxPool, CountsIndicesColumnByColumnOnRequest) {
  const auto y =
      run_op("MaxPool",
             attributes({{"kernel_shape", Ints{2, 2}}, {"storage_order", std::int64_t{1}}}),
             {one_to(12, {1, 2, 2, 3})}, 2)
          .value();
  EXPECT_EQ(to_int64_vector(y[1].view()),
            (Ints{3, 5, 9, 11}));  // row 1, columns 1 and 2 of each plane of 2 x 3
}

TEST(MaxPool, TakesTheFirstOfEquals) {
  const auto y =
      run_op("MaxPool", attributes({{"kernel_shape", Ints{3}}}), {floats({1, 1, 3}, {2, 2, 1})}, 2)
          .value();
  EXPECT_EQ(to_int64_vector(y[1].view()), (Ints{0}));
}

TEST(MaxPool, LetsNanWin) {
  const auto y =
      run_op("MaxPool", attributes({{"kernel_shape", Ints{3}}}), {floats({1, 1, 3}, {1, NAN, 2})})
          .value();
  EXPECT_TRUE(std::isnan(to_vector(y[0])[0]));
}

TEST(MaxPool, WorksOnBytes) {
  const std::int8_t x[] = {-5, -7, 3, -128};
  const auto y = run_op("MaxPool", attributes({{"kernel_shape", Ints{2}}, {"strides", Ints{2}}}),
                        {Tensor::copy_of({DType::kInt8, {1, 1, 4}, x})})
                     .value();
  EXPECT_EQ(y[0].dtype(), DType::kInt8);
  EXPECT_THAT(y[0].span<std::int8_t>(), ::testing::ElementsAre(-5, 3));
}

TEST(MaxPool, AWindowOfPaddingAloneIsMinusInfinity) {
  const auto y = run_op("MaxPool", attributes({{"kernel_shape", Ints{1}}, {"pads", Ints{1, 0}}}),
                        {floats({1, 1, 1}, {4})}, 2)
                     .value();
  EXPECT_EQ(to_vector(y[0]), (std::vector<float>{-std::numeric_limits<float>::infinity(), 4}));
  EXPECT_EQ(to_int64_vector(y[1].view()), (Ints{-1, 0}));
}

TEST(AveragePool, LeavesOutPaddingUnlessAsked) {
  const Tensor x = floats({1, 1, 3}, {3, 6, 9});
  const auto without =
      run_op("AveragePool", attributes({{"kernel_shape", Ints{3}}, {"pads", Ints{1, 1}}}), {x})
          .value();
  EXPECT_EQ(to_vector(without[0]), (std::vector<float>{4.5, 6, 7.5}));
  const auto with = run_op("AveragePool",
                           attributes({{"kernel_shape", Ints{3}},
                                       {"pads", Ints{1, 1}},
                                       {"count_include_pad", std::int64_t{1}}}),
                           {x})
                        .value();
  EXPECT_EQ(to_vector(with[0]), (std::vector<float>{3, 6, 5}));
}

TEST(AveragePool, NeverCountsWhatCeilModeReachesBeyondThePadding) {
  const auto y = run_op("AveragePool",
                        attributes({{"kernel_shape", Ints{3}},
                                    {"strides", Ints{2}},
                                    {"ceil_mode", std::int64_t{1}},
                                    {"count_include_pad", std::int64_t{1}}}),
                        {floats({1, 1, 4}, {1, 2, 3, 5})})
                     .value();
  EXPECT_EQ(to_vector(y[0]), (std::vector<float>{2, 4}));  // (3 + 5) / 2: the third tap lies beyond
}

TEST(AveragePool, AWindowOfPaddingAloneIsZero) {
  const auto y =
      run_op("AveragePool", attributes({{"kernel_shape", Ints{1}}, {"pads", Ints{0, 1}}}),
             {floats({1, 1, 1}, {4})})
          .value();
  EXPECT_EQ(to_vector(y[0]), (std::vector<float>{4, 0}));
}

TEST(LpPool, TakesThePthRoot) {
  const Tensor x = floats({1, 1, 2}, {3, -4});
  EXPECT_EQ(to_vector(run_op("LpPool", attributes({{"kernel_shape", Ints{2}}}), {x}).value()[0]),
            (std::vector<float>{5}));
  EXPECT_EQ(to_vector(run_op("LpPool",
                             attributes({{"kernel_shape", Ints{2}}, {"p", std::int64_t{1}}}), {x})
                          .value()[0]),
            (std::vector<float>{7}));
}

TEST(GlobalPools, ReduceEachPlane) {
  const Tensor x = floats({1, 2, 2, 2}, {1, 2, 3, 6, 0, -3, 0, 4});
  const auto mean = run_op("GlobalAveragePool", {}, {x}).value();
  EXPECT_EQ(mean[0].dims(), (Dims{1, 2, 1, 1}));
  EXPECT_EQ(to_vector(mean[0]), (std::vector<float>{3, 0.25}));
  EXPECT_EQ(to_vector(run_op("GlobalMaxPool", {}, {x}).value()[0]), (std::vector<float>{6, 4}));
  EXPECT_FLOAT_EQ(to_vector(run_op("GlobalLpPool", {}, {x}).value()[0])[1], 5);
}

TEST(GlobalPools, AllowEmptyBatches) {
  EXPECT_EQ(run_op("GlobalAveragePool", {}, {floats({0, 2, 3}, {})}).value()[0].dims(),
            (Dims{0, 2, 1}));
}

// One axis, written down again from the standard and kept apart from ops/nn/window.
struct Axis {
  std::int64_t in, kernel, stride, dilation, begin, end;
  bool ceil;
  [[nodiscard]] std::int64_t out() const {
    const std::int64_t room = in + begin + end - dilation * (kernel - 1) - 1;
    std::int64_t count = (ceil ? (room + stride - 1) / stride : room / stride) + 1;
    if (ceil && (count - 1) * stride >= in + begin)
      --count;  // it would start in the padding at the end
    return count;
  }
};

Axis random_axis(std::mt19937& random, bool ceil) {
  Axis axis{0, pick(random, 1, 4), pick(random, 1, 3), pick(random, 1, 2), 0, 0, ceil};
  axis.begin = pick(random, 0, axis.kernel - 1);
  axis.end = pick(random, 0, axis.kernel - 1);
  axis.in = axis.dilation * (axis.kernel - 1) + 1 + pick(random, 0, 6);
  return axis;
}

struct Found {
  double sum = 0, largest = -std::numeric_limits<double>::infinity();
  std::int64_t inside = 0, padded = 0;
};

Found window(const float* plane, const Axis& h, const Axis& w, std::int64_t oh, std::int64_t ow) {
  Found found;
  for (std::int64_t kh = 0; kh < h.kernel; ++kh)
    for (std::int64_t kw = 0; kw < w.kernel; ++kw) {
      const std::int64_t y = oh * h.stride - h.begin + kh * h.dilation,
                         x = ow * w.stride - w.begin + kw * w.dilation;
      if (y < h.in + h.end && x < w.in + w.end) ++found.padded;
      if (y < 0 || x < 0 || y >= h.in || x >= w.in) continue;
      ++found.inside;
      found.sum += static_cast<double>(plane[y * w.in + x]);
      found.largest = std::max(found.largest, static_cast<double>(plane[y * w.in + x]));
    }
  return found;
}

TEST(Pools, EqualPlainLoops) {
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const bool ceil = seed % 2 == 1;
    const bool include = seed % 4 > 1;
    const Axis h = random_axis(random, ceil), w = random_axis(random, ceil);
    Attributes attrs = attributes({{"kernel_shape", Ints{h.kernel, w.kernel}},
                                   {"strides", Ints{h.stride, w.stride}},
                                   {"dilations", Ints{h.dilation, w.dilation}},
                                   {"pads", Ints{h.begin, w.begin, h.end, w.end}},
                                   {"ceil_mode", std::int64_t{ceil}}});
    const Tensor x = random_floats({1, 2, h.in, w.in}, random);
    const Tensor largest = run_op("MaxPool", attrs, {x}).value()[0];
    attrs.set("count_include_pad", std::int64_t{include});
    const Tensor mean = run_op("AveragePool", attrs, {x}).value()[0];
    ASSERT_EQ(largest.dims(), (Dims{1, 2, h.out(), w.out()}));
    ASSERT_EQ(mean.dims(), largest.dims());
    std::size_t at = 0;
    for (std::int64_t c = 0; c < 2; ++c)
      for (std::int64_t oh = 0; oh < h.out(); ++oh)
        for (std::int64_t ow = 0; ow < w.out(); ++ow, ++at) {
          const Found found = window(x.span<float>().data() + c * h.in * w.in, h, w, oh, ow);
          const auto count = static_cast<double>(include ? found.padded : found.inside);
          ASSERT_EQ(static_cast<double>(largest.span<float>()[at]), found.largest);
          ASSERT_NEAR(mean.span<float>()[at], found.inside == 0 ? 0.0 : found.sum / count, 1e-5);
        }
  }
}

TEST(PoolInference, KeepsSymbolicSizes) {
  const auto with = [](Ints pads, bool ceil) {
    return infer_text("MaxPool",
                      attributes({{"kernel_shape", Ints{3}},
                                  {"strides", Ints{2}},
                                  {"pads", std::move(pads)},
                                  {"ceil_mode", std::int64_t{ceil}}}),
                      {"fp32[n, c, h]"});
  };
  EXPECT_EQ(with({1, 1}, false), "fp32[n, c, floordiv(h + 1, 2)]");
  EXPECT_EQ(with({0, 0}, true), "fp32[n, c, floordiv(h, 2)]");  // ceildiv(h - 3, 2) + 1
  EXPECT_EQ(with({0, 2}, true),
            "fp32[n, c, floordiv(h + 1, 2)]");  // ceildiv(h, 2): no window starts in the padding
  EXPECT_EQ(infer_text("GlobalAveragePool", {}, {"fp32[n, c, h, w]"}), "fp32[n, c, 1, 1]");
}

TEST(PoolInference, CeilModeKeepsAWindowThatDoesNotFit) {
  const auto with = [](const char* x, std::int64_t kernel) {
    return infer_text(
        "MaxPool",
        attributes(
            {{"kernel_shape", Ints{kernel}}, {"strides", Ints{2}}, {"ceil_mode", std::int64_t{1}}}),
        {x});
  };
  EXPECT_EQ(with("fp32[1, 1, 4]", 5), "fp32[1, 1, 1]");
  EXPECT_EQ(with("fp32[1, 1, 3]", 5), "fp32[1, 1, 0]");
  EXPECT_EQ(with("fp32[1, 1, 1]", 5),
            "MaxPool: spatial axis 0: expected a padded size of at least 5 (the dilated kernel), "
            "found 1");
}

TEST(PoolErrors, NameTheAttribute) {
  EXPECT_EQ(infer_text("MaxPool", {}, {"fp32[1, 1, 4]"}),
            "MaxPool: kernel_shape: expected one, found none");
  EXPECT_EQ(infer_text("MaxPool", attributes({{"kernel_shape", Ints{0}}}), {"fp32[1, 1, 4]"}),
            "MaxPool: kernel_shape[0]: expected at least 1, found 0");
  EXPECT_EQ(
      infer_text("AveragePool", attributes({{"kernel_shape", Ints{2, 2}}}), {"fp32[1, 1, 4]"}),
      "AveragePool: kernel_shape: expected 1 values, found 2");
  EXPECT_EQ(infer_text("MaxPool", attributes({{"kernel_shape", Ints{1 << 20, 1 << 20}}}),
                       {"fp32[1, 1, h, w]"}),
            "MaxPool: kernel_shape: expected at most 1073741824 taps, found [1048576, 1048576]");
  EXPECT_EQ(infer_text("LpPool", attributes({{"kernel_shape", Ints{2}}, {"p", std::int64_t{0}}}),
                       {"fp32[1, 1, 4]"}),
            "LpPool: p: expected at least 1, found 0");
  EXPECT_EQ(infer_text("MaxPool", attributes({{"kernel_shape", Ints{2}}}), {"fp32[1, 4]"}),
            "MaxPool: input 'X': expected rank 3 or more (batch, channels, spatial), found rank 2");
  EXPECT_EQ(
      infer_text("GlobalMaxPool", {}, {"fp32[4]"}),
      "GlobalMaxPool: input 'X': expected rank 2 or more (batch, channels, spatial), found rank 1");
}

TEST(PoolUpgrades, AFloatPBecomesAnInteger) {
  const Tensor x = floats({1, 1, 2}, {3, -4});
  EXPECT_EQ(
      to_vector(run_old("GlobalLpPool", 1, attributes({{"p", 1.0F}}), {x}).value().outputs[0]),
      (std::vector<float>{7}));
  EXPECT_EQ(error_text(run_old("GlobalLpPool", 1, attributes({{"p", 1.5F}}), {x})),
            "GlobalLpPool: p: expected a whole number of at least 1, found 1.5");
}

}  // namespace
}  // namespace tessera::ops::nn::testing
