#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backends/cpu/compile/conv_case_test.h"
#include "backends/cpu/compile/conv_draft.h"

namespace tessera::backends::cpu {
namespace {

using Ints = std::vector<std::int64_t>;

std::size_t own_candidates(Bench& bench, const SymbolBindings& point) {
  return candidates_of(bench, point, "simd.conv");
}

class PlaneConv : public ::testing::TestWithParam<ConvCase> {};

// Every candidate, own code among them, priced at batch 1, at other batches and another size.
TEST_P(PlaneConv, MatchesReference) {
  const ConvCase& c = GetParam();
  Bench bench;
  add_conv(bench, c);
  EXPECT_GE(own_candidates(bench, c.at(1)), 1U);
  const double tolerance = 2e-6 * std::sqrt(c.depth()) + 5e-6;
  bench.check(c.at(1), {c.at(1), c.at(11), c.at(1, 5)}, tolerance);
}

TEST_P(PlaneConv, InfinitiesMeetARelu) {
  const ConvCase& c = GetParam();
  for (const float sign : {-1.0F, 1.0F}) {
    Bench bench;
    bench.middle = sign * std::numeric_limits<float>::infinity();
    add_conv(bench, c);
    bench.check(c.at(1), {c.at(1)}, 1e-4);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, PlaneConv,
    ::testing::Values(
        ConvCase{"long_kernel", 1, 36, 1, {256}, {32}, {0, 0}, {1}, {1500}},
        ConvCase{"long_kernel_of_one_channel",
                 1,
                 1,
                 1,
                 {1, 256},
                 {1, 2},
                 {0, 0, 0, 0},
                 {1, 1},
                 {1, 4000}},
        ConvCase{"wide_kernel", 8, 8, 1, {3, 39}, {1, 1}, {1, 19, 1, 19}, {1, 1}, {20, 150}},
        ConvCase{"one_column", 20, 13, 1, {5, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, {70, 1}},
        ConvCase{"four_positions", 24, 40, 1, {3}, {2}, {1, 1}, {1}, {7}},
        ConvCase{
            "stride_beyond_the_kernel", 3, 7, 1, {2, 2}, {3, 5}, {1, 0, 0, 4}, {1, 1}, {19, 33}},
        ConvCase{"dilated", 5, 4, 1, {3, 2}, {2, 1}, {2, 3, 1, 3}, {3, 4}, {30, 27}},
        ConvCase{"groups", 6, 24, 3, {3, 3}, {1, 2}, {1, 1, 1, 1}, {1, 1}, {21, 22}},
        ConvCase{
            "groups_of_whole_blocks", 15, 24, 3, {2, 2}, {1, 1}, {1, 0, 0, 1}, {1, 1}, {13, 14}},
        ConvCase{
            "rows_beyond_the_cache", 12, 9, 1, {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, {64, 300}},
        ConvCase{
            "columns_beyond_the_cache", 12, 5, 1, {1, 3}, {1, 1}, {0, 1, 0, 1}, {1, 1}, {2, 9000}},
        ConvCase{"transposed", 16, 16, 1, {2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1}, {9, 11}, true},
        ConvCase{
            "transposed_to_one", 24, 1, 1, {2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1}, {19, 40}, true},
        ConvCase{
            "transposed_overlapping", 9, 12, 1, {4, 3}, {2, 2}, {1, 2, 0, 1}, {1, 1}, {8, 9}, true},
        ConvCase{
            "transposed_with_gaps", 4, 6, 1, {2, 1}, {3, 4}, {0, 0, 1, 0}, {1, 1}, {7, 8}, true},
        ConvCase{"transposed_dilated", 6, 5, 1, {3, 3}, {2, 1}, {1, 2, 3, 1}, {2, 3}, {9, 9}, true},
        ConvCase{"transposed_groups", 6, 24, 3, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, {7, 9}, true},
        ConvCase{"transposed_line", 10, 6, 1, {16}, {8}, {4, 4}, {1}, {33}, true}),
    [](const auto& param) { return param.param.name; });

TEST(PlaneConvOffers, LeavesWholeBlocksToTheLibrary) {
  Bench bench;
  const auto x = bench.input("x", {1, 32, 28, 28});
  bench.output(bench.op("Conv", {x, bench.random_constant("w", {64, 32, 3, 3})}));
  EXPECT_EQ(own_candidates(bench, {}), 0U);
}

TEST(PlaneConvOffers, RefusesWeightsComputedAtRunTime) {
  Bench bench;
  const auto x = bench.input("x", {1, 2, 9, 9});
  bench.output(bench.op("Conv", {x, bench.input("w", {3, 2, 3, 3})}));
  EXPECT_EQ(own_candidates(bench, {}), 0U);
}

TEST(PlaneConvOffers, RefusesTransposedWeightsThatAreNotFinite) {
  Bench bench;
  const auto x = bench.input("x", {1, 2, 9, 9});
  const auto w = bench.constant(
      "w", Tensor::of<float>(DType::kFp32, {2, 1, 1, 1},
                             std::vector<float>{1, std::numeric_limits<float>::infinity()}));
  bench.output(bench.op("ConvTranspose", {x, w}, attributes({{"strides", Ints{2, 2}}})));
  EXPECT_EQ(own_candidates(bench, {}), 0U);
  const SpecDraft draft = draft_spec(bench.item()).value();
  const InstanceDims dims = dims_at(draft.spec, {}).value();
  const OfferOptions options;
  const ConvPlan plan = plan_conv(draft.spec, draft.constant_bytes(), 0).value();
  EXPECT_EQ(offer_plane_conv({draft, dims, options}, plan, 1, true).refusal,
            "ConvTranspose: expected weights that are finite");
}

// The library would generate its product at the first run.
TEST(PlaneConvOffers, TakesWhatTheLibraryUnfoldsForAProduct) {
  Bench bench;
  const auto x = bench.input("x", {1, 16, 40, 40});
  bench.output(bench.op("ConvTranspose", {x, bench.random_constant("w", {16, 1, 2, 2})},
                        attributes({{"strides", Ints{2, 2}}})));
  std::size_t row_major = 0;
  for (const Candidate& candidate : bench.offers({}).candidates) {
    if (!candidate.outputs[0].layout.is_row_major()) continue;
    EXPECT_EQ(candidate.kernel, "simd.conv");
    ++row_major;
  }
  EXPECT_GE(row_major, 1U);
}

}  // namespace
}  // namespace tessera::backends::cpu
