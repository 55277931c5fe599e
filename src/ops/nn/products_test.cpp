// Gemm, MatMul, Einsum, and the quantised products.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/nn/nn_test_util.h"

namespace tessera::ops::nn::testing {
namespace {

template <typename T>
Tensor bytes(DType dtype, Dims dims, const std::vector<T>& values) {
  return Tensor::of<T>(dtype, std::move(dims), values);
}

TEST(MatMul, MultipliesMatricesAndVectors) {
  const Tensor a = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor b = floats({3, 2}, {1, 0, 0, 1, 2, 2});
  EXPECT_EQ(to_vector(run_op("MatMul", {}, {a, b}).value()[0]), (std::vector<float>{7, 8, 16, 17}));
  const auto row = run_op("MatMul", {}, {floats({3}, {1, 1, 1}), b}).value();
  EXPECT_EQ(row[0].dims(), (Dims{2}));
  EXPECT_EQ(to_vector(row[0]), (std::vector<float>{3, 3}));
  const auto column = run_op("MatMul", {}, {a, floats({3}, {1, 0, 1})}).value();
  EXPECT_EQ(column[0].dims(), (Dims{2}));
  EXPECT_EQ(to_vector(column[0]), (std::vector<float>{4, 10}));
  const auto dot = run_op("MatMul", {}, {floats({2}, {3, 4}), floats({2}, {3, 4})}).value();
  EXPECT_EQ(dot[0].dims(), Dims{});
  EXPECT_EQ(to_vector(dot[0]), (std::vector<float>{25}));
}

TEST(MatMul, BroadcastsLeadingDims) {
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    const std::int64_t m = pick(random, 1, 70), k = pick(random, 0, 300), n = pick(random, 1, 70);
    const Tensor a = random_floats({3, 1, m, k}, random);
    const Tensor b = random_floats({2, k, n}, random);
    const auto y = run_op("MatMul", {}, {a, b}).value();
    ASSERT_EQ(y[0].dims(), (Dims{3, 2, m, n}));
    for (std::int64_t i = 0; i < y[0].numel(); ++i) {
      const std::int64_t column = i % n, row = i / n % m, second = i / n / m % 2,
                         first = i / n / m / 2;
      double sum = 0;
      for (std::int64_t j = 0; j < k; ++j) {
        sum += static_cast<double>(a.span<float>()[(first * m + row) * k + j]) *
               static_cast<double>(b.span<float>()[(second * k + j) * n + column]);
      }
      ASSERT_NEAR(y[0].span<float>()[i], sum, 1e-4) << "element " << i;
    }
  }
}

TEST(MatMul, WrapsIntegersAround) {
  const std::vector<std::int32_t> big{1 << 30, 1 << 30};
  const auto y = run_op("MatMul", {},
                        {bytes<std::int32_t>(DType::kInt32, {1, 2}, big),
                         bytes<std::int32_t>(DType::kInt32, {2, 1}, {2, 2})})
                     .value();
  EXPECT_EQ(y[0].span<std::int32_t>()[0], 0);
  const auto wide =
      run_op("MatMul", {}, {ints({1, 1}, {(std::int64_t{1} << 53) + 1}), ints({1, 1}, {1})})
          .value();
  EXPECT_EQ(wide[0].span<std::int64_t>()[0],
            (std::int64_t{1} << 53) + 1);  // a double could not hold it
}

TEST(Gemm, WrapsIntegersAround) {
  const auto product = [](const Attributes& attrs, std::int32_t a, std::int32_t c) {
    const auto one = [](std::int32_t value) {
      return bytes<std::int32_t>(DType::kInt32, {1, 1}, {value});
    };
    return run_op("Gemm", attrs, {one(a), one(2), one(c)}).value()[0].span<std::int32_t>()[0];
  };
  constexpr std::int32_t kLowest = std::numeric_limits<std::int32_t>::min();
  EXPECT_EQ(product({}, 1 << 30, 0), kLowest);
  EXPECT_EQ(product({}, 0, kLowest), kLowest);
  EXPECT_EQ(product({}, 1 << 30, -1), std::numeric_limits<std::int32_t>::max());
  EXPECT_EQ(product(attributes({{"alpha", 2.0F}}), 1 << 29, 1), kLowest + 1);
  EXPECT_EQ(product(attributes({{"beta", 1e30F}}), 0, 1), -1) << "saturated in 64 bits first";
}

TEST(Products, OfIntegersWrapAndAreCut) {
  const auto half =
      run_op("Gemm", attributes({{"alpha", 0.5F}}), {ints({1, 1}, {3}), ints({1, 1}, {1})}).value();
  EXPECT_EQ(half[0].span<std::int64_t>()[0], 1);
  const auto sum = run_op("Einsum", attributes({{"equation", std::string("i,i->")}}),
                          {bytes<std::int8_t>(DType::kInt8, {2}, {100, 100}),
                           bytes<std::int8_t>(DType::kInt8, {2}, {1, 1})})
                       .value();
  EXPECT_EQ(sum[0].span<std::int8_t>()[0], -56);
  const std::int64_t depth = 33100;  // 255 * 255 * 33100 is 2^31 and more
  const std::vector<std::uint8_t> row(static_cast<std::size_t>(depth), 255);
  const auto wide = run_op("MatMulInteger", {},
                           {bytes<std::uint8_t>(DType::kUInt8, {1, depth}, row),
                            bytes<std::uint8_t>(DType::kUInt8, {depth, 1}, row)})
                        .value();
  EXPECT_EQ(wide[0].span<std::int32_t>()[0], -2142639796);
}

TEST(MatMulInference, KeepsSymbolicSizes) {
  EXPECT_EQ(infer_text("MatMul", {}, {"fp32[b, 12, s, 64]", "fp32[b, 12, 64, t]"}),
            "fp32[b, 12, s, t]");
  EXPECT_EQ(infer_text("MatMul", {}, {"fp32[b, s, 64]", "fp32[64]"}), "fp32[b, s]");
  EXPECT_EQ(infer_text("MatMul", {}, {"fp32[2, 3]", "fp32[4, 5]"}),
            "MatMul: inner size of input 'B': expected 3 (as 'A' of shape [2, 3] has), found 4");
  EXPECT_EQ(infer_text("MatMul", {}, {"fp32[]", "fp32[4, 5]"}),
            "MatMul: input 'A': expected rank 1 or more, found rank 0");
}

TEST(Gemm, TransposesScalesAndAdds) {
  const Tensor a = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor b = floats({3, 2}, {1, 0, 0, 1, 2, 2});
  EXPECT_EQ(to_vector(run_op("Gemm", {}, {a, b, floats({2}, {10, 20})}).value()[0]),
            (std::vector<float>{17, 28, 26, 37}));
  const Attributes attrs = attributes(
      {{"alpha", 2.0F}, {"beta", 0.5F}, {"transA", std::int64_t{1}}, {"transB", std::int64_t{1}}});
  const Tensor at = floats({3, 2}, {1, 4, 2, 5, 3, 6});
  const Tensor bt = floats({2, 3}, {1, 0, 2, 0, 1, 2});
  EXPECT_EQ(to_vector(run_op("Gemm", attrs, {at, bt, floats({2, 1}, {10, 20})}).value()[0]),
            (std::vector<float>{19, 21, 42, 44}));
  EXPECT_EQ(to_vector(run_op("Gemm", {}, {a, b}).value()[0]), (std::vector<float>{7, 8, 16, 17}));
}

TEST(Gemm, OldVersionsBroadcastOnRequest) {
  const auto y = run_old("Gemm", 6, attributes({{"broadcast", std::int64_t{1}}}),
                         {floats({1, 1}, {2}), floats({1, 2}, {3, 4}), floats({2}, {1, 1})})
                     .value();
  EXPECT_EQ(to_vector(y.outputs[0]), (std::vector<float>{7, 9}));
  EXPECT_FALSE(y.node.attributes.has("broadcast"));
}

TEST(GemmErrors, NameTheInput) {
  EXPECT_EQ(infer_text("Gemm", {}, {"fp32[2, 3, 1]", "fp32[3, 2]"}),
            "Gemm: input 'A': expected rank 2, found rank 3");
  EXPECT_EQ(infer_text("Gemm", {}, {"fp32[2, 3]", "fp32[4, 2]"}),
            "Gemm: inner size of input 'B': expected 3 (as 'A' of shape [2, 3] has), found 4");
  EXPECT_EQ(
      infer_text("Gemm", attributes({{"transA", std::int64_t{1}}}), {"fp32[3, 2]", "fp32[4, 2]"}),
      "Gemm: inner size of input 'B': expected 3 (as 'A' of shape [3, 2] has transposed), found 4");
  EXPECT_EQ(infer_text("Gemm", {}, {"fp32[2, 3]", "fp32[3, 4]", "fp32[3]"}),
            "Gemm: input 'C': expected a shape that broadcasts to [2, 4], found [3]");
}

TEST(GemmWork, CountsTwoFlopsForEachProduct) {
  const TensorSpec inputs[] = {{DType::kFp32, {128, 768}, true}, {DType::kFp32, {768, 2304}, true}},
                   outputs[] = {{DType::kFp32, {128, 2304}, true}};
  EXPECT_DOUBLE_EQ(work_of(*find_op("", "Gemm"), {}, inputs, outputs).flops,
                   2.0 * 128 * 768 * 2304);
  EXPECT_DOUBLE_EQ(work_of(*find_op("", "MatMul"), {}, inputs, outputs).flops,
                   2.0 * 128 * 768 * 2304);
}

TEST(Einsum, SumsOverNamedIndices) {
  const Tensor m = floats({2, 2}, {1, 2, 3, 4});
  const auto with = [&](std::string equation, const std::vector<Tensor>& inputs) {
    return to_vector(
        run_op("Einsum", attributes({{"equation", std::move(equation)}}), inputs).value()[0]);
  };
  EXPECT_EQ(with("ij,jk->ik", {m, m}), (std::vector<float>{7, 10, 15, 22}));
  EXPECT_EQ(with("ii", {m}), (std::vector<float>{5}));
  EXPECT_EQ(with("ii->i", {m}), (std::vector<float>{1, 4}));
  EXPECT_EQ(with("ba", {m}),
            (std::vector<float>{1, 3, 2, 4}));  // the implied output is in alphabetical order
  EXPECT_EQ(with("...i ->...", {m}), (std::vector<float>{3, 7}));
  EXPECT_EQ(infer_text("Einsum", attributes({{"equation", std::string("bhqd,bhkd->bhqk")}}),
                       {"fp32[b, 12, q, 64]", "fp32[b, 12, k, 64]"}),
            "fp32[b, 12, q, k]");
}

TEST(EinsumErrors, NameTheEquation) {
  const auto with = [](std::string equation) {
    return infer_text("Einsum", attributes({{"equation", std::move(equation)}}),
                      {"fp32[2, 3]", "fp32[4, 5]"});
  };
  EXPECT_EQ(with("ij"), "Einsum: equation: expected 2 terms, one for each input, found 1");
  EXPECT_EQ(with("ij,jk"), "Einsum: equation: index 'j': expected size 3, found 4");
  EXPECT_EQ(with("ij,k"), "Einsum: equation: input 1: expected rank 1 for its term, found rank 2");
  EXPECT_EQ(with("ij,kl->im"), "Einsum: equation: index 'm' of the output stands in no term");
  EXPECT_EQ(with("ij,kl->ii"), "Einsum: equation: index 'i' stands twice in the output");
  EXPECT_EQ(with("i2,kl"),
            "Einsum: equation: expected letters and at most one '...' in a term, found 'i2'");
}

TEST(QuantizeLinear, RoundsHalfToEvenAndSaturates) {
  const auto y = run_op("QuantizeLinear", {},
                        {floats({6}, {0, 1, 3, 5, 1000, -1000}), floats({}, {2}),
                         bytes<std::uint8_t>(DType::kUInt8, {}, {128})})
                     .value();
  EXPECT_THAT(y[0].span<std::uint8_t>(), ::testing::ElementsAre(128, 128, 130, 130, 255, 0));
}

// 1293 / 5 is 258.6, which is 258.5 in fp16; in bf16 1293 is 1296, and the quotient 260.
TEST(QuantizeLinear, DividesInThePrecisionOfTheScaleOrAsAsked) {
  const auto as = [](const Tensor& x, DType dtype) {
    return run_op("Cast", attributes({{"to", static_cast<std::int64_t>(dtype)}}), {x}).value()[0];
  };
  const auto quantised = [&](DType x, DType scale, std::int64_t precision) {
    const Tensor zero = Tensor::of<std::int16_t>(DType::kInt16, {}, std::vector<std::int16_t>{0});
    return run_op("QuantizeLinear", attributes({{"precision", precision}}),
                  {as(floats({1}, {1293}), x), as(floats({}, {5}), scale), zero})
        .value()[0]
        .span<std::int16_t>()[0];
  };
  EXPECT_EQ(quantised(DType::kFp32, DType::kFp32, 0), 259);
  EXPECT_EQ(quantised(DType::kFp32, DType::kFp16, 0), 258);
  EXPECT_EQ(quantised(DType::kFp16, DType::kFp16, 0), 258);
  EXPECT_EQ(quantised(DType::kFp32, DType::kBf16, 0), 260);
  EXPECT_EQ(quantised(DType::kInt32, DType::kInt32, 0), 259);
  EXPECT_EQ(quantised(DType::kFp32, DType::kFp8E8M0, 0), 162);  // by 8, to which 5 is rounded
  EXPECT_EQ(quantised(DType::kFp16, DType::kFp16, 1), 259);
  EXPECT_EQ(quantised(DType::kFp16, DType::kFp16, 11), 259);
  EXPECT_EQ(quantised(DType::kFp32, DType::kFp32, 10), 258);
  EXPECT_EQ(quantised(DType::kFp32, DType::kFp32, 16), 260);
}

TEST(QuantizeLinear, NanIsTheZeroPoint) {
  const auto y = run_op("QuantizeLinear", {},
                        {floats({2}, {NAN, 4}), floats({}, {2}),
                         bytes<std::uint8_t>(DType::kUInt8, {}, {128})})
                     .value();
  EXPECT_THAT(y[0].span<std::uint8_t>(), ::testing::ElementsAre(128, 130));
  const auto dynamic = run_op("DynamicQuantizeLinear", {}, {floats({3}, {NAN, -1, 4})}, 3).value();
  EXPECT_THAT(dynamic[0].span<std::uint8_t>(), ::testing::ElementsAre(51, 0, 255));
}

TEST(DequantizeLinear, TakesAScaleForEachIndexOfTheAxis) {
  const Tensor x = bytes<std::int8_t>(DType::kInt8, {2, 2}, {1, 2, 3, 4});
  const auto y = run_op("DequantizeLinear", attributes({{"axis", std::int64_t{0}}}),
                        {x, floats({2}, {1, 10}), bytes<std::int8_t>(DType::kInt8, {2}, {0, 1})})
                     .value();
  EXPECT_EQ(to_vector(y[0]), (std::vector<float>{1, 2, 20, 30}));
}

TEST(DequantizeLinear, TakesAScaleForEachBlock) {
  const Tensor x = bytes<std::int8_t>(DType::kInt8, {1, 5}, {1, 1, 1, 1, 1});
  const auto y = run_op("DequantizeLinear",
                        attributes({{"axis", std::int64_t{1}}, {"block_size", std::int64_t{2}}}),
                        {x, floats({1, 3}, {1, 2, 3})})
                     .value();
  EXPECT_EQ(to_vector(y[0]), (std::vector<float>{1, 1, 2, 2, 3}));
}

TEST(QuantizeErrors, NameTheParameter) {
  EXPECT_EQ(
      infer_text("QuantizeLinear", {}, {"fp32[2, 3]", "fp32[2]"}),
      "QuantizeLinear: elements of scale: expected 3 (one for each index of axis 1), found 2");
  EXPECT_EQ(infer_text("QuantizeLinear", {}, {"fp32[2, 3]", "fp32[3, 2]"}),
            "QuantizeLinear: scale: expected rank 0 or 1, found rank 2");
  EXPECT_EQ(infer_text("QuantizeLinear", {}, {"fp32[2, 3]", "fp32[3]", "int8[2]"}),
            "QuantizeLinear: zero point: expected shape [3] as scale has, found [2]");
  EXPECT_EQ(infer_text("QuantizeLinear", attributes({{"output_dtype", std::int64_t{3}}}),
                       {"fp32[2, 3]", "fp32[]", "uint8[]"}),
            "QuantizeLinear: output_dtype: expected uint8 as the zero point has, found int8");
  EXPECT_EQ(infer_text("QuantizeLinear", attributes({{"precision", std::int64_t{3}}}),
                       {"fp32[2, 3]", "fp32[]", "uint8[]"}),
            "QuantizeLinear: precision: expected 1 (fp32), 10 (fp16), 11 (fp64) or 16 (bf16), "
            "found 3");
  EXPECT_EQ(infer_text("DequantizeLinear", attributes({{"output_dtype", std::int64_t{7}}}),
                       {"int8[2, 3]", "fp32[]"}),
            "DequantizeLinear: output_dtype: expected a dtype that the operator gives, found 7");
  EXPECT_EQ(infer_text("DequantizeLinear", attributes({{"block_size", std::int64_t{2}}}),
                       {"int8[2, 5]", "fp32[2, 2]"}),
            "DequantizeLinear: size 1 of scale: expected 3 (for blocks of 2), found 2");
}

// An infinite scale leaves no quotient but 0 and NaN, which both become the zero point.
TEST(DynamicQuantizeLinear, OfAnInfiniteRangeIsZero) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const auto& x : {std::vector<float>{kInf, -1, 1}, {-kInf, -1, 1}, {kInf, -kInf, 0}}) {
    const auto y = run_op("DynamicQuantizeLinear", {}, {floats({3}, x)}, 3).value();
    EXPECT_EQ(to_vector(y[1])[0], kInf);
    EXPECT_EQ(y[2].span<std::uint8_t>()[0], 0);
    EXPECT_THAT(y[0].span<std::uint8_t>(), ::testing::ElementsAre(0, 0, 0));
  }
}

TEST(DynamicQuantizeLinear, MapsTheRangeToBytes) {
  const auto y = run_op("DynamicQuantizeLinear", {}, {floats({3}, {-1, 0, 4})}, 3).value();
  EXPECT_FLOAT_EQ(to_vector(y[1])[0], 5.0F / 255.0F);
  EXPECT_EQ(y[2].span<std::uint8_t>()[0], 51);
  EXPECT_THAT(y[0].span<std::uint8_t>(), ::testing::ElementsAre(0, 51, 255));
  const auto zeros = run_op("DynamicQuantizeLinear", {}, {floats({1}, {0})}, 3).value();
  EXPECT_EQ(to_vector(zeros[1])[0], 1);
}

TEST(QuantizedProducts, SubtractZeroPoints) {
  const Tensor a = bytes<std::uint8_t>(DType::kUInt8, {1, 2}, {11, 7});
  const Tensor b = bytes<std::uint8_t>(DType::kUInt8, {2, 1}, {1, 4});
  const auto y =
      run_op("MatMulInteger", {}, {a, b, bytes<std::uint8_t>(DType::kUInt8, {}, {12}), Tensor()})
          .value();
  EXPECT_EQ(y[0].span<std::int32_t>()[0], -1 * 1 + -5 * 4);
  EXPECT_EQ(error_text(run_op("MatMulInteger", {},
                              {a, b, bytes<std::uint8_t>(DType::kUInt8, {3}, {1, 2, 3})})),
            "MatMulInteger: input 'a_zero_point': expected 1 element for all or one for each of 1, "
            "found 3");
  const Tensor x = bytes<std::uint8_t>(DType::kUInt8, {1, 1, 2}, {5, 6});
  const Tensor w = bytes<std::int8_t>(DType::kInt8, {1, 1, 2}, {1, -2});
  // Padding is the zero point: it adds nothing.
  const auto conv = run_op("ConvInteger", attributes({{"pads", std::vector<std::int64_t>{1, 0}}}),
                           {x, w, bytes<std::uint8_t>(DType::kUInt8, {}, {4})})
                        .value();
  EXPECT_THAT(conv[0].span<std::int32_t>(), ::testing::ElementsAre(-2, 1 - 4));
}

}  // namespace
}  // namespace tessera::ops::nn::testing
