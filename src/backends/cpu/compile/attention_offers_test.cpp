// Attention, rotary embedding and RMS normalisation against the reference kernels.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/cpu/compile/kernel_check.h"

namespace tessera::backends::cpu {
namespace {

using ::testing::HasSubstr;

const Dim kS = Dim::symbol("s");
const Dim kT = Dim::symbol("t");
const std::vector<SymbolBindings> kSizes = {
    {{"s", 5}, {"t", 7}}, {{"s", 1}, {"t", 1}}, {{"s", 130}, {"t", 33}}};

TEST(AttentionOffers, HeadsInGroupsWithAMask) {
  for (const Shape& mask : {Shape{kS, kT}, Shape{2, 1, 1, kT}, Shape{1, 4, kS, kT}}) {
    Bench bench;
    bench.output(bench.op("Attention",
                          {bench.input("q", {2, 4, kS, 8}), bench.input("k", {2, 2, kT, 8}),
                           bench.input("v", {2, 2, kT, 6}), bench.input("m", mask)},
                          attributes({{"scale", 0.7F}})));
    EXPECT_EQ(bench.check(kSizes[0], kSizes, 1e-5), 1U);
  }
}

TEST(AttentionOffers, BoolMaskCausalAndSoftcap) {
  Bench bench;
  bench.output(bench.op("Attention",
                        {bench.input("q", {1, 2, kS, 8}), bench.input("k", {1, 2, kS, 8}),
                         bench.input("v", {1, 2, kS, 8}), bench.input("m", {kS, kS}, DType::kBool)},
                        attributes({{"is_causal", std::int64_t{1}}, {"softcap", 2.0F}})));
  EXPECT_EQ(bench.check({{"s", 5}}, {{{"s", 5}}, {{"s", 70}}}, 1e-5), 1U);
}

TEST(AttentionOffers, HeadsSideBySide) {
  Bench bench;
  bench.output(bench.op(
      "Attention",
      {bench.input("q", {2, kS, 24}), bench.input("k", {2, kT, 12}), bench.input("v", {2, kT, 8})},
      attributes({{"q_num_heads", std::int64_t{4}}, {"kv_num_heads", std::int64_t{2}}})));
  EXPECT_EQ(bench.check(kSizes[0], kSizes, 1e-5), 1U);
}

TEST(AttentionOffers, AppendsToItsCache) {
  Bench bench;
  const auto outputs =
      bench.node("Attention",
                 {bench.input("q", {1, 4, kS, 8}), bench.input("k", {1, 2, kS, 8}),
                  bench.input("v", {1, 2, kS, 8}), ir::kNoValue, bench.input("pk", {1, 2, kT, 8}),
                  bench.input("pv", {1, 2, kT, 8})},
                 attributes({{"is_causal", std::int64_t{1}}}), 3);
  for (const ir::ValueId output : outputs) bench.output(output);
  EXPECT_EQ(bench.check(kSizes[0], {kSizes[0], kSizes[1], {{"s", 1}, {"t", 0}}}, 1e-5), 1U);
}

TEST(AttentionOffers, KeysThatAreTurnedBeforeIt) {
  struct Order {
    Shape keys;
    std::vector<std::int64_t> perm;
  };
  for (const Order& order :
       {Order{{2, 2, 8, kT}, {0, 1, 3, 2}}, Order{{2, kT, 2, 8}, {0, 2, 1, 3}}}) {
    Bench bench;
    const ir::ValueId q = bench.input("q", {2, 4, kS, 8});
    const ir::ValueId v = bench.input("v", {2, 2, kT, 6});
    const ir::ValueId k =
        bench.op("Transpose", {bench.input("k", order.keys)}, attributes({{"perm", order.perm}}));
    bench.output(bench.op("Attention", {q, k, v}));
    EXPECT_EQ(bench.check(kSizes[0], kSizes, 1e-5), 1U);
  }
}

TEST(AttentionOffers, NothingToAttendTo) {
  Bench bench;
  bench.output(
      bench.op("Attention", {bench.input("q", {1, 2, kS, 8}), bench.input("k", {1, 2, kT, 8}),
                             bench.input("v", {1, 2, kT, 8})}));
  EXPECT_EQ(bench.check(kSizes[0], {{{"s", 3}, {"t", 0}}, {{"s", 0}, {"t", 3}}}, 1e-5), 1U);
}

TEST(AttentionOffers, Refusals) {
  const auto refusal = [](DType dtype, std::size_t outputs, const ops::Attributes& attrs) {
    Bench bench;
    const auto made =
        bench.node("Attention",
                   {bench.input("q", {1, 2, 3, 4}, dtype), bench.input("k", {1, 2, 3, 4}, dtype),
                    bench.input("v", {1, 2, 3, 4}, dtype)},
                   attrs, outputs);
    for (const ir::ValueId value : made) bench.output(value);
    return bench.offers({}).refusal;
  };
  EXPECT_EQ(refusal(DType::kFp64, 1, {}), "Attention: input 0: expected fp32, found fp64");
  EXPECT_EQ(refusal(DType::kFp32, 4, {}), "Attention: output 'qk_matmul_output': expected none");
  EXPECT_EQ(refusal(DType::kFp32, 3, {}),
            "Attention: expected the result alone or with the cache, found 3 outputs");
  EXPECT_EQ(refusal(DType::kFp32, 1, attributes({{"softmax_precision", std::int64_t{11}}})),
            "Attention: attribute 'softmax_precision': expected 1 (fp32), found 11");
  EXPECT_EQ(refusal(DType::kFp32, 1, attributes({{"left_window_size", std::int64_t{2}}})),
            "Attention: attribute 'left_window_size': expected -1, found 2");
}

TEST(RotaryOffers, HalvesNeighboursAndViewsOfTables) {
  for (const std::int64_t interleaved : {0, 1}) {
    Bench bench;
    bench.output(bench.op(
        "RotaryEmbedding",
        {bench.input("x", {2, 3, kS, 8}), bench.input("c", {2, kS, 3}),
         bench.input("z", {2, kS, 3})},
        attributes({{"interleaved", interleaved}, {"rotary_embedding_dim", std::int64_t{6}}})));
    EXPECT_EQ(bench.check({{"s", 5}}, {{{"s", 5}}, {{"s", 400}}}, 1e-6), 1U);
  }
  Bench flat;
  flat.output(flat.op(
      "RotaryEmbedding",
      {flat.input("x", {2, kS, 12}), flat.input("c", {2, kS, 2}), flat.input("z", {2, kS, 2})},
      attributes({{"num_heads", std::int64_t{3}}})));
  EXPECT_EQ(flat.check({{"s", 5}}, {{{"s", 5}}}, 1e-6), 1U);
}

TEST(RotaryOffers, Positions) {
  Bench bench;
  bench.low = 0;
  bench.high = 6;
  bench.output(
      bench.op("RotaryEmbedding",
               {bench.input("x", {2, 3, kS, 4}), bench.random_constant("c", {6, 2}),
                bench.random_constant("z", {6, 2}), bench.input("p", {2, kS}, DType::kInt64)}));
  EXPECT_EQ(bench.check({{"s", 5}}, {{{"s", 5}}}, 1e-5), 1U);
}

TEST(RmsNormalization, LastAxes) {
  Bench bench;
  bench.output(bench.op("RMSNormalization", {bench.input("x", {Dim::symbol("n"), 6, 33}),
                                             bench.random_constant("s", {33})}));
  EXPECT_EQ(bench.check({{"n", 1}}, {{{"n", 1}}, {{"n", 50}}}, 2e-5), 1U);
  Bench odd;
  odd.output(odd.op("RMSNormalization", {odd.input("x", {2, 33}), odd.random_constant("s", {1})}));
  EXPECT_THAT(odd.offers({}).refusal, HasSubstr("RMSNormalization: input 1: expected fp32[33]"));
}

}  // namespace
}  // namespace tessera::backends::cpu
