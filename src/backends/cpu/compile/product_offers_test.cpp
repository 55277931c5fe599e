#include <fmt/format.h>
#include <gtest/gtest.h>

#include "backends/cpu/compile/kernel_check.h"

namespace tessera::backends::cpu {
namespace {

TEST(Gemm, EveryTranspositionWithBias) {
  for (const std::int64_t ta : {0, 1}) {
    for (const std::int64_t tb : {0, 1}) {
      Bench bench;
      const auto a =
          bench.input("a", ta != 0 ? Shape{30, Dim::symbol("m")} : Shape{Dim::symbol("m"), 30});
      const auto b = bench.random_constant("b", tb != 0 ? Dims{17, 30} : Dims{30, 17});
      bench.output(bench.op("Gemm", {a, b, bench.random_constant("c", {17})},
                            attributes({{"transA", ta}, {"transB", tb}})));
      EXPECT_EQ(bench.check({{"m", 1}}, {{{"m", 1}}, {{"m", 37}}}, 1e-5), ta == 0 ? 2U : 1U);
    }
  }
}

TEST(Gemm, OneRowIsCutByColumns) {
  Bench bench;
  const auto a = bench.input("a", {Dim::symbol("m"), 512});
  bench.output(bench.op(
      "Gemm", {a, bench.random_constant("b", {1000, 512}), bench.random_constant("c", {1000})},
      attributes({{"transB", std::int64_t{1}}})));
  EXPECT_EQ(bench.check({{"m", 1}}, {{{"m", 1}}, {{"m", 8}}}, 1e-5), 2U);
}

TEST(Gemm, AlphaBetaAndAnAddendOfEveryShape) {
  for (const Dims& c : {Dims{}, Dims{1}, Dims{12}, Dims{1, 12}, Dims{9, 1}, Dims{9, 12}}) {
    SCOPED_TRACE(to_string(c));
    Bench bench;
    const auto a = bench.input("a", {9, 20});
    bench.output(bench.op("Gemm",
                          {a, bench.random_constant("b", {20, 12}), bench.random_constant("c", c)},
                          attributes({{"alpha", 0.5F}, {"beta", 2.0F}})));
    EXPECT_EQ(bench.check(1e-5), 2U);
  }
}

TEST(Gemm, AddendFromOutside) {
  Bench bench;
  const auto a = bench.input("a", {9, 20});
  bench.output(bench.op("Relu", {bench.op("Gemm", {a, bench.random_constant("b", {20, 12}),
                                                   bench.input("c", {9, 12})})}));
  EXPECT_EQ(bench.check(1e-5), 2U);
}

TEST(MatMul, RanksAndBroadcasts) {
  const std::vector<std::pair<Shape, Shape>> cases = {{{5, 6}, {6, 7}},
                                                      {{2, 5, 6}, {6, 7}},
                                                      {{2, 3, 5, 6}, {2, 3, 6, 7}},
                                                      {{2, 3, 5, 6}, {3, 6, 7}},
                                                      {{1, 5, 6}, {4, 6, 7}},
                                                      {{6}, {6, 7}},
                                                      {{5, 6}, {6}}};
  for (const auto& [left, right] : cases) {
    SCOPED_TRACE(to_string(left) + " " + to_string(right));
    Bench bench;
    bench.output(bench.op("MatMul", {bench.input("a", left), bench.input("b", right)}));
    EXPECT_EQ(bench.check(1e-5), 2U);
  }
}

// A sum of no products is zero, and the epilogue follows.
TEST(MatMul, EmptySums) {
  Bench bench;
  const auto product = bench.op(
      "MatMul", {bench.input("a", {5, Dim::symbol("k")}), bench.input("b", {Dim::symbol("k"), 7})});
  bench.output(bench.op("Add", {product, bench.random_constant("c", {7})}));
  EXPECT_EQ(bench.check({{"k", 4}}, {{{"k", 4}}, {{"k", 0}}}, 1e-5), 2U);
}

TEST(MatMul, ConstantWeightsBiasResidualAndGelu) {
  Bench bench;
  const auto x = bench.input("x", {Dim::symbol("n"), 7, 32});
  const auto product = bench.op("MatMul", {x, bench.random_constant("w", {32, 48})});
  const auto biased = bench.op("Add", {product, bench.random_constant("b", {48})});
  const auto skip = bench.input("skip", {Dim::symbol("n"), 7, 48});
  bench.output(bench.op("Add", {bench.op("Gelu", {biased}), skip}));
  EXPECT_EQ(bench.check({{"n", 1}}, {{{"n", 1}}, {{"n", 20}}}, 1e-5), 2U);
}

// Every height of a tile, panels that are not whole, depths in several parts; the epilogue over
// pieces of rows and of columns.
TEST(PanelProduct, TilesOfEveryHeightAndWidth) {
  for (const std::int64_t columns : {1, 15, 16, 33, 50, 70, 129}) {
    for (const std::int64_t depth : {1, 7, 1100}) {
      SCOPED_TRACE(fmt::format("{} columns, depth {}", columns, depth));
      Bench bench;
      const auto x = bench.input("x", {Dim::symbol("m"), depth});
      const auto product = bench.op("MatMul", {x, bench.random_constant("w", {depth, columns})});
      const auto biased = bench.op("Add", {product, bench.random_constant("b", {columns})});
      bench.output(bench.op("Tanh", {biased}));
      std::vector<SymbolBindings> rows;
      for (std::int64_t m = 0; m <= 16; ++m) rows.push_back({{"m", m}});
      rows.push_back({{"m", 301}});
      EXPECT_EQ(bench.check({{"m", 8}}, rows, 3e-5), 2U);
    }
  }
}

// Columns that are packed at run time: one for each matrix of the batch, or shared by threads.
TEST(PanelProduct, PacksColumnsThatAreNotConstant) {
  for (const std::int64_t batch : {1, 2, 7}) {
    for (const std::int64_t columns : {5, 64, 200}) {
      SCOPED_TRACE(fmt::format("{} matrices of {} columns", batch, columns));
      Bench bench;
      const auto a = bench.input("a", {batch, Dim::symbol("m"), Dim::symbol("k")});
      const auto b = bench.input("b", {batch, Dim::symbol("k"), columns});
      const auto product = bench.op("MatMul", {a, b});
      bench.output(bench.op("Sigmoid", {bench.op("Add", {product, bench.input("c", {columns})})}));
      EXPECT_EQ(bench.check(
                    {{"m", 8}, {"k", 8}},
                    {{{"m", 1}, {"k", 3}}, {{"m", 70}, {"k", 40}}, {{"m", 150}, {"k", 600}}}, 3e-5),
                2U);
    }
  }
}

// Weights stored as bf16 where the user permits that: half of their bytes, each off by at most one
// part in 256.
TEST(PanelProduct, StoresWeightsAsBf16WherePermitted) {
  for (const bool gemm : {false, true}) {
    SCOPED_TRACE(gemm);
    Bench bench;
    const auto x = bench.input("x", {Dim::symbol("m"), 600});
    const auto w = bench.random_constant("w", gemm ? Dims{70, 600} : Dims{600, 70});
    const auto b = bench.random_constant("b", {70});
    bench.output(bench.op(
        "Tanh", {gemm ? bench.op("Gemm", {x, w, b}, attributes({{"transB", std::int64_t{1}}}))
                      : bench.op("Add", {bench.op("MatMul", {x, w}), b})}));
    EXPECT_EQ(bench.check({{"m", 1}}, {{{"m", 1}}, {{"m", 2}}, {{"m", 40}}}, 3e-5), 2U);
    bench.options.precisions.push_back(DType::kBf16);
    EXPECT_EQ(bench.check({{"m", 1}}, {{{"m", 1}}, {{"m", 3}}, {{"m", 40}}}, 0.05), 3U);
    const Offers offers = bench.offers({{"m", 1}});
    const Candidate& narrow = offers.candidates.at(1);
    EXPECT_EQ(narrow.options.at("bf16_weights"), 1);
    EXPECT_EQ(narrow.compute_dtype, DType::kBf16);
    EXPECT_EQ(offers.candidates.at(2).packed_bytes - narrow.packed_bytes, 600 * 70 * 2);
  }
}

TEST(PanelProduct, LeavesATransposedAToTheLibrary) {
  Bench bench;
  const auto a = bench.input("a", {6, 5});
  bench.output(
      bench.op("Gemm", {a, bench.input("b", {6, 7})}, attributes({{"transA", std::int64_t{1}}})));
  EXPECT_EQ(bench.check(1e-5), 1U);
}

TEST(ProductOffers, RefusesOtherDtypes) {
  Bench bench;
  bench.output(bench.op("MatMul", {bench.input("a", {2, 3}, DType::kInt32),
                                   bench.input("b", {3, 2}, DType::kInt32)}));
  EXPECT_EQ(bench.offers({}).refusal, "MatMul: expected fp32, found int32");
}

// Refused at every size: at 0, where it is priced here, there would be nothing to multiply.
TEST(Product, ARowBySeveralMatricesIsRefused) {
  Bench bench;
  const Dim m = Dim::symbol("m");
  bench.output(bench.op("MatMul", {bench.input("x", {m}), bench.input("y", {2, m, 1})}));
  for (const std::int64_t size : {0, 2})
    EXPECT_EQ(bench.offers({{"m", size}}).refusal,
              "MatMul: expected matrices, found [m] times [2, m, 1]");
}

}  // namespace
}  // namespace tessera::backends::cpu
