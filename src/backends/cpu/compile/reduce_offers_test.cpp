// LRN against the reference kernel; what else reduce_offers.cpp offers is tested beside pooling and
// attention.

#include <gtest/gtest.h>

#include "backends/cpu/compile/kernel_check.h"

namespace tessera::backends::cpu {
namespace {

const Dim kBatch = Dim::symbol("n");
const std::vector<SymbolBindings> kSizes = {{{"n", 2}}, {{"n", 1}}, {{"n", 0}}};

TEST(LrnOffers, WindowsOfEverySize) {
  for (const std::int64_t size : {1, 2, 3, 5, 40}) {
    Bench bench;
    bench.output(bench.op("LRN", {bench.input("x", {kBatch, 9, 7, 5})},
                          attributes({{"size", size}, {"alpha", 0.7F}})));
    EXPECT_EQ(bench.check(kSizes[0], kSizes, 1e-5), 1U);
  }
}

TEST(LrnOffers, ExponentsAndBias) {
  for (const float beta : {0.0F, 0.5F, 0.75F, 1.3F}) {
    Bench bench;
    bench.output(bench.op(
        "LRN", {bench.input("x", {kBatch, 6, 33})},
        attributes({{"size", std::int64_t{5}}, {"alpha", 2.0F}, {"beta", beta}, {"bias", 0.3F}})));
    EXPECT_EQ(bench.check(kSizes[0], kSizes, 1e-5), 1U);
  }
}

TEST(LrnOffers, ChannelsAlone) {
  Bench bench;
  bench.output(bench.op("LRN", {bench.input("x", {kBatch, 70})},
                        attributes({{"size", std::int64_t{3}}, {"alpha", 1.0F}})));
  EXPECT_EQ(bench.check(kSizes[0], kSizes, 1e-5), 1U);
}

TEST(LrnOffers, ThreadsShareThePlanes) {
  Bench bench;
  bench.output(bench.op("LRN", {bench.input("x", {2, 16, 40, 41})},
                        attributes({{"size", std::int64_t{5}}, {"alpha", 1.0F}})));
  EXPECT_EQ(bench.check(), 1U);
}

TEST(LrnOffers, Refusals) {
  Bench bench;
  bench.output(bench.op("LRN", {bench.input("x", {2, 4, 3}, DType::kFp64)},
                        attributes({{"size", std::int64_t{3}}})));
  EXPECT_EQ(bench.offers({}).refusal, "LRN: expected fp32, found fp64");
}

}  // namespace
}  // namespace tessera::backends::cpu
