#include <gtest/gtest.h>

#include <cmath>

#include "backends/cpu/compile/conv_case_test.h"
#include "backends/cpu/run/gemm_conv_plan.h"

namespace tessera::backends::cpu {
namespace {

using Ints = std::vector<std::int64_t>;

std::size_t own_candidates(Bench& bench, const SymbolBindings& point) {
  return candidates_of(bench, point, "simd.gemm_conv");
}

class GemmConv : public ::testing::TestWithParam<ConvCase> {};

// Every candidate, own code among them, priced at batch 1, at other batches and another size.
TEST_P(GemmConv, MatchesReference) {
  const ConvCase& c = GetParam();
  Bench bench;
  add_conv(bench, c);
  EXPECT_EQ(own_candidates(bench, c.at(1)), 1U);
  const double tolerance = 2e-6 * std::sqrt(c.depth()) + 5e-6;
  bench.check(c.at(1), {c.at(1), c.at(3), c.at(1, 5)}, tolerance);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, GemmConv,
    ::testing::Values(
        ConvCase{"plain", 16, 32, 1, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, {14, 14}},
        ConvCase{"three_channels", 3, 21, 1, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, {33, 31}},
        ConvCase{"one_channel_to_one", 1, 1, 1, {5, 5}, {1, 1}, {2, 2, 2, 2}, {1, 1}, {9, 40}},
        ConvCase{"unit_kernel", 40, 50, 1, {1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, {12, 13}},
        ConvCase{"unit_kernel_with_pads", 9, 16, 1, {1, 1}, {3, 2}, {1, 2, 0, 3}, {1, 1}, {7, 8}},
        ConvCase{"segment_in_pieces", 300, 20, 1, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, {7, 7}},
        ConvCase{"deep_unit_kernel", 1400, 16, 1, {1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, {3, 5}},
        ConvCase{
            "all_columns_at_the_border", 6, 17, 1, {3, 9}, {1, 1}, {2, 7, 1, 8}, {1, 1}, {4, 5}},
        ConvCase{"windows_in_the_padding", 4, 16, 1, {2, 2}, {1, 1}, {3, 4, 5, 3}, {1, 1}, {3, 2}},
        ConvCase{
            "stride_beyond_the_kernel", 5, 18, 1, {2, 2}, {3, 5}, {1, 0, 0, 4}, {1, 1}, {19, 33}},
        ConvCase{"dilated_columns", 7, 24, 1, {3, 3}, {1, 2}, {2, 4, 2, 4}, {2, 4}, {17, 26}},
        ConvCase{"dilated_rows", 7, 24, 1, {3, 3}, {1, 1}, {3, 1, 3, 1}, {3, 1}, {17, 26}},
        ConvCase{"groups", 12, 64, 4, {3, 3}, {2, 1}, {1, 0, 1, 2}, {1, 1}, {11, 12}},
        ConvCase{
            "groups_of_part_of_a_panel", 12, 42, 6, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, {9, 10}},
        ConvCase{
            "groups_across_panels", 24, 136, 4, {1, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, {14, 14}},
        ConvCase{"line", 20, 30, 1, {5}, {2}, {2, 1}, {1}, {77}},
        ConvCase{"long_line", 64, 48, 1, {31}, {1}, {0, 0}, {1}, {400}},
        ConvCase{"many_positions", 8, 16, 1, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, {60, 50}},
        ConvCase{"weights_larger", 96, 128, 1, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, {5, 5}}),
    [](const auto& param) { return param.param.name; });

// What is added and kept in a range on the sums, of whole panels and of others, and what comes
// behind it.
TEST(GemmConvEpilogue, AddsAndKeepsInARange) {
  for (const std::int64_t channels : {32, 21}) {
    for (const bool clips : {false, true}) {
      SCOPED_TRACE(channels);
      Bench bench;
      add_ranged_sum(bench, channels, clips);
      EXPECT_EQ(own_candidates(bench, {}), 1U);
      bench.check(3e-5);
    }
  }
}

TEST(GemmConvOffers, LeavesDepthwiseOnes) {
  Bench bench;
  const auto x = bench.input("x", {1, 6, 9, 9});
  bench.output(bench.op("Conv", {x, bench.random_constant("w", {6, 1, 3, 3})},
                        attributes({{"group", std::int64_t{6}}})));
  EXPECT_EQ(own_candidates(bench, {}), 0U);
}

TEST(GemmConvOffers, RefusesWeightsComputedAtRunTime) {
  Bench bench;
  const auto x = bench.input("x", {1, 2, 9, 9});
  bench.output(bench.op("Conv", {x, bench.input("w", {3, 2, 3, 3})}));
  EXPECT_EQ(own_candidates(bench, {}), 0U);
}

TEST(GemmConvLoad, RefusesForeignSpecs) {
  const Shape shape = {1, 16, 8, 8};
  const artefact::KernelSpec good = conv_spec(
      "simd.gemm_conv", shape, shape, {DType::kFp32, gemm_conv_weights_layout(4), {16, 16, 3, 3}});
  EXPECT_EQ(load_error(good), "");
  artefact::KernelSpec channels = good;
  channels.outputs[0].shape = {1, 24, 8, 8};
  EXPECT_EQ(load_error(channels),
            "kernel 'simd.gemm_conv': expected 16 channels to 16, found [1, 16, 8, 8] to [1, 24, "
            "8, 8]");
  artefact::KernelSpec rows = good;
  rows.constants[0].layout = {};
  EXPECT_EQ(load_error(rows), "kernel 'simd.gemm_conv': expected weights in " +
                                  gemm_conv_weights_layout(4).to_string() + ", found " +
                                  Layout().to_string());
}

}  // namespace
}  // namespace tessera::backends::cpu
