#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backends/cpu/compile/conv_case_test.h"
#include "backends/cpu/run/winograd_conv_plan.h"

namespace tessera::backends::cpu {
namespace {

std::size_t own_candidates(Bench& bench, const SymbolBindings& point) {
  return candidates_of(bench, point, "simd.winograd_conv");
}

ConvCase square(std::string name, std::int64_t in, std::int64_t out, Dims pads, Dims size) {
  return {std::move(name), in, out, 1, {3, 3}, {1, 1}, std::move(pads), {1, 1}, std::move(size)};
}

class WinogradConv : public ::testing::TestWithParam<ConvCase> {};

// Tiles of both sizes, priced at batch 1, at other batches and another size.
TEST_P(WinogradConv, MatchesReference) {
  const ConvCase& c = GetParam();
  Bench bench;
  add_conv(bench, c);
  EXPECT_EQ(own_candidates(bench, c.at(1)), 2U);
  const double tolerance = 4e-6 * std::sqrt(c.depth()) + 5e-6;
  bench.check(c.at(1), {c.at(1), c.at(3), c.at(1, 5)}, tolerance);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, WinogradConv,
    ::testing::Values(square("whole_tiles", 16, 32, {1, 1, 1, 1}, {16, 16}),
                      square("part_tiles", 16, 32, {1, 1, 1, 1}, {15, 13}),
                      square("no_pads", 16, 16, {0, 0, 0, 0}, {10, 11}),
                      square("many_pads", 9, 16, {3, 4, 2, 5}, {3, 2}),
                      square("odd_channels", 13, 21, {1, 1, 1, 1}, {9, 8}),
                      square("channels_of_two_groups", 24, 72, {1, 1, 1, 1}, {6, 6}),
                      square("deep", 600, 40, {1, 1, 1, 1}, {5, 5}),
                      square("many_tiles", 8, 16, {1, 1, 1, 1}, {60, 50}),
                      square("weights_larger", 96, 128, {1, 1, 1, 1}, {5, 5}),
                      square("less_than_a_tile", 32, 48, {1, 1, 1, 1}, {1, 1})),
    [](const auto& param) { return param.param.name; });

// What is added and kept in a range on the sums, of whole panels and of others, and what comes
// behind it.
TEST(WinogradConvEpilogue, AddsAndKeepsInARange) {
  for (const std::int64_t channels : {32, 21}) {
    for (const bool clips : {false, true}) {
      SCOPED_TRACE(channels);
      Bench bench;
      add_ranged_sum(bench, channels, clips);
      EXPECT_EQ(own_candidates(bench, {}), 2U);
      bench.check(5e-5);
    }
  }
}

// What is infinite, no number, or too large for the sums of a tile reaches only the results that
// read it, as in the other kernels.
TEST(WinogradConvEpilogue, KeepsWhatIsNotFiniteWhereItBelongs) {
  for (const float value :
       {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(),
        std::numeric_limits<float>::max()}) {
    SCOPED_TRACE(value);
    Bench bench;
    bench.middle = value;  // of channel 7, in the middle of the image
    const auto conv = bench.op(
        "Conv",
        {bench.input("x", {1, 15, 13, 13}), bench.random_constant("w", {24, 15, 3, 3}, 0.5, 1),
         bench.random_constant("b", {24})},
        attributes({{"pads", std::vector<std::int64_t>{1, 1, 1, 1}}}));
    bench.output(conv);
    bench.check(2e-5);
  }
}

TEST(WinogradConvOffers, NoneWhereExactAlgorithmsAreAskedFor) {
  Bench bench;
  bench.output(bench.op(
      "Conv", {bench.input("x", {1, 16, 12, 12}), bench.random_constant("w", {16, 16, 3, 3})}));
  EXPECT_EQ(own_candidates(bench, {}), 2U);
  bench.options.exact = true;
  EXPECT_EQ(own_candidates(bench, {}), 0U);
}

TEST(WinogradConvOffers, LeavesOtherWindows) {
  using Ints = std::vector<std::int64_t>;
  const auto candidates = [](Dims weights, const ops::Attributes& with) {
    Bench bench;
    const auto x = bench.input("x", {1, 16, 12, 12});
    bench.output(bench.op("Conv", {x, bench.random_constant("w", std::move(weights))}, with));
    return own_candidates(bench, {});
  };
  EXPECT_EQ(candidates({16, 16, 3, 3}, {}), 2U);
  EXPECT_EQ(candidates({16, 16, 3, 3}, attributes({{"strides", Ints{2, 1}}})), 0U);
  EXPECT_EQ(candidates({16, 16, 3, 3}, attributes({{"dilations", Ints{2, 2}}})), 0U);
  EXPECT_EQ(candidates({16, 16, 3, 1}, {}), 0U);
  EXPECT_EQ(candidates({16, 8, 3, 3}, attributes({{"group", std::int64_t{2}}})), 0U);
  EXPECT_EQ(candidates({4, 16, 3, 3}, {}), 0U);
}

TEST(WinogradConvLoad, RefusesForeignSpecs) {
  const Shape shape = {1, 16, 8, 8};
  const artefact::TensorDecl packed{DType::kFp32, winograd_weights_layout(), {25, 16, 16}};
  artefact::KernelSpec good = conv_spec("simd.winograd_conv", shape, shape, packed);
  EXPECT_EQ(load_error(good), "kernel 'simd.winograd_conv': option 'tile': expected 2 or 4");
  good.options["tile"] = 2;
  EXPECT_EQ(load_error(good), "");
  artefact::KernelSpec tiles = good;
  tiles.options["tile"] = 4;
  EXPECT_EQ(load_error(tiles), "kernel 'simd.winograd_conv': expected weights of 3 sizes in " +
                                   packed.layout.to_string() + ", found [25, 16, 16] in " +
                                   packed.layout.to_string());
  artefact::KernelSpec rows = good;
  rows.constants[0].layout = {};
  EXPECT_EQ(load_error(rows), "kernel 'simd.winograd_conv': expected weights of 3 sizes in " +
                                  packed.layout.to_string() + ", found [25, 16, 16] in " +
                                  Layout().to_string());
  artefact::KernelSpec computed = good;
  computed.inputs.push_back(computed.constants[0]);
  computed.constants.clear();
  EXPECT_EQ(load_error(computed), "kernel 'simd.winograd_conv': expected constant weights");
  artefact::KernelSpec channels = good;
  channels.inputs[0].shape = {1, 17, 8, 8};
  EXPECT_EQ(load_error(channels),
            "kernel 'simd.winograd_conv': expected 16 channels to 16, found [1, 17, 8, 8] to [1, "
            "16, 8, 8]");
  artefact::KernelSpec steps = good;
  steps.steps[0].attributes = attributes({{"strides", std::vector<std::int64_t>{2, 1}}});
  EXPECT_EQ(load_error(steps),
            "Conv: expected a window of [3,3] in steps of [1,1], found 3x3 in steps of 2x1, "
            "dilated by 1x1");
  artefact::KernelSpec groups = good;
  groups.inputs[0].shape = {1, 32, 8, 8};
  groups.steps[0].attributes = attributes({{"group", std::int64_t{2}}});
  EXPECT_EQ(load_error(groups), "Conv: expected one group, found 2");
}

}  // namespace
}  // namespace tessera::backends::cpu
