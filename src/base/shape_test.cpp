#include "base/shape.h"

#include <gtest/gtest.h>

namespace tessera {
namespace {

const Dim kBatch = Dim::symbol("batch");

TEST(ShapeTest, TextAndConstants) {
  EXPECT_EQ(to_string(Shape{kBatch, 3, Dim(2) * Dim::symbol("h")}), "[batch, 3, 2*h]");
  EXPECT_EQ(to_string(Shape{}), "[]");
  EXPECT_EQ(constant_dims(Shape{2, 3}), (Dims{2, 3}));
  EXPECT_FALSE(constant_dims(Shape{2, kBatch}).has_value());
  EXPECT_EQ(to_shape({2, 3}), (Shape{2, 3}));
}

TEST(ShapeTest, EvaluateNamesTheDim) {
  EXPECT_EQ(evaluate(Shape{kBatch, 3}, {{"batch", 2}}), (Dims{2, 3}));
  EXPECT_EQ(evaluate(Shape{3, kBatch}, {}).error().to_string(),
            "dim 1: symbol 'batch' has no value");
}

TEST(ShapeTest, Broadcasting) {
  EXPECT_EQ(broadcast_dims({2, 1, 4}, {3, 1}), (Dims{2, 3, 4}));
  EXPECT_EQ(broadcast_dims({}, {3, 0}), (Dims{3, 0}));
  EXPECT_EQ(broadcast_dims({1}, {0}), (Dims{0}));
  EXPECT_EQ(broadcast_shapes({kBatch, 1}, {5}), (Shape{kBatch, 5}));
  EXPECT_EQ(broadcast_shapes({kBatch}, {1, kBatch}), (Shape{1, kBatch}));
  EXPECT_EQ(broadcast_dims({2, 3}, {4}).error().to_string(),
            "shapes [2, 3] and [4] do not broadcast: sizes 3 and 4 do not broadcast");
}

TEST(ValueTypeTest, TextRoundTrips) {
  const ValueType types[] = {
      ValueType::tensor(DType::kFp32, Shape{kBatch, 3}),
      ValueType::tensor(DType::kInt64, Shape{}),
      ValueType::tensor(DType::kFp8E4M3Fn, std::nullopt),
      ValueType::tensor(DType::kUndefined, std::nullopt),
      ValueType::tensor(DType::kBool, Shape{Dim::symbol("a], (b"), floordiv(kBatch, 2)}),
      ValueType::sequence(ValueType::tensor(DType::kString, Shape{2})),
      ValueType::optional(ValueType::sequence(ValueType::tensor(DType::kBf16, std::nullopt))),
      ValueType::sequence(ValueType::map(DType::kString, DType::kFp32)),
      ValueType::map(DType::kInt64, DType::kFp32)};
  for (const ValueType& type : types) {
    const auto parsed = parse_value_type(type.to_string());
    ASSERT_TRUE(parsed.has_value()) << type.to_string() << ": " << parsed.error().to_string();
    EXPECT_EQ(*parsed, type);
    EXPECT_EQ(parsed->to_string(), type.to_string());
  }
  EXPECT_EQ(types[0].to_string(), "fp32[batch, 3]");
  EXPECT_EQ(types[2].to_string(), "fp8_e4m3fn[?]");
  EXPECT_EQ(types[6].to_string(), "opt(seq(bf16[?]))");
  EXPECT_EQ(types[7].to_string(), "seq(map(string, fp32))");
  EXPECT_FALSE(types[8] == ValueType::map(DType::kInt64, DType::kFp64));
  EXPECT_FALSE(types[8] == ValueType::map(DType::kString, DType::kFp32));
  EXPECT_EQ(types[7].with_element(types[0]).to_string(), "seq(fp32[batch, 3])");
  EXPECT_FALSE(types[0] == types[1]);
  EXPECT_FALSE(types[5] == types[6]);
}

TEST(ValueTypeTest, ParseErrors) {
  const auto error = [](std::string_view text) {
    const auto parsed = parse_value_type(text);
    return parsed ? "parsed as " + parsed->to_string() : parsed.error().to_string();
  };
  EXPECT_EQ(error("float[2]"),
            "expected an element type, 'seq(', 'opt(' or 'map(' in a type, found 'float[2]'");
  EXPECT_EQ(error("fp32"), "expected '[' in a type, found the end of the text");
  EXPECT_EQ(error("fp32[2"), "expected ',' or ']' in a type, found the end of the text");
  EXPECT_EQ(error("fp32[2]x"), "expected the end of the text in a type, found 'x'");
  EXPECT_EQ(error("seq(fp32[2]"), "expected ')' in a type, found the end of the text");
  EXPECT_EQ(error("fp32[2,]"), "expected a number, a symbol, '-' or '(' in a dimension, found ']'");
  EXPECT_EQ(error("map(int65, fp32)"),
            "expected the element type of keys in a type, found 'int65, fp32)'");
  EXPECT_EQ(error("map(int64 fp32)"),
            "expected the element type of keys in a type, found 'int64 fp32)'");
  EXPECT_EQ(error("map(int64)"), "expected ',' in a type, found ')'");
  EXPECT_EQ(error("map(int64, fp32[2])"), "expected ')' in a type, found '[2])'");
  EXPECT_EQ(error("map(int64, x)"), "expected the element type of values in a type, found 'x)'");
  std::string deep;
  for (int i = 0; i < 1000; ++i) deep += "seq(";
  EXPECT_EQ(error(deep), "a type nests deeper than 64 levels");
}

}  // namespace
}  // namespace tessera
