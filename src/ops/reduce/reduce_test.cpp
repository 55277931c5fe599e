// Reductions: values, axes, empty ones, inference.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "testing/op_testing.h"

namespace tessera::ops {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using testing::floats;
using testing::infer_text;
using testing::int64s;
using testing::Ints;
using ::testing::IsNan;
using testing::known;
using testing::op_error;
using ::testing::Pointwise;
using testing::run_op;
using testing::sized;
using testing::tensor;
using testing::typed;
using testing::values;

constexpr float kInf = std::numeric_limits<float>::infinity();

Tensor cube() {
  return tensor<float>({2, 3, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
}

TEST(Reduce, FoldsChosenAxes) {
  EXPECT_EQ(values<float>(run_op("ReduceSum", {cube(), int64s({1})}, {{"keepdims", 0}})),
            (std::vector<float>{6, 9, 24, 27}));
  EXPECT_EQ(values<float>(run_op("ReduceSum", {cube(), int64s({0, -1})})),
            (std::vector<float>{14, 22, 30}));
  EXPECT_EQ(run_op("ReduceSum", {cube(), int64s({0, -1})}).dims(), (Dims{1, 3, 1}));
  EXPECT_EQ(values<float>(run_op("ReduceMean", {cube()})), (std::vector<float>{5.5F}));
  EXPECT_EQ(values<float>(run_op("ReduceMax", {cube(), int64s({2})}, {{"keepdims", 0}})),
            (std::vector<float>{1, 3, 5, 7, 9, 11}));
  EXPECT_EQ(op_error("ReduceSum", {cube(), int64s({3})}),
            "input 'axes': expected a value from -3 to 2, found 3");
}

TEST(Reduce, KnowsEveryFold) {
  const Tensor x = floats({-3, 4});
  const auto one = [&](const char* name) { return values<float>(run_op(name, {x})).at(0); };
  EXPECT_FLOAT_EQ(one("ReduceProd"), -12);
  EXPECT_FLOAT_EQ(one("ReduceMin"), -3);
  EXPECT_FLOAT_EQ(one("ReduceL1"), 7);
  EXPECT_FLOAT_EQ(one("ReduceL2"), 5);
  EXPECT_FLOAT_EQ(one("ReduceSumSquare"), 25);
  EXPECT_FLOAT_EQ(one("ReduceLogSum"), 0);
  EXPECT_FLOAT_EQ(one("ReduceLogSumExp"), std::log(std::exp(-3.0F) + std::exp(4.0F)));
  EXPECT_FLOAT_EQ(values<float>(run_op("ReduceLogSumExp", {floats({1000, 1000})})).at(0),
                  1000 + std::log(2.0F));
}

TEST(Reduce, NoopStillDoesWhatIsNoReduction) {
  EXPECT_EQ(
      values<float>(run_op("ReduceSumSquare", {floats({2, 3})}, {{"noop_with_empty_axes", 1}})),
      (std::vector<float>{4, 9}));
  EXPECT_EQ(infer_text("ReduceSum", {typed("fp32[n, 3]"), known(int64s({}))},
                       {{"noop_with_empty_axes", 1}}),
            "fp32[n, 3]");
}

TEST(Reduce, EmptyOnesGiveTheirNeutralElement) {
  const Tensor empty = tensor<float>({2, 0}, {});
  const auto fold = [&](const char* name) {
    return values<float>(run_op(name, {empty, int64s({1})}));
  };
  EXPECT_THAT(fold("ReduceSum"), ElementsAre(0, 0));
  EXPECT_THAT(fold("ReduceProd"), ElementsAre(1, 1));
  EXPECT_THAT(fold("ReduceMax"), ElementsAre(-kInf, -kInf));
  EXPECT_THAT(fold("ReduceMin"), ElementsAre(kInf, kInf));
  EXPECT_THAT(fold("ReduceLogSumExp"), ElementsAre(-kInf, -kInf));
  EXPECT_THAT(fold("ReduceMean"), ElementsAre(IsNan(), IsNan()));
}

TEST(Reduce, IntegersStayExact) {
  const std::int64_t big = (std::int64_t{1} << 53) + 1;
  EXPECT_EQ(values<std::int64_t>(run_op("ReduceSum", {int64s({big, 1})})),
            (std::vector<std::int64_t>{big + 1}));
  EXPECT_EQ(values<std::int64_t>(run_op("ReduceMean", {int64s({-7, 0})})),
            (std::vector<std::int64_t>{-3}));
  EXPECT_EQ(values<std::int8_t>(run_op("ReduceMax", {tensor<std::int8_t>({3}, {-5, -2, -9})})),
            (std::vector<std::int8_t>{-2}));
  EXPECT_EQ(values<bool>(run_op("ReduceMin", {tensor<bool>({2}, {true, false})})),
            (std::vector<bool>{false}));
}

TEST(Reduce, IntegersWrapAround) {
  const auto of_bytes = [](const char* op, std::vector<std::int8_t> x) {
    const auto size = static_cast<std::int64_t>(x.size());
    return int{
        values<std::int8_t>(run_op(op, {Tensor::of<std::int8_t>(DType::kInt8, {size}, x)}))[0]};
  };
  EXPECT_EQ(of_bytes("ReduceSum", {100, 100}), -56);
  EXPECT_EQ(of_bytes("ReduceProd", {16, 9}), -112);
  EXPECT_EQ(of_bytes("ReduceSumSquare", {12}), -112);
  EXPECT_EQ(of_bytes("ReduceL1", {-128}), -128);
  EXPECT_EQ(of_bytes("ReduceMean", {100, 100}), 100);
  EXPECT_EQ(of_bytes("ReduceL2", {100, 100}), 127) << "a root is saturated";
  EXPECT_EQ(of_bytes("ReduceLogSum", {0}), -128) << "and a logarithm";
  const auto lowest = std::numeric_limits<std::int64_t>::min();
  const auto of_wide = [](const char* op, const Tensor& x) {
    return values<std::int64_t>(run_op(op, {x}))[0];
  };
  EXPECT_EQ(of_wide("ReduceSum", int64s({lowest, -1})), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(of_wide("ReduceL1", int64s({lowest})), lowest);
  EXPECT_EQ(of_wide("ReduceSumSquare", int64s({lowest})), 0);
  EXPECT_EQ(of_wide("ReduceProd", int64s({lowest, -1})), lowest);
}

TEST(Reduce, KeepsNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(values<float>(run_op("ReduceMax", {floats({1, nan, 2})})), ElementsAre(IsNan()));
}

TEST(Reduce, InfersShapesAndValues) {
  EXPECT_EQ(infer_text("ReduceMean", {typed("fp32[n, c, h, w]"), known(int64s({2, 3}))}),
            "fp32[n, c, 1, 1]");
  EXPECT_EQ(infer_text("ReduceMean", {typed("fp32[n, c]"), typed("int64[1]")}, {{"keepdims", 0}}),
            "fp32[?]");
  EXPECT_EQ(infer_text("ReduceMean", {typed("fp32[n, c]"), typed("int64[1]")}), "fp32[_0, _1]");
  EXPECT_EQ(
      infer_text("ReduceProd", {sized({"n", "3", "h"}), known(int64s({0}))}, {{"keepdims", 0}}),
      "int64[] = [3*h*n]");
}

TEST(Reduce, AxesOfOldVersionsBecomeAnInput) {
  testing::RecordingBuilder builder;
  UpgradeNode node{"ReduceMean", testing::attributes({{"axes", Ints{1}}, {"keepdims", 0}}),
                   {0},          1,
                   {true},       std::nullopt};
  ASSERT_TRUE(testing::upgrade(node, 13, builder));
  EXPECT_EQ(values<std::int64_t>(builder.constants[node.inputs.at(1)]),
            (std::vector<std::int64_t>{1}));
  EXPECT_EQ(node.attributes.to_string(), "keepdims=0");
}

TEST(ArgReduce, FindsPositions) {
  const Tensor x = tensor<float>({2, 3}, {1, 5, 5, 4, 0, 0});
  EXPECT_EQ(values<std::int64_t>(run_op("ArgMax", {x}, {{"axis", 1}})),
            (std::vector<std::int64_t>{1, 0}));
  EXPECT_EQ(values<std::int64_t>(
                run_op("ArgMax", {x}, {{"axis", -1}, {"select_last_index", 1}, {"keepdims", 0}})),
            (std::vector<std::int64_t>{2, 0}));
  EXPECT_EQ(values<std::int64_t>(run_op("ArgMin", {x})), (std::vector<std::int64_t>{0, 1, 1}));
  EXPECT_EQ(infer_text("ArgMax", {typed("fp32[n, c]")}, {{"axis", 1}, {"keepdims", 0}}),
            "int64[n]");
  EXPECT_EQ(op_error("ArgMax", {tensor<float>({1, 0}, {})}, {{"axis", 1}}),
            "ArgMax and ArgMin: axis 1 of [1, 0] has no elements");
}

}  // namespace
}  // namespace tessera::ops
