#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "backends/cpu/compile/kernel_check.h"

namespace tessera::backends::cpu {
namespace {

using Ints = std::vector<std::int64_t>;

std::size_t own_candidates(Bench& bench, const SymbolBindings& point) {
  const Offers offers = bench.offers(point);
  return static_cast<std::size_t>(
      std::count_if(offers.candidates.begin(), offers.candidates.end(),
                    [](const Candidate& candidate) { return candidate.kernel == "simd.conv"; }));
}

struct PlaneCase {
  std::string name;
  bool transposed;
  std::int64_t in, out, group;
  Ints kernel, strides, pads, dilations;
  Dims size;
};

void PrintTo(const PlaneCase& c, std::ostream* os) {
  *os << c.name;
}

class PlaneConv : public ::testing::TestWithParam<PlaneCase> {};

// Every candidate, own code among them, priced at batch 1, at other batches and another size.
TEST_P(PlaneConv, MatchesReference) {
  const PlaneCase& c = GetParam();
  Bench bench;
  Shape shape = {Dim::symbol("n"), c.in};
  for (std::size_t i = 0; i < c.size.size(); ++i)
    shape.push_back(Dim::symbol("s" + std::to_string(i)));
  Dims weights = {c.out, c.in / c.group};
  if (c.transposed) weights = {c.in, c.out / c.group};
  weights.insert(weights.end(), c.kernel.begin(), c.kernel.end());
  const auto y = bench.op(c.transposed ? "ConvTranspose" : "Conv",
                          {bench.input("x", shape), bench.random_constant("w", weights),
                           bench.random_constant("b", {c.out})},
                          attributes({{"group", c.group},
                                      {"strides", c.strides},
                                      {"pads", c.pads},
                                      {"dilations", c.dilations},
                                      {"kernel_shape", c.kernel}}));
  bench.output(bench.op("Softplus", {bench.op("Relu", {y})}));
  SymbolBindings one{{"n", 1}};
  for (std::size_t i = 0; i < c.size.size(); ++i) one["s" + std::to_string(i)] = c.size[i];
  SymbolBindings many = one;
  many["n"] = 11;
  SymbolBindings other = one;
  other["s0"] = c.size[0] + 5;
  EXPECT_GE(own_candidates(bench, one), 1U);
  const double depth = static_cast<double>(numel(weights)) / static_cast<double>(c.out);
  bench.check(one, {one, many, other}, 2e-6 * std::sqrt(depth) + 5e-6);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, PlaneConv,
    ::testing::Values(
        PlaneCase{"long_kernel", false, 1, 36, 1, {256}, {32}, {0, 0}, {1}, {1500}},
        PlaneCase{"long_kernel_of_one_channel",
                  false,
                  1,
                  1,
                  1,
                  {1, 256},
                  {1, 2},
                  {0, 0, 0, 0},
                  {1, 1},
                  {1, 4000}},
        PlaneCase{
            "wide_kernel", false, 8, 8, 1, {3, 39}, {1, 1}, {1, 19, 1, 19}, {1, 1}, {20, 150}},
        PlaneCase{"one_column", false, 20, 13, 1, {5, 1}, {1, 1}, {0, 0, 0, 0}, {1, 1}, {70, 1}},
        PlaneCase{"four_positions", false, 24, 40, 1, {3}, {2}, {1, 1}, {1}, {7}},
        PlaneCase{"stride_beyond_the_kernel",
                  false,
                  3,
                  7,
                  1,
                  {2, 2},
                  {3, 5},
                  {1, 0, 0, 4},
                  {1, 1},
                  {19, 33}},
        PlaneCase{"dilated", false, 5, 4, 1, {3, 2}, {2, 1}, {2, 3, 1, 3}, {3, 4}, {30, 27}},
        PlaneCase{"groups", false, 6, 24, 3, {3, 3}, {1, 2}, {1, 1, 1, 1}, {1, 1}, {21, 22}},
        PlaneCase{"groups_of_whole_blocks",
                  false,
                  15,
                  24,
                  3,
                  {2, 2},
                  {1, 1},
                  {1, 0, 0, 1},
                  {1, 1},
                  {13, 14}},
        PlaneCase{"rows_beyond_the_cache",
                  false,
                  12,
                  9,
                  1,
                  {3, 3},
                  {1, 1},
                  {1, 1, 1, 1},
                  {1, 1},
                  {64, 300}},
        PlaneCase{"columns_beyond_the_cache",
                  false,
                  12,
                  5,
                  1,
                  {1, 3},
                  {1, 1},
                  {0, 1, 0, 1},
                  {1, 1},
                  {2, 9000}},
        PlaneCase{"transposed", true, 16, 16, 1, {2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1}, {9, 11}},
        PlaneCase{
            "transposed_to_one", true, 24, 1, 1, {2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1}, {19, 40}},
        PlaneCase{
            "transposed_overlapping", true, 9, 12, 1, {4, 3}, {2, 2}, {1, 2, 0, 1}, {1, 1}, {8, 9}},
        PlaneCase{
            "transposed_with_gaps", true, 4, 6, 1, {2, 1}, {3, 4}, {0, 0, 1, 0}, {1, 1}, {7, 8}},
        PlaneCase{
            "transposed_dilated", true, 6, 5, 1, {3, 3}, {2, 1}, {1, 2, 3, 1}, {2, 3}, {9, 9}},
        PlaneCase{
            "transposed_groups", true, 6, 24, 3, {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 1}, {7, 9}},
        PlaneCase{"transposed_line", true, 10, 6, 1, {16}, {8}, {4, 4}, {1}, {33}}),
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
