#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cmath>

#include "backends/cpu/compile/conv_case_test.h"
#include "backends/cpu/run/depthwise_conv_plan.h"

namespace tessera::backends::cpu {
namespace {

using Ints = std::vector<std::int64_t>;

bool is_own(const Candidate& candidate) {
  return candidate.kernel == "simd.depthwise_conv";
}

bool has_own_candidate(Bench& bench, const SymbolBindings& point) {
  return candidates_of(bench, point, "simd.depthwise_conv") > 0;
}

// Calls `body` once for each instruction set of this processor that the kernel has code for.
template <typename Body>
void on_every_instruction_set(const Body& body) {
  const auto supported = hwy::SupportedTargets();
  for (const auto target : {HWY_AVX3, HWY_AVX2, HWY_SSSE3}) {
    if ((supported & target) == 0) continue;
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    body();
    hwy::SetSupportedTargetsForTest(0);
  }
}

class DepthwiseConv : public ::testing::TestWithParam<ConvCase> {};

// Every candidate, own code among them, priced at batch 1, at other batches (none, too) and another
// size.
TEST_P(DepthwiseConv, MatchesReference) {
  const ConvCase& c = GetParam();
  Bench bench;
  add_conv(bench, c);
  EXPECT_TRUE(has_own_candidate(bench, c.at(1)));
  const double tolerance = 2e-6 * std::sqrt(c.depth()) + 5e-6;
  on_every_instruction_set([&] {
    bench.check(c.at(1), {c.at(1), c.at(5), c.at(0), c.at(1, 5)}, tolerance);
  });
}

ConvCase depthwise(std::string name, std::int64_t channels, Ints kernel, Ints strides, Ints pads,
                   Ints dilations, Dims size) {
  return {std::move(name),   channels,           channels,        channels,
          std::move(kernel), std::move(strides), std::move(pads), std::move(dilations),
          std::move(size)};
}

ConvCase square(std::string name, std::int64_t channels, std::int64_t kernel, std::int64_t stride,
                Dims size) {
  const std::int64_t pad = kernel / 2;
  return depthwise(std::move(name), channels, {kernel, kernel}, {stride, stride},
                   {pad, pad, pad, pad}, {1, 1}, std::move(size));
}

std::vector<ConvCase> channel_counts() {
  std::vector<ConvCase> cases;
  for (const std::int64_t channels : {2, 3, 7, 8, 9, 15, 16, 17, 31, 58, 96})
    cases.push_back(square("of" + std::to_string(channels), channels, 3, 1, {9, 11}));
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Channels, DepthwiseConv, ::testing::ValuesIn(channel_counts()),
                         [](const auto& param) { return param.param.name; });

INSTANTIATE_TEST_SUITE_P(
    Shapes, DepthwiseConv,
    ::testing::Values(
        square("three_by_two", 24, 3, 2, {23, 29}), square("five", 24, 5, 1, {14, 14}),
        square("five_by_two", 19, 5, 2, {14, 15}), square("seven", 16, 7, 1, {10, 12}),
        square("by_three", 16, 3, 3, {20, 21}), square("one_column", 16, 3, 1, {9, 1}),
        square("three_columns", 16, 3, 1, {3, 3}), square("four_columns", 16, 5, 1, {4, 4}),
        square("wide", 9, 3, 1, {2, 61}), square("larger_than_the_source", 8, 9, 1, {2, 3}),
        depthwise("no_pads", 40, {3, 3}, {1, 1}, {0, 0, 0, 0}, {1, 1}, {11, 13}),
        depthwise("uneven_pads", 12, {3, 5}, {1, 2}, {0, 3, 2, 1}, {1, 1}, {9, 17}),
        depthwise("pads_beyond_the_kernel", 8, {3, 3}, {1, 1}, {4, 5, 3, 4}, {1, 1}, {6, 7}),
        depthwise("dilated", 20, {3, 3}, {1, 1}, {2, 3, 2, 3}, {2, 3}, {15, 16}),
        depthwise("dilated_rows", 20, {3, 3}, {2, 1}, {4, 1, 4, 1}, {4, 1}, {15, 16}),
        depthwise("stride_beyond_the_kernel", 8, {2, 2}, {3, 5}, {1, 0, 0, 4}, {1, 1}, {19, 33}),
        depthwise("column", 33, {5, 1}, {1, 1}, {2, 0, 2, 0}, {1, 1}, {12, 6}),
        depthwise("row", 33, {1, 5}, {1, 1}, {0, 2, 0, 2}, {1, 1}, {6, 12}),
        depthwise("point", 33, {1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, {6, 12}),
        depthwise("line", 17, {3}, {1}, {1, 1}, {1}, {37}),
        depthwise("line_by_two", 17, {5}, {2}, {2, 1}, {1}, {38}),
        depthwise("line_dilated", 5, {4}, {3}, {3, 2}, {2}, {38}),
        // Shared by two threads as rows, columns and channels.
        square("shared_rows", 32, 3, 1, {40, 40}), square("shared_channels", 520, 3, 1, {7, 7}),
        depthwise("shared_columns", 40, {5}, {1}, {2, 2}, {1}, {1201})),
    [](const auto& param) { return param.param.name; });

TEST(DepthwiseConvOffers, PadsByTheSizes) {
  for (const std::string pad : {"SAME_UPPER", "SAME_LOWER", "VALID"}) {
    SCOPED_TRACE(pad);
    Bench bench;
    const auto x = bench.input("x", {2, 11, 12, 15});
    bench.output(bench.op(
        "Conv", {x, bench.random_constant("w", {11, 1, 4, 3})},
        attributes({{"group", std::int64_t{11}}, {"strides", Ints{1, 2}}, {"auto_pad", pad}})));
    EXPECT_TRUE(has_own_candidate(bench, {}));
    bench.check(2e-5);
  }
}

// Operands behind the sums: as large as the result, or one value for each channel, constant or not;
// over rows and over channels that threads share.
TEST(DepthwiseConvOffers, TakesOperandsOfWhatStandsBehind) {
  for (const Dims& dims : {Dims{1, 48, 30, 30}, Dims{1, 520, 7, 7}}) {
    Bench bench;
    const auto x = bench.input("x", to_shape(dims));
    const auto y = bench.op("Conv", {x, bench.random_constant("w", {dims[1], 1, 3, 3})},
                            attributes({{"group", dims[1]}, {"pads", Ints{1, 1, 1, 1}}}));
    const auto sum = bench.op("Add", {y, bench.input("r", to_shape(dims))});
    const auto scaled = bench.op("Mul", {sum, bench.random_constant("c", {dims[1], 1, 1})});
    const auto gated = bench.op("Mul", {scaled, bench.input("g", {1, dims[1], 1, 1})});
    bench.output(bench.op("Sigmoid", {gated}));
    EXPECT_TRUE(has_own_candidate(bench, {}));
    bench.check(2e-5);
  }
}

TEST(DepthwiseConvOffers, LeavesOtherConvolutionsAlone) {
  Bench two;  // results of each channel
  two.output(two.op("Conv", {two.input("x", {1, 8, 9, 9}), two.random_constant("w", {16, 1, 3, 3})},
                    attributes({{"group", std::int64_t{8}}})));
  EXPECT_FALSE(has_own_candidate(two, {}));
  Bench transposed;
  transposed.output(transposed.op(
      "ConvTranspose",
      {transposed.input("x", {1, 8, 9, 9}), transposed.random_constant("w", {8, 1, 3, 3})},
      attributes({{"group", std::int64_t{8}}})));
  EXPECT_FALSE(has_own_candidate(transposed, {}));
}

TEST(DepthwiseConvOffers, RefusesWeightsComputedAtRunTime) {
  Bench bench;
  bench.output(bench.op("Conv", {bench.input("x", {1, 8, 9, 9}), bench.input("w", {8, 1, 3, 3})},
                        attributes({{"group", std::int64_t{8}}})));
  EXPECT_FALSE(has_own_candidate(bench, {}));
}

// Work per result is that of the vectors: channels that fill none cost as much as if they did.
TEST(DepthwiseConvOffers, PricesVectorsThatAreNotFull) {
  const auto share = [](std::int64_t channels, std::int64_t stride) {
    Bench bench;
    const auto x = bench.input("x", {1, channels, 28, 28});
    bench.output(bench.op("Conv", {x, bench.random_constant("w", {channels, 1, 3, 3})},
                          attributes({{"group", channels}, {"strides", Ints{stride, stride}}})));
    const Offers offers = bench.offers({});
    return std::find_if(offers.candidates.begin(), offers.candidates.end(), is_own)->efficiency;
  };
  EXPECT_EQ(share(64, 1), share(32, 1));
  EXPECT_LT(share(33, 1), share(32, 1));
  EXPECT_LT(share(3, 1), share(32, 1) / 4);
  EXPECT_LT(share(64, 2), share(64, 1));
}

// For a convolution of 4 channels in 4 groups.
artefact::KernelSpec spec_of(const Shape& shape, const Shape& weights) {
  return conv_spec("simd.depthwise_conv", shape, shape,
                   {DType::kFp32, depthwise_weights_layout(shape.size()), weights}, 4);
}

TEST(DepthwiseConvLoad, SaysWhatItCannotTake) {
  const Shape shape = {1, 4, 8, 8};
  EXPECT_EQ(load_error(spec_of(shape, {4, 1, 3, 3})), "");
  EXPECT_EQ(load_error(spec_of(shape, {8, 1, 3, 3})),
            "Conv: expected one channel in each group, found weights 8x1x3x3 in 4 groups");
  EXPECT_EQ(load_error(spec_of({1, 4, 8, 8, 8}, {4, 1, 3, 3, 3})),
            "Conv: expected rank 3 or 4, found 5");
  artefact::KernelSpec weights = spec_of(shape, {4, 1, 3, 3});
  weights.inputs.push_back(weights.constants[0]);
  weights.constants.clear();
  EXPECT_EQ(load_error(weights),
            "Conv: input 'W': expected a constant, found one computed at run time");
  artefact::KernelSpec source = spec_of(shape, {4, 1, 3, 3});
  source.constants.insert(source.constants.begin(), source.inputs[0]);
  source.inputs.clear();
  EXPECT_EQ(load_error(source),
            "Conv: input 'X': expected one computed at run time, found a constant");
}

TEST(DepthwiseConvLoad, RefusesForeignSpecs) {
  artefact::KernelSpec channels = spec_of({1, 4, 8, 8}, {4, 1, 3, 3});
  channels.inputs[0].shape = {1, 5, 8, 8};
  EXPECT_EQ(
      load_error(channels),
      "kernel 'simd.depthwise_conv': expected 4 channels, found [1, 5, 8, 8] and [1, 4, 8, 8]");
  artefact::KernelSpec rows = spec_of({1, 4, 8, 8}, {4, 1, 3, 3});
  rows.inputs[0].layout = {};
  EXPECT_EQ(load_error(rows),
            "kernel 'simd.depthwise_conv': expected channels-last operands, found " +
                Layout().to_string() + " and " + Layout::channels_last(4).to_string());
  artefact::KernelSpec weights = spec_of({1, 4, 8, 8}, {4, 1, 3, 3});
  weights.constants[0].layout = {};
  EXPECT_EQ(load_error(weights), "kernel 'simd.depthwise_conv': expected weights in " +
                                     depthwise_weights_layout(4).to_string() + ", found " +
                                     Layout().to_string());
}

}  // namespace
}  // namespace tessera::backends::cpu
