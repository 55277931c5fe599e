// Views and what asks for shapes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "testing/op_testing.h"

namespace tessera::ops {
namespace {

using testing::floats;
using testing::infer_text;
using testing::int64s;
using testing::Ints;
using testing::known;
using testing::op_error;
using testing::run_op;
using testing::sized;
using testing::tensor;
using testing::typed;
using testing::values;

Tensor zeros(Dims dims) {
  return *Tensor::zeros(DType::kFp32, std::move(dims));
}

TEST(Shape, GivesSizesAsValues) {
  EXPECT_EQ(values<std::int64_t>(run_op("Shape", {zeros({2, 3, 4})}, {{"start", -2}, {"end", 9}})),
            (std::vector<std::int64_t>{3, 4}));
  EXPECT_EQ(values<std::int64_t>(run_op("Size", {zeros({2, 3, 4})})),
            (std::vector<std::int64_t>{24}));
  EXPECT_EQ(infer_text("Shape", {typed("fp32[n, 3, 2*h]")}), "int64[3] = [n, 3, 2*h]");
  EXPECT_EQ(infer_text("Shape", {typed("fp32[n, 3, h]")}, {{"start", 2}, {"end", 1}}),
            "int64[0] = []");
  EXPECT_EQ(infer_text("Shape", {typed("fp32[?]")}), "int64[_0]");
  EXPECT_EQ(infer_text("Size", {typed("fp32[n, 3]")}), "int64[] = [3*n]");
}

TEST(Reshape, ReplacesZeroAndMinusOne) {
  EXPECT_EQ(run_op("Reshape", {zeros({2, 3, 4}), int64s({0, -1})}).dims(), (Dims{2, 12}));
  EXPECT_EQ(run_op("Reshape", {zeros({0, 3}), int64s({3, 0})}, {{"allowzero", 1}}).dims(),
            (Dims{3, 0}));
  EXPECT_EQ(op_error("Reshape", {zeros({2, 3, 4}), int64s({5, -1})}),
            "Reshape: 24 elements of [2, 3, 4] do not fit shape [5, -1]");
  EXPECT_EQ(op_error("Reshape", {zeros({2}), int64s({-1, -1})}),
            "Reshape: 2 elements of [2] do not fit shape [-1, -1]");
  EXPECT_EQ(op_error("Reshape", {zeros({2}), int64s({1, 0})}),
            "Reshape: 2 elements of [2] do not fit shape [1, 0]");
}

TEST(Reshape, RefusesAMinusOneBesideASizeOfZero) {
  EXPECT_EQ(op_error("Reshape", {zeros({0, 1, 1}), int64s({0, 1, -1})}, {{"allowzero", 1}}),
            "Reshape: 0 elements of [0, 1, 1] do not fit shape [0, 1, -1]");
  EXPECT_EQ(
      infer_text("Reshape", {typed("fp32[n, 3]"), known(int64s({0, -1}))}, {{"allowzero", 1}}),
      "input 'shape': expected no 0 beside a -1 where 'allowzero' is 1, found one");
}

// The kernel at size 0 and inference for every size say the same of -1.
TEST(Reshape, DimsThatStayCancelWhereTheyAreZero) {
  EXPECT_EQ(run_op("Reshape", {zeros({0, 3}), int64s({0, -1})}).dims(), (Dims{0, 3}));
  EXPECT_EQ(run_op("Reshape", {zeros({1, 0, 1}), int64s({0, 0, 0, -1})}).dims(),
            (Dims{1, 0, 1, 1}));
  EXPECT_EQ(run_op("Reshape", {zeros({0, 4}), int64s({-1, 4})}).dims(), (Dims{0, 4}));
  EXPECT_EQ(infer_text("Reshape", {typed("fp32[n, 3]"), known(int64s({0, -1}))}), "fp32[n, 3]");
  EXPECT_EQ(infer_text("Reshape", {typed("fp32[0, 3]"), known(int64s({0, -1}))}), "fp32[0, 3]");
  EXPECT_EQ(infer_text("Reshape", {typed("fp32[1, m, 1]"), known(int64s({0, 0, 0, -1}))}),
            "fp32[1, m, 1, 1]");
}

TEST(Reshape, InfersSymbolicSizes) {
  EXPECT_EQ(infer_text("Reshape", {typed("fp32[n, 3, h, w]"), known(int64s({0, 3, -1}))}),
            "fp32[n, 3, h*w]");
  EXPECT_EQ(infer_text("Reshape", {typed("fp32[n, 12]"), sized({"n", "-1", "4"})}),
            "fp32[n, 3, 4]");
  EXPECT_EQ(infer_text("Reshape", {typed("fp32[n]"), known(int64s({2, -1}))}),
            "fp32[2, floordiv(n, 2)]");
  EXPECT_EQ(infer_text("Reshape", {typed("fp32[n]"), typed("int64[2]")}), "fp32[_0, _1]");
  EXPECT_EQ(infer_text("Reshape", {typed("fp32[?]"), known(int64s({2, -1}))}), "fp32[2, _0]");
  EXPECT_EQ(infer_text("Reshape", {typed("fp32[6]"), known(int64s({4, -1}))}),
            "input 'shape': expected sizes whose product divides 6 elements, found 4");
  EXPECT_EQ(infer_text("Reshape", {typed("fp32[6]"), known(int64s({4, 2}))}),
            "input 'shape': expected a shape of 6 elements as [6] has, found [4, 2]");
  EXPECT_EQ(infer_text("Reshape", {typed("fp32[6]"), known(int64s({-1, -1}))}),
            "input 'shape': expected at most one -1, found two");
  EXPECT_EQ(infer_text("Reshape", {typed("fp32[6]"), known(int64s({-2}))}),
            "input 'shape': expected sizes of -1 or more, found -2");
  EXPECT_EQ(infer_text("Reshape", {typed("fp32[6]"), known(int64s({6, 0}))}),
            "input 'shape': a 0 at position 1 stands for a dim that [6] does not have");
  EXPECT_EQ(infer_text("Reshape", {sized({"n"}), known(int64s({1}))}), "int64[1] = [n]");
}

TEST(Reshape, ShapeOfVersion1BecomesAnInput) {
  testing::RecordingBuilder builder;
  UpgradeNode node{"Reshape",   testing::attributes({{"shape", Ints{0, -1}}}), {0}, 1, {true},
                   std::nullopt};
  ASSERT_TRUE(testing::upgrade(node, 1, builder));
  EXPECT_EQ(values<std::int64_t>(builder.constants[node.inputs.at(1)]),
            (std::vector<std::int64_t>{0, -1}));
}

TEST(Flatten, MultipliesBothSides) {
  EXPECT_EQ(run_op("Flatten", {zeros({2, 3, 4})}).dims(), (Dims{2, 12}));
  EXPECT_EQ(run_op("Flatten", {zeros({2, 3, 4})}, {{"axis", 0}}).dims(), (Dims{1, 24}));
  EXPECT_EQ(infer_text("Flatten", {typed("fp32[n, c, h]")}, {{"axis", -1}}), "fp32[c*n, h]");
  EXPECT_EQ(infer_text("Flatten", {typed("fp32[n]")}, {{"axis", 2}}),
            "attribute 'axis': expected a value from -1 to 1, found 2");
}

TEST(Squeeze, DropsOnes) {
  EXPECT_EQ(run_op("Squeeze", {zeros({1, 3, 1})}).dims(), (Dims{3}));
  EXPECT_EQ(run_op("Squeeze", {zeros({1, 3, 1}), int64s({-1})}).dims(), (Dims{1, 3}));
  EXPECT_EQ(op_error("Squeeze", {zeros({1, 3}), int64s({1})}),
            "Squeeze: expected axes of size 1, found axis 1 of [1, 3]");
  EXPECT_EQ(infer_text("Squeeze", {typed("fp32[1, n]"), known(int64s({0}))}), "fp32[n]");
  EXPECT_EQ(infer_text("Squeeze", {typed("fp32[1, n]")}), "fp32[?]") << "n may be 1";
  EXPECT_EQ(infer_text("Squeeze", {typed("fp32[2, n]"), known(int64s({0}))}),
            "input 'axes': expected axes of size 1, found axis 0 of size 2");
}

TEST(Unsqueeze, PutsOnesIn) {
  EXPECT_EQ(run_op("Unsqueeze", {zeros({2, 3}), int64s({-1, 0})}).dims(), (Dims{1, 2, 3, 1}));
  EXPECT_EQ(infer_text("Unsqueeze", {typed("fp32[n]"), known(int64s({1}))}), "fp32[n, 1]");
  EXPECT_EQ(infer_text("Unsqueeze", {typed("fp32[n]"), known(int64s({4}))}),
            "input 'axes': expected a value from -2 to 1, found 4");
  EXPECT_EQ(infer_text("Unsqueeze", {typed("fp32[n]"), known(int64s({1, 1}))}),
            "input 'axes': axis 1 stands twice");
}

}  // namespace
}  // namespace tessera::ops
