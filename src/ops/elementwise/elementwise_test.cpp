// Values of elementwise operators, their inference and upgrades.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/nn/nn_test_util.h"
#include "ops/scalar_function.h"
#include "testing/op_testing.h"

namespace tessera::ops {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using testing::floats;
using testing::infer_text;
using testing::int64s;
using ::testing::IsNan;
using testing::known;
using testing::op_error;
using ::testing::Pointwise;
using testing::run_op;
using testing::sized;
using testing::tensor;
using testing::typed;
using testing::values;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

TEST(Arithmetic, BroadcastsBothWays) {
  const Tensor column = tensor<float>({2, 1}, {10, 20});
  const Tensor sum = run_op("Add", {column, floats({1, 2, 3})});
  EXPECT_EQ(sum.dims(), (Dims{2, 3}));
  EXPECT_EQ(values<float>(sum), (std::vector<float>{11, 12, 13, 21, 22, 23}));
}

TEST(Arithmetic, BroadcastsInTheMiddle) {
  const Tensor a = tensor<float>({2, 1, 2}, {1, 2, 3, 4});
  const Tensor b = tensor<float>({3, 1}, {10, 20, 30});
  EXPECT_EQ(values<float>(run_op("Sub", {a, b})),
            (std::vector<float>{-9, -8, -19, -18, -29, -28, -7, -6, -17, -16, -27, -26}));
}

TEST(Arithmetic, TakesZeroSizes) {
  const Tensor empty = tensor<float>({0, 3}, {});
  EXPECT_EQ(run_op("Mul", {empty, floats({1, 2, 3})}).dims(), (Dims{0, 3}));
}

TEST(Arithmetic, IntegersWrapAround) {
  EXPECT_EQ(values<std::int8_t>(
                run_op("Add", {tensor<std::int8_t>({1}, {127}), tensor<std::int8_t>({1}, {1})})),
            (std::vector<std::int8_t>{-128}));
  EXPECT_EQ(values<std::uint16_t>(run_op(
                "Mul", {tensor<std::uint16_t>({1}, {65535}), tensor<std::uint16_t>({1}, {65535})})),
            (std::vector<std::uint16_t>{1}));
  EXPECT_EQ(values<std::uint8_t>(
                run_op("Sub", {tensor<std::uint8_t>({1}, {0}), tensor<std::uint8_t>({1}, {1})})),
            (std::vector<std::uint8_t>{255}));
}

TEST(Arithmetic, IntegerDivisionTruncatesAndNeverCrashes) {
  constexpr std::int32_t kLowest = std::numeric_limits<std::int32_t>::min();
  const Tensor a = tensor<std::int32_t>({5}, {7, -7, 7, 5, kLowest});
  const Tensor b = tensor<std::int32_t>({5}, {2, 2, -2, 0, -1});
  EXPECT_EQ(values<std::int32_t>(run_op("Div", {a, b})),
            (std::vector<std::int32_t>{3, -3, -3, 0, kLowest}));
}

TEST(Arithmetic, ModFollowsTheDivisorAndFmodTheDividend) {
  const Tensor a = int64s({-4, 7, 5, 4, -7, 8, 3});
  const Tensor b = int64s({2, -3, 8, -2, 3, 5, 0});
  EXPECT_EQ(values<std::int64_t>(run_op("Mod", {a, b})),
            (std::vector<std::int64_t>{0, -2, 5, 0, 2, 3, 0}));
  EXPECT_EQ(values<std::int64_t>(run_op("Mod", {a, b}, {{"fmod", 1}})),
            (std::vector<std::int64_t>{0, 1, 5, 0, -1, 3, 0}));
}

TEST(Arithmetic, PowTakesMixedTypes) {
  EXPECT_EQ(values<float>(run_op("Pow", {floats({1, 2, 3}), int64s({4, 5, 6})})),
            (std::vector<float>{1, 32, 729}));
  EXPECT_EQ(values<std::int64_t>(run_op("Pow", {int64s({1, 2, 3}), floats({4, 5, 0.5F})})),
            (std::vector<std::int64_t>{1, 32, 1}));
  EXPECT_EQ(values<std::int64_t>(run_op("Pow", {int64s({-1, 2, -3}), int64s({-3, -1, 3})})),
            (std::vector<std::int64_t>{-1, 0, -27}));
}

TEST(Arithmetic, HalfFloatsRoundAfterEachOperation) {
  const Tensor big =
      run_op("Cast", {floats({2048})}, {{"to", static_cast<std::int64_t>(DType::kFp16)}});
  const Tensor one =
      run_op("Cast", {floats({1})}, {{"to", static_cast<std::int64_t>(DType::kFp16)}});
  const Tensor sum = run_op("Add", {big, one});
  EXPECT_EQ(values<float>(run_op("Cast", {sum}, {{"to", static_cast<std::int64_t>(DType::kFp32)}})),
            (std::vector<float>{2048}));
}

TEST(Unary, RoundsHalfToEven) {
  EXPECT_EQ(values<float>(run_op("Round", {floats({0.5F, 1.5F, 2.5F, -0.5F, -1.5F, 0.9F})})),
            (std::vector<float>{0, 2, 2, 0, -2, 1}));
}

TEST(Unary, SignAndAbsOfIntegers) {
  EXPECT_EQ(values<std::int64_t>(run_op("Sign", {int64s({-5, 0, 7})})),
            (std::vector<std::int64_t>{-1, 0, 1}));
  EXPECT_EQ(values<std::int8_t>(run_op("Abs", {tensor<std::int8_t>({2}, {-128, -3})})),
            (std::vector<std::int8_t>{-128, 3}));
}

TEST(Unary, TheSmallestIntegerAndNanStay) {
  EXPECT_EQ(values<std::int8_t>(run_op("Neg", {tensor<std::int8_t>({2}, {-128, 5})})),
            (std::vector<std::int8_t>{-128, -5}));
  EXPECT_THAT(values<float>(run_op("Sign", {floats({kNan, -2})})), ElementsAre(IsNan(), -1));
}

TEST(Activation, AgreesWithItsFormula) {
  const Tensor x = floats({-4, -1, 0, 0.5F, 4});
  const auto near = [](std::initializer_list<float> expected) {
    return Pointwise(FloatNear(1e-6F), std::vector<float>(expected));
  };
  EXPECT_THAT(values<float>(run_op("LeakyRelu", {x}, {{"alpha", 0.1F}})),
              near({-0.4F, -0.1F, 0, 0.5F, 4}));
  EXPECT_THAT(values<float>(run_op("HardSigmoid", {x})), near({0, 0.3F, 0.5F, 0.6F, 1}));
  EXPECT_THAT(values<float>(run_op("HardSwish", {x})),
              near({0, -1.0F / 3, 0, 0.5F * (0.5F / 6 + 0.5F), 4}));
  EXPECT_THAT(values<float>(run_op("Sigmoid", {x})),
              near({0.01798621F, 0.26894142F, 0.5F, 0.62245933F, 0.98201379F}));
  EXPECT_THAT(values<float>(run_op("Elu", {x})), near({-0.98168436F, -0.63212056F, 0, 0.5F, 4}));
  EXPECT_THAT(values<float>(run_op("Gelu", {x})),
              near({-0.00012668F, -0.15865525F, 0, 0.34573123F, 3.99987332F}));
  EXPECT_THAT(values<float>(run_op("Swish", {x}, {{"alpha", 2.0F}})),
              near({-0.00134140F, -0.11920292F, 0, 0.36552929F, 3.99865860F}));
}

TEST(Activation, SigmoidAndSoftplusDoNotOverflow) {
  EXPECT_EQ(values<float>(run_op("Sigmoid", {floats({-1000, 1000})})), (std::vector<float>{0, 1}));
  EXPECT_EQ(values<float>(run_op("Softplus", {floats({-1000, 1000})})),
            (std::vector<float>{0, 1000}));
}

TEST(Activation, ReluKeepsNan) {
  EXPECT_THAT(values<float>(run_op("Relu", {floats({kNan, -1})})), ElementsAre(IsNan(), 0));
}

TEST(Activation, KeepsNan) {
  for (const char* op : {"Sigmoid", "HardSigmoid"})
    EXPECT_THAT(values<float>(run_op(op, {floats({kNan})})), ElementsAre(IsNan())) << op;
  EXPECT_THAT(values<float>(run_op("PRelu", {floats({kNan}), floats({2})})), ElementsAre(IsNan()));
}

TEST(Activation, NanIsOnNeitherSideOfAThreshold) {
  EXPECT_EQ(values<float>(run_op("ThresholdedRelu", {floats({kNan, 2})})),
            (std::vector<float>{0, 2}));
  EXPECT_EQ(values<float>(run_op("Shrink", {floats({kNan, 2})})), (std::vector<float>{0, 2}));
}

// The sign of x alone decides where alpha counts; that of Celu divides x first.
TEST(Activation, TakesNanAsAlpha) {
  for (const char* op : {"LeakyRelu", "Elu", "Selu"}) {
    const auto result = values<float>(run_op(op, {floats({-1, 0, 1})}, {{"alpha", kNan}}));
    EXPECT_THAT(result, ElementsAre(IsNan(), 0, ::testing::Gt(0))) << op;
  }
  EXPECT_THAT(values<float>(run_op("Celu", {floats({-1, 0, 1})}, {{"alpha", kNan}})),
              ElementsAre(IsNan(), IsNan(), IsNan()));
  EXPECT_THAT(values<float>(run_op("Celu", {floats({-kInf, 2, kInf})}, {{"alpha", 0.5F}})),
              ElementsAre(-0.5F, 2, kInf));
  EXPECT_EQ(values<float>(run_op("ThresholdedRelu", {floats({-1, 1})}, {{"alpha", kNan}})),
            (std::vector<float>{0, 0}));
}

TEST(Activation, ShrinkCutsIntegersAndWrapsAround) {
  const auto shrunk = [](std::initializer_list<std::int8_t> x, float bias) {
    const Tensor bytes = tensor<std::int8_t>({static_cast<std::int64_t>(x.size())}, x);
    return values<std::int8_t>(run_op("Shrink", {bytes}, {{"bias", bias}, {"lambd", 1.0F}}));
  };
  EXPECT_EQ(shrunk({3, -3, 1, 127}, 1.5F), (std::vector<std::int8_t>{1, -1, 0, 125}));
  EXPECT_EQ(shrunk({127}, -1.5F), (std::vector<std::int8_t>{-128}));
}

TEST(Activation, IntegersWrapAround) {
  const auto lowest = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(values<std::int64_t>(run_op("PRelu", {int64s({lowest, -3}), int64s({-1, lowest})})),
            (std::vector<std::int64_t>{lowest, lowest}));
  EXPECT_EQ(values<std::int8_t>(run_op("PRelu", {tensor<std::int8_t>({2}, {-100, -128}),
                                                 tensor<std::int8_t>({2}, {2, -1})})),
            (std::vector<std::int8_t>{56, -128}));
  const auto shrunk = [&](float bias) {
    return values<std::int64_t>(
        run_op("Shrink", {int64s({5, -5})}, {{"bias", bias}, {"lambd", 1.0F}}));
  };
  EXPECT_EQ(shrunk(1e30F),
            (std::vector<std::int64_t>{lowest, std::numeric_limits<std::int64_t>::max()}));
  EXPECT_EQ(shrunk(kNan), (std::vector<std::int64_t>{0, 0}));
}

TEST(Activation, PReluRefusesASlopeThatWidens) {
  EXPECT_EQ(op_error("PRelu", {floats({1}), floats({1, 2})}),
            "PRelu: slope [2] does not broadcast to [1]");
  EXPECT_EQ(infer_text("PRelu", {typed("fp32[3]"), typed("fp32[2, 3]")}),
            "input 'slope': expected rank 1 or less, found rank 2: [2, 3]");
}

TEST(Activation, GeluNamesItsForms) {
  EXPECT_EQ(infer_text("Gelu", {typed("fp32[3]")}, {{"approximate", "fast"}}),
            "attribute 'approximate': expected 'none' or 'tanh', found 'fast'");
}

TEST(Variadic, FoldsAnyNumberOfOperands) {
  const std::vector<Tensor> three{floats({1, 5, kNan}), floats({4}), floats({2, 8, 1})};
  EXPECT_THAT(values<float>(run_op("Max", three)), ElementsAre(4, 8, IsNan()));
  EXPECT_THAT(values<float>(run_op("Min", three)), ElementsAre(1, 4, IsNan()));
  EXPECT_EQ(values<float>(run_op("Sum", {floats({1, 5}), floats({4}), floats({2, 8})})),
            (std::vector<float>{7, 17}));
  EXPECT_EQ(values<float>(run_op("Mean", {floats({1, 5}), floats({5, 6}), floats({3, 7})})),
            (std::vector<float>{3, 6}));
  EXPECT_EQ(values<std::uint64_t>(run_op("Max", {tensor<std::uint64_t>({1}, {1}),
                                                 tensor<std::uint64_t>({1}, {~std::uint64_t{0}})})),
            (std::vector<std::uint64_t>{~std::uint64_t{0}}));
}

TEST(Variadic, NanWinsAndHalfFloatsRoundAfterEachOperand) {
  EXPECT_THAT(values<float>(run_op("Max", {floats({1}), floats({kNan})})), ElementsAre(IsNan()));
  EXPECT_THAT(values<float>(run_op("Min", {floats({1}), floats({kNan})})), ElementsAre(IsNan()));
  const auto folded = [](const char* op, std::initializer_list<float> operands) {
    std::vector<Tensor> halves;
    for (const float x : operands)
      halves.push_back(
          run_op("Cast", {floats({x})}, {{"to", static_cast<std::int64_t>(DType::kFp16)}}));
    return values<float>(run_op("Cast", {run_op(op, halves)}, {{"to", 1}}));
  };
  EXPECT_EQ(folded("Sum", {2048, 1, 1}), (std::vector<float>{2048}));
  EXPECT_EQ(folded("Mean", {60000, 60000}), (std::vector<float>{kInf}));
}

TEST(Logic, ComparesAndCombines) {
  EXPECT_EQ(values<bool>(run_op("Less", {floats({1, 2, kNan}), floats({2})})),
            (std::vector<bool>{true, false, false}));
  EXPECT_EQ(values<bool>(run_op(
                "Equal", {tensor<std::string>({2}, {"a", "b"}), tensor<std::string>({1}, {"b"})})),
            (std::vector<bool>{false, true}));
  EXPECT_EQ(
      values<bool>(run_op("Xor", {tensor<bool>({2}, {true, false}), tensor<bool>({1}, {true})})),
      (std::vector<bool>{false, true}));
  EXPECT_EQ(values<bool>(run_op("IsInf", {floats({kInf, -kInf, kNan})}, {{"detect_negative", 0}})),
            (std::vector<bool>{true, false, false}));
  EXPECT_EQ(values<std::uint8_t>(run_op(
                "BitShift",
                {tensor<std::uint8_t>({3}, {16, 255, 1}), tensor<std::uint8_t>({3}, {1, 4, 9})},
                {{"direction", "LEFT"}})),
            (std::vector<std::uint8_t>{32, 240, 0}));
  EXPECT_EQ(values<std::int8_t>(run_op("BitwiseNot", {tensor<std::int8_t>({2}, {0, 5})})),
            (std::vector<std::int8_t>{-1, -6}));
}

TEST(Logic, ShiftsFillWithTheSign) {
  const Tensor x = tensor<std::int8_t>({5}, {-8, -8, 100, -1, 3});
  const Tensor y = tensor<std::int8_t>({5}, {1, 9, 1, -2, -2});
  EXPECT_EQ(values<std::int8_t>(run_op("BitShift", {x, y}, {{"direction", "RIGHT"}})),
            (std::vector<std::int8_t>{-4, -1, 50, -1, 0}));
  EXPECT_EQ(values<std::int8_t>(run_op("BitShift", {x, y}, {{"direction", "LEFT"}})),
            (std::vector<std::int8_t>{-16, 0, -56, 0, 0}));
}

TEST(Arithmetic, ModOfFloatsHasTheSignOfTheDivisor) {
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor a = floats({-4.3F, 7.2F, 0, 5, 5, inf, 1});
  const Tensor b = floats({2.1F, -3.4F, -2, inf, -inf, 2, 0});
  const auto rest = values<float>(run_op("Mod", {a, b}));
  EXPECT_NEAR(rest[0], 2.0F, 1e-5F);
  EXPECT_NEAR(rest[1], -3.0F, 1e-5F);
  EXPECT_TRUE(rest[2] == 0 && std::signbit(rest[2]));
  EXPECT_EQ(rest[3], 5);
  EXPECT_EQ(rest[4], -inf);
  EXPECT_TRUE(std::isnan(rest[5]) && std::isnan(rest[6]));
}

TEST(BitCast, KeepsTheBits) {
  EXPECT_EQ(values<std::int32_t>(run_op("BitCast", {floats({1, -2})}, {{"to", 6}})),
            (std::vector<std::int32_t>{0x3F800000, static_cast<std::int32_t>(0xC0000000)}));
  EXPECT_EQ(infer_text("BitCast", {typed("fp32[n]")}, {{"to", 12}}), "uint32[n]");
  EXPECT_EQ(infer_text("BitCast", {typed("fp32[n]")}, {{"to", 7}}),
            "attribute 'to': expected a dtype of 32 bits as fp32 has, found int64 of 64");
  EXPECT_EQ(infer_text("BitCast", {typed("fp32[n]")}, {{"to", 8}}),
            "attribute 'to': expected the number of a dtype other than string, found 8");
}

// numpy.random.seed(3): 0.5508, 0.7081, 0.2909.
TEST(Dropout, DrawsInTrainingByNodesOfItsOwn) {
  const auto dropped = [](bool training) {
    return nn::testing::run_old(
        "Dropout", 13, testing::attributes({{"seed", std::int64_t{3}}}),
        {floats({1, 2, 3}), tensor<float>({}, {0.5F}), tensor<bool>({}, {training})}, {true, true});
  };
  const auto drawn = dropped(true);
  ASSERT_TRUE(drawn) << drawn.error().to_string();
  EXPECT_EQ(values<float>(drawn->outputs[0]), (std::vector<float>{2, 4, 0}));
  EXPECT_EQ(values<bool>(drawn->outputs[1]), (std::vector<bool>{true, true, false}));
  const auto kept = dropped(false);
  ASSERT_TRUE(kept);
  EXPECT_TRUE(kept->ops.empty());
  EXPECT_EQ(values<float>(kept->outputs[0]), (std::vector<float>{1, 2, 3}));
}

TEST(Cast, RoundsPowersOfTwoAsAsked) {
  const auto cast = [](const char* mode) {
    const Tensor powers =
        run_op("Cast", {floats({3, 5})}, {{"to", 24}, {"round_mode", std::string(mode)}});
    return values<float>(run_op("Cast", {powers}, {{"to", 1}}));
  };
  EXPECT_EQ(cast("up"), (std::vector<float>{4, 8}));
  EXPECT_EQ(cast("down"), (std::vector<float>{2, 4}));
  EXPECT_EQ(cast("nearest"), (std::vector<float>{4, 4}));
  EXPECT_EQ(infer_text("Cast", {typed("fp32[n]")}, {{"to", 24}, {"round_mode", "even"}}),
            "attribute 'round_mode': expected 'up', 'down' or 'nearest', found 'even'");
}

TEST(Cast, OfWhatTheTypeCannotHold) {
  const auto cast = [](const Tensor& x, DType to) {
    return run_op("Cast", {x}, {{"to", static_cast<std::int64_t>(to)}});
  };
  EXPECT_EQ(values<std::int8_t>(cast(floats({300, -300, kNan}), DType::kInt8)),
            (std::vector<std::int8_t>{127, -128, 0}));
  EXPECT_THAT(to_int64_vector(cast(floats({17.9F, -1, 300}), DType::kUInt4).view()),
              ElementsAre(1, 15, 12));
  EXPECT_THAT(values<float>(cast(cast(floats({-2, -0.0F}), DType::kFp8E8M0), DType::kFp32)),
              ElementsAre(IsNan(), 0x1p-127F));
  EXPECT_EQ(values<std::int64_t>(cast(tensor<std::string>({1}, {"2.718"}), DType::kInt64)),
            (std::vector<std::int64_t>{2}));
}

TEST(SwiGLU, IsReplacedByItsBody) {
  const auto upgraded = nn::testing::run_old("SwiGLU", 28, testing::attributes({{"alpha", 2.0F}}),
                                             {floats({1, -1}), floats({3, 5})});
  ASSERT_TRUE(upgraded) << upgraded.error().to_string();
  EXPECT_EQ(upgraded->ops, (std::vector<std::string>{"Swish", "Mul"}));
  const auto result = values<float>(upgraded->outputs[0]);
  EXPECT_NEAR(result[0], 3 * 0.88079708F, 1e-5F);
  EXPECT_NEAR(result[1], -5 * 0.11920292F, 1e-5F);
  EXPECT_EQ(infer_text("SwiGLU", {typed("fp32[n, 4]"), typed("fp32[n, 4]")}), "fp32[n, 4]");
}

TEST(Logic, BitShiftNamesItsDirections) {
  EXPECT_EQ(infer_text("BitShift", {typed("uint8[1]"), typed("uint8[1]")}, {{"direction", "UP"}}),
            "attribute 'direction': expected 'LEFT' or 'RIGHT', found 'UP'");
}

TEST(Logic, WhereBroadcastsAllThree) {
  const Tensor condition = tensor<bool>({2, 1}, {true, false});
  const Tensor result = run_op("Where", {condition, floats({1, 2, 3}), tensor<float>({}, {9})});
  EXPECT_EQ(result.dims(), (Dims{2, 3}));
  EXPECT_EQ(values<float>(result), (std::vector<float>{1, 2, 3, 9, 9, 9}));
}

TEST(Clip, TakesLimitsAsInputs) {
  EXPECT_THAT(values<float>(run_op("Clip", {floats({-2, 0, 9, kNan}), tensor<float>({}, {-1}),
                                            tensor<float>({}, {6})})),
              ElementsAre(-1, 0, 6, IsNan()));
  EXPECT_EQ(values<float>(run_op("Clip", {floats({-2, 9}), {}, tensor<float>({}, {6})})),
            (std::vector<float>{-2, 6}));
  EXPECT_EQ(
      values<float>(run_op("Clip", {floats({3}), tensor<float>({}, {5}), tensor<float>({}, {1})})),
      (std::vector<float>{1}));
  const Tensor nan = tensor<float>({}, {kNan});
  for (const auto& bounds : {std::pair{nan, Tensor()},
                             {Tensor(), nan},
                             {nan, tensor<float>({}, {6})},
                             {tensor<float>({}, {6}), nan}})
    EXPECT_THAT(values<float>(run_op("Clip", {floats({-2, 9}), bounds.first, bounds.second})),
                ElementsAre(IsNan(), IsNan()));
  EXPECT_EQ(values<float>(run_op("Clip", {floats({-kInf, kInf})})),
            (std::vector<float>{-kInf, kInf}));
  EXPECT_EQ(op_error("Clip", {floats({1}), floats({1, 2})}),
            "input 1: expected a scalar, found [2]");
}

TEST(Clip, AttributesOfOldVersionsBecomeInputs) {
  testing::RecordingBuilder builder;
  builder.types[0] = ValueType::tensor(DType::kFp16, std::nullopt);
  UpgradeNode node{
      "Clip", testing::attributes({{"max", 6.0F}, {"consumed_inputs", testing::Ints{0}}}),
      {0},    1,
      {true}, std::nullopt};
  ASSERT_TRUE(testing::upgrade(node, 1, builder));
  EXPECT_TRUE(node.attributes.entries().empty());
  EXPECT_THAT(node.inputs, ElementsAre(0, kNoOperand, 100));
  EXPECT_EQ(builder.constants[100].dtype(), DType::kFp16);
  EXPECT_EQ(builder.constants[100].span<std::uint16_t>()[0], 0x4600);
}

TEST(Clip, UpgradeSaysThatItNeedsTheDtype) {
  testing::RecordingBuilder builder;
  UpgradeNode node{"Clip", testing::attributes({{"max", 6.0F}}), {0}, 1, {true}, std::nullopt};
  const Status status = testing::upgrade(node, 6, builder);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().to_string(),
            "input 'input': its dtype is not known, and the upgrade to opset 24 needs it");
}

TEST(LegacyBroadcast, AlignsTheSecondOperand) {
  testing::RecordingBuilder builder;
  builder.types[0] = typed("fp32[2, 3, 4, 5]").type;
  builder.types[1] = typed("fp32[3]").type;
  UpgradeNode node{
      "Add", testing::attributes({{"axis", 1}, {"broadcast", 1}}), {0, 1}, 1, {true}, std::nullopt};
  ASSERT_TRUE(testing::upgrade(node, 6, builder));
  ASSERT_EQ(builder.nodes.size(), 1U);
  EXPECT_EQ(builder.nodes[0].op_type, "Unsqueeze");
  EXPECT_EQ(values<std::int64_t>(builder.constants[100]), (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(node.inputs[1], builder.nodes[0].first_output);
  EXPECT_TRUE(node.attributes.entries().empty());
}

TEST(LegacyBroadcast, LeavesTrailingDimsAlone) {
  testing::RecordingBuilder builder;
  builder.types[0] = typed("fp32[2, 3, 4]").type;
  builder.types[1] = typed("fp32[3, 4]").type;
  UpgradeNode node{
      "Mul", testing::attributes({{"axis", 1}, {"broadcast", 1}}), {0, 1}, 1, {true}, std::nullopt};
  ASSERT_TRUE(testing::upgrade(node, 1, builder));
  EXPECT_TRUE(builder.nodes.empty());
}

TEST(LegacyBroadcast, SaysThatItNeedsRanks) {
  testing::RecordingBuilder builder;
  UpgradeNode node{
      "Add", testing::attributes({{"axis", 1}, {"broadcast", 1}}), {0, 1}, 1, {true}, std::nullopt};
  const Status status = testing::upgrade(node, 6, builder);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().to_string(),
            "Add: attribute 'axis' of an old version needs the ranks of both inputs, and they are "
            "not known");
}

TEST(Cast, ConvertsNumbersAndText) {
  const auto to = [](DType dtype) {
    return testing::AttributeList{{"to", static_cast<std::int64_t>(dtype)}};
  };
  EXPECT_EQ(values<std::int32_t>(run_op("Cast", {floats({1.9F, -1.9F})}, to(DType::kInt32))),
            (std::vector<std::int32_t>{1, -1}));
  EXPECT_EQ(values<std::string>(run_op("Cast", {floats({1.5F, kInf, 3})}, to(DType::kString))),
            (std::vector<std::string>{"1.5", "INF", "3"}));
  EXPECT_EQ(values<float>(run_op("Cast", {tensor<std::string>({3}, {"3.25", "-inf", " 1e-2 "})},
                                 to(DType::kFp32))),
            (std::vector<float>{3.25F, -kInf, 0.01F}));
  EXPECT_EQ(values<std::int64_t>(run_op("Cast", {tensor<std::string>({1}, {"9007199254740993"})},
                                        to(DType::kInt64))),
            (std::vector<std::int64_t>{9007199254740993}));
  EXPECT_EQ(op_error("Cast", {tensor<std::string>({1}, {"ten"})}, to(DType::kInt64)),
            "expected the text of a number to cast to int64, found 'ten'");
  EXPECT_EQ(infer_text("Cast", {typed("fp32[n]")}, {{"to", 99}}),
            "attribute 'to': expected the number of a dtype that Cast gives, found 99");
}

TEST(Dropout, PassesDataAndGivesAMask) {
  const auto outputs = testing::run_all("Dropout", {floats({1, 2})}, {}, 2);
  EXPECT_EQ(values<float>(outputs[0]), (std::vector<float>{1, 2}));
  EXPECT_EQ(values<bool>(outputs[1]), (std::vector<bool>{true, true}));
  EXPECT_EQ(
      infer_text("Dropout", {typed("fp32[2]"), typed("fp32[]"), known(tensor<bool>({}, {true}))}),
      "input 'training_mode': expected false, found true: training is not supported");
}

TEST(Inference, BroadcastsSymbols) {
  EXPECT_EQ(infer_text("Add", {typed("fp32[n, 1]"), typed("fp32[3]")}), "fp32[n, 3]");
  EXPECT_EQ(infer_text("Add", {typed("fp32[?]"), typed("fp32[3]")}), "fp32[?]");
  EXPECT_EQ(infer_text("Add", {typed("fp32[2]"), typed("fp32[3]")}),
            "shapes [2] and [3] do not broadcast: sizes 2 and 3 do not broadcast");
  EXPECT_EQ(infer_text("Add", {typed("fp32[2]"), typed("int64[2]")}),
            "input 'B': expected fp32 as input 'A' has, found int64");
}

TEST(Inference, CarriesShapeArithmetic) {
  EXPECT_EQ(infer_text("Add", {sized({"h", "w"}), known(int64s({1}))}),
            "int64[2] = [h + 1, w + 1]");
  EXPECT_EQ(infer_text("Mul", {sized({"h"}), sized({"w"})}), "int64[1] = [h*w]");
  EXPECT_EQ(infer_text("Div", {sized({"h", "4*w"}), known(int64s({2, 2}))}),
            "int64[2] = [floordiv(h, 2), 2*w]");
  EXPECT_EQ(infer_text("Div", {known(int64s({-7})), known(int64s({2}))}), "int64[1] = [-3]");
  EXPECT_EQ(infer_text("Div", {sized({"h - 5"}), known(int64s({2}))}), "int64[1]")
      << "the sign of h - 5 is open, and Div truncates";
  EXPECT_EQ(infer_text("Equal", {sized({"h", "h"}), sized({"h", "h + 1"})}), "bool[2] = [1, 0]");
  EXPECT_EQ(infer_text("Cast", {sized({"h"})}, {{"to", static_cast<std::int64_t>(DType::kInt32)}}),
            "int32[1] = [h]");
  EXPECT_EQ(infer_text("Where", {known(tensor<bool>({2}, {true, false})), sized({"h", "w"}),
                                 known(int64s({7}))}),
            "int64[2] = [h, 7]");
}

TEST(ScalarFunctions, AgreeWithTheKernels) {
  const Tensor x = floats({-2.5F, -0.5F, 0.25F, 3});
  for (const OpSchema& op : all_ops()) {
    const auto function = scalar_function(op, {});
    if (!function || arity(*function) != 1) continue;
    const auto results = run_reference(op, {}, std::vector<Tensor>{x}, 1);
    ASSERT_TRUE(results) << op.qualified_name();
    const auto result = values<float>(results->front());
    for (std::size_t i = 0; i < result.size(); ++i) {
      const float expected =
          apply(*function, x.span<float>().data() + i, scalar_params(*function, {}));
      EXPECT_TRUE(expected == result[i] || (std::isnan(expected) && std::isnan(result[i])))
          << op.name << ": " << expected << ", " << result[i];
    }
  }
}

TEST(ScalarFunctions, KnowWhatTheyAreNot) {
  EXPECT_EQ(
      scalar_function(testing::schema("Gelu"), testing::attributes({{"approximate", "tanh"}})),
      ScalarFunction::kGeluTanh);
  EXPECT_EQ(scalar_function(testing::schema("Mean"), {}), std::nullopt);
  EXPECT_EQ(scalar_function(testing::schema("Where"), {}), std::nullopt);
  EXPECT_EQ(scalar_function(testing::schema("Conv"), {}), std::nullopt);
}

}  // namespace
}  // namespace tessera::ops
