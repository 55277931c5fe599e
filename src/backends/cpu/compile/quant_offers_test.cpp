#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "backends/cpu/compile/kernel_check.h"
#include "testing/random.h"

namespace tessera::backends::cpu {
namespace {

using ::testing::HasSubstr;
using Ints = std::vector<std::int64_t>;

// Scales that are powers of two make every step exact: results must be equal, ties too. Others
// may differ by one quantum where the real value lies at a tie.
constexpr double kExact = 0;
constexpr double kOneQuantum = 1.0 / 127;

// A graph between quantised tensors, with constants drawn from a seed.
class QuantBench : public Bench {
 public:
  ir::ValueId number(float value) { return single("scale", DType::kFp32, value); }
  ir::ValueId zero(DType dtype, int value) {
    if (dtype == DType::kInt8) return single("zero", dtype, static_cast<std::int8_t>(value));
    return single("zero", dtype, static_cast<std::uint8_t>(value));
  }
  template <typename T>
  ir::ValueId single(const char* name, DType dtype, T value) {
    return constant(name + next(), Tensor::of<T>(dtype, {}, std::span<const T>(&value, 1)));
  }
  ir::ValueId dequantize(ir::ValueId x, DType dtype, float scale, int point) {
    return op("DequantizeLinear", {x, number(scale), zero(dtype, point)});
  }
  ir::ValueId quantize(ir::ValueId x, DType dtype, float scale, int point) {
    return op("QuantizeLinear", {x, number(scale), zero(dtype, point)});
  }
  // A quantised input, dequantised.
  ir::ValueId source(Shape shape, DType dtype, float scale, int point) {
    return dequantize(input("x" + next(), std::move(shape), dtype), dtype, scale, point);
  }
  // int8 constants of all values, or `value`.
  Tensor bytes(Dims dims, std::optional<int> value = std::nullopt) {
    std::vector<std::int8_t> elements(static_cast<std::size_t>(numel(dims)));
    for (auto& element : elements)
      element = static_cast<std::int8_t>(value ? *value : random_.integer(-128, 127));
    return Tensor::of<std::int8_t>(DType::kInt8, dims, elements);
  }
  ir::ValueId weights(Dims dims, float scale) {
    return dequantize(constant("w" + next(), bytes(std::move(dims))), DType::kInt8, scale, 0);
  }
  // One scale for each index of an axis, powers of two.
  ir::ValueId channel_weights(Dims dims, std::int64_t axis) {
    std::vector<float> scales;
    for (std::int64_t i = 0; i < dims[static_cast<std::size_t>(axis)]; ++i)
      scales.push_back(i % 3 == 0 ? 0.015625F : i % 3 == 1 ? 0.0078125F : 0.03125F);
    const auto count = static_cast<std::int64_t>(scales.size());
    const auto scale = constant("scale" + next(), Tensor::of<float>(DType::kFp32, {count}, scales));
    return op("DequantizeLinear", {constant("w" + next(), bytes(std::move(dims))), scale},
              attributes({{"axis", axis}}));
  }
  ir::ValueId bias(std::int64_t count, float scale) {
    std::vector<std::int32_t> elements;
    for (std::int64_t i = 0; i < count; ++i)
      elements.push_back(static_cast<std::int32_t>(random_.integer(-3000, 3000)));
    return op("DequantizeLinear",
              {constant("b" + next(), Tensor::of<std::int32_t>(DType::kInt32, {count}, elements)),
               number(scale)});
  }

 private:
  std::string next() { return std::to_string(count_++); }
  int count_ = 0;
  testing::Random random_{5};
};

struct ConvCase {
  const char* name;
  Dims src, weights;
  std::int64_t group;
  Ints pads, strides, dilations;
};

class QuantConv : public ::testing::TestWithParam<ConvCase> {};

TEST_P(QuantConv, IsExactWithBiasAndZeroPoints) {
  const ConvCase& c = GetParam();
  for (const DType dtype : {DType::kUInt8, DType::kInt8}) {
    QuantBench bench;
    const int point = dtype == DType::kInt8 ? -5 : 131;
    const auto x = bench.source(to_shape(c.src), dtype, 0.25F, point);
    const auto w = bench.channel_weights(c.weights, 0);
    const auto b = bench.bias(c.weights[0], 0.0078125F);
    const auto y = bench.op("Conv", {x, w, b},
                            attributes({{"group", c.group},
                                        {"pads", c.pads},
                                        {"strides", c.strides},
                                        {"dilations", c.dilations}}));
    bench.output(bench.quantize(y, dtype, 2.0F, dtype == DType::kInt8 ? 3 : 77));
    EXPECT_EQ(bench.check(kExact), 1U);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, QuantConv,
    ::testing::Values(
        ConvCase{"one_by_one", {2, 32, 7, 9}, {24, 32, 1, 1}, 1, {0, 0, 0, 0}, {1, 1}, {1, 1}},
        ConvCase{"padded", {1, 16, 9, 11}, {40, 16, 3, 3}, 1, {1, 1, 1, 1}, {1, 1}, {1, 1}},
        ConvCase{"odd_channels", {1, 3, 13, 12}, {17, 3, 5, 3}, 1, {2, 1, 0, 1}, {2, 2}, {1, 1}},
        ConvCase{"dilated", {1, 18, 12, 12}, {8, 18, 3, 3}, 1, {2, 2, 2, 2}, {1, 2}, {2, 2}},
        ConvCase{"groups", {1, 20, 8, 8}, {32, 10, 3, 3}, 2, {1, 1, 1, 1}, {1, 1}, {1, 1}},
        ConvCase{"small_groups", {1, 12, 8, 8}, {20, 3, 3, 3}, 4, {1, 1, 1, 1}, {1, 1}, {1, 1}},
        ConvCase{
            "two_filters_a_channel", {1, 6, 5, 5}, {12, 1, 3, 3}, 6, {1, 1, 1, 1}, {1, 1}, {1, 1}},
        ConvCase{"wide_kernel", {1, 2, 5, 4}, {5, 2, 3, 6}, 1, {1, 4, 1, 4}, {1, 1}, {1, 1}},
        ConvCase{"depthwise", {1, 37, 9, 8}, {37, 1, 3, 3}, 37, {1, 1, 1, 1}, {1, 1}, {1, 1}},
        ConvCase{
            "strided_depthwise", {2, 64, 9, 9}, {64, 1, 5, 5}, 64, {2, 2, 1, 2}, {2, 2}, {1, 1}},
        ConvCase{"line", {2, 12, 20}, {9, 12, 4}, 1, {1, 2}, {2}, {1}},
        ConvCase{"volume",
                 {1, 6, 5, 6, 7},
                 {16, 6, 2, 3, 2},
                 1,
                 {0, 1, 1, 1, 1, 0},
                 {1, 2, 1},
                 {1, 1, 1}}),
    [](const auto& tested) { return std::string(tested.param.name); });

TEST(QuantConvCandidates, AreWithinOneQuantumForAnyScale) {
  QuantBench bench;
  const auto x = bench.source(to_shape({1, 24, 14, 14}), DType::kUInt8, 0.0371F, 101);
  const auto w = bench.weights({32, 24, 3, 3}, 0.00613F);
  const auto y = bench.op("Conv", {x, w, bench.bias(32, 0.0371F * 0.00613F)},
                          attributes({{"pads", Ints{1, 1, 1, 1}}}));
  bench.output(bench.quantize(y, DType::kInt8, 0.217F, -9));
  EXPECT_EQ(bench.check(kOneQuantum), 1U);
}

// 255 * 127 * 2 exceeds 16 bits: a pairwise 8-bit product would saturate.
TEST(QuantConvCandidates, ExtremesDoNotSaturateOnTheWay) {
  for (const int extreme : {127, -128}) {
    QuantBench bench;
    const auto x = bench.input("x", to_shape({1, 64, 3, 3}), DType::kUInt8);
    const auto real = bench.dequantize(x, DType::kUInt8, 1.0F, 0);
    const auto w = bench.dequantize(bench.constant("w", bench.bytes({16, 64, 3, 3}, extreme)),
                                    DType::kInt8, 1.0F, 0);
    bench.output(bench.op("Conv", {real, w}, attributes({{"pads", Ints{1, 1, 1, 1}}})));
    EXPECT_EQ(bench.check(kExact), 1U);
  }
}

TEST(QuantConvCandidates, TakeAnEpilogueWithAResidualSum) {
  QuantBench bench;
  const auto x = bench.source(to_shape({1, 16, 6, 6}), DType::kInt8, 0.5F, 3);
  const auto conv = bench.op("Conv", {x, bench.channel_weights({20, 16, 1, 1}, 0)});
  const auto skip = bench.source(to_shape({1, 20, 6, 6}), DType::kInt8, 0.25F, -7);
  const auto sum = bench.op("Relu", {bench.op("Add", {skip, conv})});
  bench.output(bench.quantize(sum, DType::kInt8, 0.5F, -128));
  EXPECT_EQ(bench.check(kExact), 1U);
}

TEST(QuantConvCandidates, GiveRealResultsWithoutQuantizeLinear) {
  QuantBench bench;
  const auto x = bench.source(to_shape({1, 16, 6, 6}), DType::kUInt8, 0.5F, 128);
  const auto conv = bench.op("Conv", {x, bench.channel_weights({20, 16, 3, 3}, 0)});
  bench.output(bench.op("HardSwish", {conv}));
  EXPECT_EQ(bench.check(1e-6), 1U);
}

TEST(QuantConvCandidates, UnsignedWeightsWithAZeroPointNeedSixteenBits) {
  QuantBench bench;
  testing::Random random(3);
  std::vector<std::uint8_t> elements(8 * 6 * 9);
  for (auto& element : elements) element = static_cast<std::uint8_t>(random.integer(0, 255));
  const auto x = bench.source(to_shape({1, 6, 5, 5}), DType::kUInt8, 0.5F, 7);
  const auto w = bench.dequantize(
      bench.constant("w", Tensor::of<std::uint8_t>(DType::kUInt8, {8, 6, 3, 3}, elements)),
      DType::kUInt8, 0.25F, 17);
  bench.output(bench.quantize(bench.op("Conv", {x, w}), DType::kUInt8, 64.0F, 99));
  EXPECT_EQ(bench.check(kExact), 1U);
}

TEST(QuantConvCandidates, AreRefusedWithTheReason) {
  QuantBench axis;
  const auto x = axis.source(to_shape({1, 16, 6, 6}), DType::kInt8, 0.5F, 3);
  axis.output(axis.op("Conv", {x, axis.channel_weights({16, 16, 1, 1}, 1)}));
  EXPECT_EQ(axis.offers({}).refusal,
            "Conv: weights: scale: expected one for each index of axis 0, found axis 1");

  QuantBench deep;
  const auto d = deep.source(to_shape({1, 70000}), DType::kInt8, 0.5F, 3);
  deep.output(deep.op("MatMul", {d, deep.weights({70000, 1}, 0.5F)}));
  EXPECT_THAT(deep.offers({}).refusal,
              HasSubstr("products in a sum, so that it fits into 32 bits, found 70000"));
}

// ---- Products -----------------------------------------------------------------------------------

TEST(QuantProducts, AreExact) {
  for (const bool transposed : {false, true}) {
    QuantBench bench;
    const auto x = bench.source(to_shape({13, 37}), DType::kUInt8, 0.5F, 120);
    const auto w =
        bench.channel_weights(transposed ? Dims{21, 37} : Dims{37, 21}, transposed ? 0 : 1);
    const auto y = bench.op("Gemm", {x, w, bench.bias(21, 0.0078125F)},
                            attributes({{"transB", std::int64_t{transposed ? 1 : 0}}}));
    bench.output(bench.quantize(y, DType::kUInt8, 1.0F, 111));
    EXPECT_EQ(bench.check(kExact), 1U);
  }
}

TEST(QuantProducts, OfABatchAtEverySize) {
  QuantBench bench;
  const auto x = bench.source({Dim::symbol("n"), Dim(5), Dim(64)}, DType::kInt8, 0.25F, 0);
  const auto y = bench.op("MatMul", {x, bench.weights({64, 48}, 0.125F)});
  const auto b = bench.random_constant("bias", {48});
  const auto sum = bench.op("Gelu", {bench.op("Add", {b, y})});
  bench.output(bench.quantize(sum, DType::kInt8, 0.75F, 1));
  EXPECT_EQ(bench.check({{"n", 4}}, {{{"n", 4}}, {{"n", 1}}, {{"n", 9}}}, kOneQuantum), 1U);
}

TEST(QuantProducts, OfTwoTensorsComputedAtRunTime) {
  QuantBench bench;
  const auto a = bench.source(to_shape({2, 3, 10, 33}), DType::kUInt8, 0.5F, 100);
  const auto b = bench.source(to_shape({2, 3, 33, 18}), DType::kInt8, 0.25F, -3);
  bench.output(bench.quantize(bench.op("MatMul", {a, b}), DType::kInt8, 32.0F, 5));
  EXPECT_EQ(bench.check(kExact), 1U);
}

TEST(QuantProducts, IntegerOperatorsTakeZeroPoints) {
  QuantBench product;
  product.output(product.op("MatMulInteger",
                            {product.input("a", to_shape({7, 64}), DType::kUInt8),
                             product.constant("b", product.bytes({64, 9})),
                             product.zero(DType::kUInt8, 128), product.zero(DType::kInt8, 1)}));
  EXPECT_EQ(product.check(kExact), 1U);

  QuantBench dynamic;
  dynamic.output(dynamic.op("MatMulInteger", {dynamic.input("a", to_shape({7, 65}), DType::kUInt8),
                                              dynamic.constant("b", dynamic.bytes({65, 9})),
                                              dynamic.input("zero", {}, DType::kUInt8)}));
  EXPECT_EQ(dynamic.check(kExact), 1U);

  QuantBench conv;
  conv.output(conv.op("ConvInteger",
                      {conv.input("x", to_shape({1, 5, 8, 8}), DType::kUInt8),
                       conv.constant("w", conv.bytes({6, 5, 3, 3})), conv.zero(DType::kUInt8, 4)},
                      attributes({{"pads", Ints{1, 1, 1, 1}}})));
  EXPECT_EQ(conv.check(kExact), 1U);
  for (const char* padding : {"SAME_UPPER", "SAME_LOWER", "VALID"}) {
    QuantBench padded;
    padded.output(
        padded.op("ConvInteger",
                  {padded.input("x", to_shape({1, 4, 7, 8}), DType::kUInt8),
                   padded.constant("w", padded.bytes({6, 2, 2, 3})), padded.zero(DType::kUInt8, 4)},
                  attributes({{"auto_pad", std::string(padding)}, {"group", std::int64_t{2}}})));
    EXPECT_EQ(padded.check(kExact), 1U) << padding;
  }
}

TEST(QuantProducts, LinearOperators) {
  QuantBench product;
  product.output(
      product.op("QLinearMatMul",
                 {product.input("a", to_shape({7, 64}), DType::kUInt8), product.number(0.5F),
                  product.zero(DType::kUInt8, 10), product.constant("b", product.bytes({64, 9})),
                  product.number(0.25F), product.zero(DType::kInt8, 1), product.number(16.0F),
                  product.zero(DType::kUInt8, 100)}));
  EXPECT_EQ(product.check(kExact), 1U);

  QuantBench conv;
  std::vector<std::int32_t> bias = {100, -200, 300, 0, 5, 6};
  conv.output(conv.op("QLinearConv",
                      {conv.input("x", to_shape({1, 5, 8, 8}), DType::kUInt8), conv.number(0.5F),
                       conv.zero(DType::kUInt8, 10), conv.constant("w", conv.bytes({6, 5, 3, 3})),
                       conv.number(0.25F), conv.zero(DType::kInt8, 0), conv.number(8.0F),
                       conv.zero(DType::kUInt8, 100),
                       conv.constant("b", Tensor::of<std::int32_t>(DType::kInt32, {6}, bias))}));
  EXPECT_EQ(conv.check(kExact), 1U);
}

// ---- The rest -----------------------------------------------------------------------------------

TEST(QuantElementwise, SumsAndTables) {
  QuantBench sum;
  const auto a = sum.source(to_shape({2, 19, 5, 5}), DType::kUInt8, 0.5F, 100);
  const auto b = sum.source(to_shape({2, 19, 5, 5}), DType::kInt8, 0.25F, -3);
  sum.output(sum.quantize(sum.op("Add", {a, b}), DType::kInt8, 1.0F, 5));
  EXPECT_EQ(sum.check(kExact), 2U) << "row-major and channels-last";

  QuantBench table;
  const auto x = table.source({Dim::symbol("n"), Dim(7)}, DType::kInt8, 0.05F, -3);
  table.output(table.quantize(table.op("Sigmoid", {x}), DType::kUInt8, 1.0F / 256, 0));
  EXPECT_EQ(table.check({{"n", 300}}, {{{"n", 300}}, {{"n", 1}}}, kOneQuantum), 1U);
}

TEST(QuantPooling, MaximaAndAverages) {
  for (const char* op : {"MaxPool", "AveragePool"}) {
    for (const std::int64_t include_pad : {0, 1}) {
      QuantBench bench;
      auto attrs = attributes(
          {{"kernel_shape", Ints{3, 2}}, {"pads", Ints{1, 0, 1, 1}}, {"strides", Ints{2, 1}}});
      if (op == std::string("AveragePool")) attrs.set("count_include_pad", include_pad);
      const auto x = bench.source(to_shape({2, 21, 9, 8}), DType::kInt8, 0.5F, 9);
      bench.output(bench.quantize(bench.op(op, {x}, attrs), DType::kUInt8, 0.25F, 100));
      EXPECT_EQ(bench.check(kExact), 1U);
    }
  }
  QuantBench global;
  const auto x = global.source(to_shape({2, 40, 4, 4}), DType::kUInt8, 0.5F, 9);
  global.output(global.quantize(global.op("GlobalAveragePool", {x}), DType::kUInt8, 0.25F, 3));
  EXPECT_EQ(global.check(kExact), 1U);

  QuantBench bytes;
  bytes.output(bytes.op("MaxPool", {bytes.input("x", to_shape({1, 5, 6, 6}), DType::kInt8)},
                        attributes({{"kernel_shape", Ints{2, 2}}})));
  EXPECT_EQ(bytes.check(kExact), 1U);
}

// Sums of elements that are rounded one by one, as written: at ties too.
TEST(QuantPooling, AveragesOfAnyScales) {
  for (const auto& [from, to] :
       {std::pair{0.1F, 0.1F}, {0.1F, 0.05F}, {0.1F, 0.08F}, {0.3F, 0.025F}, {0.7F, 0.1F}}) {
    for (const Ints& kernel : {Ints{2, 2}, Ints{2, 3}, Ints{4, 4}}) {
      for (const std::int64_t include_pad : {0, 1}) {
        QuantBench bench;
        const auto x = bench.source(to_shape({2, 37, 19, 18}), DType::kUInt8, from, 5);
        const auto y = bench.op("AveragePool", {x},
                                attributes({{"kernel_shape", kernel},
                                            {"pads", Ints{1, 0, 1, 1}},
                                            {"count_include_pad", include_pad}}));
        bench.output(bench.quantize(y, DType::kUInt8, to, 9));
        EXPECT_EQ(bench.check(kExact), 1U) << from << " " << to << " " << kernel[1];
      }
    }
  }
}

TEST(QuantMovement, MovesTheQuantisedElements) {
  QuantBench bench;
  const auto x = bench.source(to_shape({2, 3, 4, 5}), DType::kInt8, 0.3F, 9);
  const auto y = bench.op("Transpose", {x}, attributes({{"perm", Ints{0, 2, 3, 1}}}));
  bench.output(bench.quantize(y, DType::kInt8, 0.3F, 9));
  EXPECT_GE(bench.check(kExact), 1U);

  QuantBench other;
  const auto z = other.source(to_shape({2, 3, 4, 5}), DType::kInt8, 0.3F, 9);
  other.output(other.quantize(other.op("Flatten", {z}), DType::kInt8, 0.4F, 9));
  EXPECT_THAT(other.offers({}).refusal, HasSubstr("Flatten"))
      << "another scale changes the elements";
}

TEST(QuantizeLinear, OfTensorsAndAxes) {
  QuantBench whole;
  whole.low = -40;
  whole.high = 40;
  whole.output(whole.quantize(whole.input("x", to_shape({2, 9, 5, 7})), DType::kInt8, 0.25F, 3));
  EXPECT_EQ(whole.check(kExact), 2U);

  QuantBench back;
  back.output(back.source(to_shape({2, 9, 5, 7}), DType::kUInt8, 0.37F, 130));
  EXPECT_EQ(back.check(kExact), 2U);

  for (const std::int64_t axis : {1, -1}) {
    QuantBench each;
    const std::vector<float> scales = {0.5F, 0.25F, 2.0F};
    const std::vector<std::int8_t> zeros = {0, 3, -7};
    const Shape shape = axis == 1 ? to_shape({4, 3, 5, 2}) : to_shape({4, 2, 5, 3});
    each.low = -40;
    each.high = 40;
    each.output(each.op(
        "QuantizeLinear",
        {each.input("x", shape), each.constant("s", Tensor::of<float>(DType::kFp32, {3}, scales)),
         each.constant("z", Tensor::of<std::int8_t>(DType::kInt8, {3}, zeros))},
        attributes({{"axis", axis}})));
    EXPECT_EQ(each.check(kExact), 2U);
  }
}

TEST(QuantizeLinear, WithAScaleComputedAtRunTime) {
  QuantBench bench;
  bench.low = 0.5F;
  bench.output(
      bench.op("DequantizeLinear", {bench.input("x", to_shape({5, 6}), DType::kUInt8),
                                    bench.input("s", {}), bench.input("z", {}, DType::kUInt8)}));
  EXPECT_EQ(bench.check(kExact), 1U);
}

// What stays as written where no cover takes the group: weights and a bias.
TEST(QuantizeLinear, OfConstants) {
  QuantBench weights;
  weights.output(weights.channel_weights({6, 2, 3, 3}, 0));
  EXPECT_EQ(weights.check(kExact), 1U);
  QuantBench bias;
  bias.output(bias.bias(7, 0.25F));
  EXPECT_EQ(bias.check(kExact), 1U);
}

// Alone, behind a product, and where bytes would be moved as they are.
TEST(QuantizeLinear, OtherPrecisionsAreRefused) {
  const std::string refusal =
      "QuantizeLinear: attribute 'precision': expected 0 or 1 (fp32), found 10";
  const auto quantize = [](QuantBench& bench, ir::ValueId x, std::int64_t precision) {
    bench.output(bench.op("QuantizeLinear", {x, bench.number(0.3F), bench.zero(DType::kInt8, 9)},
                          attributes({{"precision", precision}})));
  };
  QuantBench alone;
  quantize(alone, alone.input("x", to_shape({4})), 10);
  EXPECT_EQ(alone.offers({}).refusal, refusal);
  QuantBench same;
  quantize(same, same.input("x", to_shape({4})), 1);
  EXPECT_EQ(same.check(kExact), 1U);

  QuantBench product;
  const auto x = product.source(to_shape({2, 16}), DType::kInt8, 0.3F, 9);
  quantize(product, product.op("MatMul", {x, product.weights({16, 8}, 0.25F)}), 10);
  EXPECT_THAT(product.offers({}).refusal, HasSubstr(refusal));

  QuantBench moved;
  const auto bytes = moved.source(to_shape({2, 3}), DType::kInt8, 0.3F, 9);
  quantize(moved, moved.op("Transpose", {bytes}, attributes({{"perm", Ints{1, 0}}})), 10);
  EXPECT_TRUE(moved.offers({}).candidates.empty());
}

TEST(DynamicQuantizeLinear, RangesThatAreNotFinite) {
  using Limits = std::numeric_limits<float>;
  for (const float middle : {0.0F, Limits::infinity(), -Limits::infinity(), Limits::quiet_NaN()}) {
    QuantBench bench;
    bench.middle = middle;
    for (const ir::ValueId y :
         bench.node("DynamicQuantizeLinear", {bench.input("x", to_shape({5, 7}))}, {}, 3))
      bench.output(y);
    EXPECT_EQ(bench.check(kExact), 1U) << middle;
  }
}

TEST(QuantizeLinear, OtherDtypesAreRefused) {
  QuantBench bench;
  const auto zero = bench.single("z", DType::kInt16, std::int16_t{0});
  bench.output(
      bench.op("QuantizeLinear", {bench.input("x", to_shape({4})), bench.number(1), zero}));
  EXPECT_EQ(bench.offers({}).refusal, "QuantizeLinear: expected int8 or uint8, found int16");
}

}  // namespace
}  // namespace tessera::backends::cpu
