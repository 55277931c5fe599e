#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "backends/cpu/compile/kernel_check.h"

namespace tessera::backends::cpu {
namespace {

using Ints = std::vector<std::int64_t>;

Tensor scalar(float value) {
  return Tensor::of<float>(DType::kFp32, {}, std::vector<float>{value});
}

class Unary : public ::testing::TestWithParam<const char*> {};

// In every layout, with channels that do not fill their blocks.
TEST_P(Unary, MatchesReference) {
  const std::string op = GetParam();
  Bench bench;
  bench.low = op == "Log" || op == "Sqrt" ? 0.01F : -6;
  bench.high = 6;
  const auto x = bench.input("x", {Dim::symbol("n"), 11, 9, 7});
  bench.output(bench.op(op, {x}));
  EXPECT_EQ(bench.check({{"n", 1}}, {{{"n", 1}}, {{"n", 60}}}, 2e-6), 3U);
}

// NaN stays NaN, and what the operator makes of it otherwise is what the reference makes.
TEST_P(Unary, NaNsGoThrough) {
  Bench bench;
  bench.low = bench.high = std::numeric_limits<float>::quiet_NaN();
  bench.output(bench.op(GetParam(), {bench.input("x", {2, 11, 9, 7})}));
  EXPECT_EQ(bench.check(2e-6), 3U);
}

TEST_P(Unary, Infinities) {
  for (const float sign : {-1.0F, 1.0F}) {
    Bench bench;
    bench.middle = sign * std::numeric_limits<float>::infinity();
    bench.low = 0.5F;
    bench.high = 1;
    bench.output(bench.op(GetParam(), {bench.input("x", {2, 11, 9, 7})}));
    EXPECT_EQ(bench.check(2e-6), 3U);
  }
}

// An attribute that is NaN or infinite counts for the same elements.
TEST(Elementwise, ParametersThatAreNotFinite) {
  const std::pair<const char*, const char*> cases[] = {
      {"LeakyRelu", "alpha"},   {"ThresholdedRelu", "alpha"},
      {"Elu", "alpha"},         {"Selu", "alpha"},
      {"Selu", "gamma"},        {"Celu", "alpha"},
      {"HardSigmoid", "alpha"}, {"HardSigmoid", "beta"},
      {"Swish", "alpha"}};
  using Limits = std::numeric_limits<float>;
  for (const auto& [op, name] : cases) {
    for (const float value : {Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity()}) {
      for (const float middle : {0.0F, Limits::infinity(), -Limits::infinity()}) {
        SCOPED_TRACE(std::string(op) + " " + name + " " + std::to_string(value) + " " +
                     std::to_string(middle));
        Bench bench;
        bench.middle = middle;
        bench.output(bench.op(op, {bench.input("x", {3, 11})}, attributes({{name, value}})));
        EXPECT_EQ(bench.check(2e-6), 1U);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Unary,
                         ::testing::Values("Relu", "LeakyRelu", "ThresholdedRelu", "Elu", "Selu",
                                           "Celu", "Sigmoid", "HardSigmoid", "HardSwish", "Tanh",
                                           "Exp", "Log", "Sqrt", "Erf", "Abs", "Neg", "Reciprocal",
                                           "Floor", "Ceil", "Round", "Sign", "Softplus", "Softsign",
                                           "Mish", "Gelu", "Sin", "Cos"),
                         [](const auto& param) { return std::string(param.param); });

class BinaryOps : public ::testing::TestWithParam<const char*> {};

TEST_P(BinaryOps, SameShapeAndScalar) {
  Bench bench;
  bench.low = 0.5F;
  bench.high = 3;
  const Shape shape = {2, 5, Dim::symbol("h"), 6};
  const auto first = bench.op(GetParam(), {bench.input("x", shape), bench.input("y", shape)});
  bench.output(bench.op(GetParam(), {first, bench.constant("c", scalar(1.5F))}));
  EXPECT_EQ(bench.check({{"h", 4}}, {{{"h", 4}}, {{"h", 300}}}, 2e-6), 3U);
}

INSTANTIATE_TEST_SUITE_P(Ops, BinaryOps,
                         ::testing::Values("Add", "Sub", "Mul", "Div", "Min", "Max", "Pow", "Sum",
                                           "Mean"),
                         [](const auto& param) { return std::string(param.param); });

TEST(Elementwise, EveryBroadcast) {
  for (const Dims& other :
       {Dims{}, Dims{7}, Dims{6, 1}, Dims{5, 1, 1}, Dims{1, 5, 1, 1}, Dims{2, 5, 1, 1},
        Dims{1, 1, 6, 7}, Dims{2, 1, 6, 1}, Dims{2, 5, 6, 7}, Dims{2, 1, 1, 1}}) {
    for (const bool constant : {false, true}) {
      SCOPED_TRACE(to_string(other) + (constant ? " constant" : " input"));
      Bench bench;
      const auto x = bench.input("x", {2, 5, 6, 7});
      const auto y =
          constant ? bench.random_constant("y", other) : bench.input("y", to_shape(other));
      bench.output(bench.op("Sub", {y, x}));
      EXPECT_GE(bench.check(1e-6), constant || other.empty() || other.size() == 4 ? 3U : 1U);
    }
  }
}

// Two broadcast operands: the result is larger than either.
TEST(Elementwise, BothBroadcast) {
  Bench bench;
  bench.output(bench.op("Add", {bench.input("x", {3, 1, 5}), bench.input("y", {1, 4, 1})}));
  EXPECT_GE(bench.check(1e-6), 1U);
}

TEST(Elementwise, GroupWithSharedOperandsAndTwoOutputs) {
  Bench bench;
  const auto x = bench.input("x", {2, 9, 16, 5});
  const auto gate = bench.input("gate", {2, 9, 1, 1});
  const auto scaled = bench.op("Mul", {x, bench.op("HardSigmoid", {gate})});
  const auto sum = bench.op("Add", {scaled, bench.random_constant("c", {9, 1, 1})});
  const auto clipped = bench.op(
      "Clip", {sum, bench.constant("lo", scalar(-0.25F)), bench.constant("hi", scalar(0.5F))});
  bench.output(scaled);
  bench.output(bench.op("Mul", {bench.op("Sub", {clipped, scaled}), x}));
  EXPECT_EQ(bench.check(1e-6), 3U);
}

TEST(Elementwise, PReluOfChannels) {
  Bench bench;
  bench.output(bench.op(
      "PRelu", {bench.input("x", {2, 6, 5, 4}), bench.random_constant("slope", {6, 1, 1})}));
  EXPECT_EQ(bench.check(1e-6), 3U);
}

TEST(Elementwise, ClipWithoutBounds) {
  Bench bench;
  bench.output(bench.op(
      "Clip", {bench.input("x", {33}), ir::kNoValue, bench.constant("hi", scalar(0.25F))}));
  EXPECT_EQ(bench.check(1e-6), 1U);
}

TEST(Elementwise, ClipToNan) {
  const auto nan = scalar(std::numeric_limits<float>::quiet_NaN());
  for (const bool low : {false, true}) {
    Bench bench;
    const auto bound = bench.constant("bound", nan);
    const auto other = bench.constant("other", scalar(0.25F));
    bench.output(
        bench.op("Clip", {bench.input("x", {33}), low ? bound : other, low ? other : bound}));
    EXPECT_EQ(bench.check(1e-6), 1U);
  }
}

TEST(Elementwise, NothingInEveryLayout) {
  for (const std::int64_t h : {0, 3}) {
    Bench bench;
    bench.output(bench.op("Relu", {bench.input("x", {2, 5, Dim::symbol("h"), 6})}));
    EXPECT_EQ(bench.check({{"h", h}}, {{{"h", 0}}, {{"h", 2}}}, 2e-6), 3U);
  }
}

TEST(Elementwise, PowOfTwoAndAHalf) {
  for (const float exponent : {2.0F, 0.5F, 3.0F, -1.5F}) {
    Bench bench;
    bench.low = 0.1F;
    bench.output(
        bench.op("Pow", {bench.input("x", {4, 100}), bench.constant("e", scalar(exponent))}));
    EXPECT_EQ(bench.check(2e-6), 1U);
  }
}

TEST(BatchNormalization, IsAScaleAndAShift) {
  Bench bench;
  const auto x = bench.input("x", {Dim::symbol("n"), 10, 4, 5});
  bench.output(
      bench.op("BatchNormalization",
               {x, bench.random_constant("s", {10}), bench.random_constant("b", {10}),
                bench.random_constant("m", {10}), bench.random_constant("v", {10}, 0.5F, 2)}));
  EXPECT_EQ(bench.check({{"n", 1}}, {{{"n", 1}}, {{"n", 4}}}, 2e-6), 3U);
}

TEST(ScalarOps, IntegersCompareAndChoose) {
  for (const char* op : {"Add", "Sub", "Mul", "Min", "Max", "Equal", "Less", "GreaterOrEqual"}) {
    for (const DType dtype : {DType::kInt64, DType::kInt32}) {
      Bench bench;
      bench.high = 9;
      bench.low = 0;
      bench.output(
          bench.op(op, {bench.input("x", {3, 1, 50}, dtype), bench.input("y", {4, 1}, dtype)}));
      EXPECT_EQ(bench.check(0), 1U) << op;
    }
  }
}

TEST(ScalarOps, NansOfEitherSideGoThrough) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor y = Tensor::of<double>(DType::kFp64, {2}, std::vector<double>{nan, 1});
  for (const char* op : {"Min", "Max"}) {
    for (const bool first : {false, true}) {
      Bench bench;
      const auto x = bench.input("x", {3, 2}, DType::kFp64);
      const auto other = bench.constant("y", y);
      bench.output(first ? bench.op(op, {other, x}) : bench.op(op, {x, other}));
      EXPECT_EQ(bench.check(0), 1U) << op << first;
    }
  }
}

TEST(ScalarOps, DivisionAndRemainderOfNegatives) {
  for (const char* op : {"Div", "Mod"}) {
    Bench bench;
    bench.low = -20;
    bench.high = 20;
    const auto d = bench.constant(
        "d", Tensor::of<std::int64_t>(DType::kInt64, {4}, std::vector<std::int64_t>{3, -3, 1, -7}));
    bench.output(bench.op(op, {bench.input("x", {50, 4}, DType::kInt64), d}));
    EXPECT_EQ(bench.check(0), 1U) << op;
  }
}

TEST(ScalarOps, MasksAndWhere) {
  Bench bench;
  bench.output(bench.op("Where", {bench.input("c", {2, 1, 40}, DType::kBool),
                                  bench.input("x", {3, 40}), bench.constant("y", scalar(-1e9F))}));
  EXPECT_EQ(bench.check(1e-7), 1U);
  for (const char* op : {"And", "Or", "Xor"}) {
    Bench logic;
    logic.output(logic.op(
        op, {logic.input("x", {7, 5}, DType::kBool), logic.input("y", {5}, DType::kBool)}));
    EXPECT_EQ(logic.check(0), 1U) << op;
  }
}

TEST(ScalarOps, Casts) {
  for (const DType to : {DType::kFp32, DType::kInt32, DType::kInt64, DType::kBool, DType::kUInt8}) {
    for (const DType from : {DType::kFp32, DType::kInt64, DType::kBool}) {
      Bench bench;
      bench.low = 0;
      bench.high = 5;
      bench.output(bench.op("Cast", {bench.input("x", {60}, from)},
                            attributes({{"to", static_cast<std::int64_t>(to)}})));
      EXPECT_EQ(bench.check(0), 1U);
    }
  }
}

TEST(ScalarOps, CastsOfWhatDoesNotFit) {
  for (const DType to : {DType::kInt32, DType::kInt64, DType::kInt8, DType::kUInt8, DType::kBool}) {
    for (const float range : {3.0F, 1e3F, 1e20F}) {
      Bench bench;
      bench.low = -range;
      bench.high = range;
      bench.output(bench.op("Cast", {bench.input("x", {60})},
                            attributes({{"to", static_cast<std::int64_t>(to)}})));
      EXPECT_EQ(bench.check(0), 1U) << to_string(to) << " to " << range;
    }
  }
}

TEST(ElementwiseOffers, RefusalsNameWhatWasFound) {
  Bench bench;
  const auto x = bench.input("x", {4}, DType::kFp16);
  bench.output(bench.op("Relu", {x}));
  EXPECT_EQ(bench.offers({}).refusal,
            "Relu: expected fp32, or one or two operands of a dtype with code for it, found (fp16) "
            "to fp16");
}

}  // namespace
}  // namespace tessera::backends::cpu
