// Operators that move elements: values, sizes of symbolic shapes, errors on bad data.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "testing/op_testing.h"

namespace tessera::ops {
namespace {

using ::testing::ElementsAre;
using testing::floats;
using testing::infer_text;
using testing::int64s;
using testing::Ints;
using ::testing::IsNan;
using testing::known;
using testing::omitted;
using testing::op_error;
using testing::run_all;
using testing::run_op;
using testing::sized;
using testing::tensor;
using testing::typed;
using testing::values;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Tensor matrix() {
  return tensor<float>({2, 3}, {1, 2, 3, 4, 5, 6});
}

Tensor int4s(std::initializer_list<std::uint8_t> elements) {
  auto packed = Tensor::zeros(DType::kUInt4, {static_cast<std::int64_t>(elements.size())});
  std::int64_t i = 0;
  for (const std::uint8_t element : elements) packed_set(packed->mutable_data(), i++, 4, element);
  return *packed;
}

TEST(Transpose, Permutes) {
  EXPECT_EQ(values<float>(run_op("Transpose", {matrix()})), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  const Tensor cube = tensor<std::int8_t>({1, 2, 3}, {0, 1, 2, 3, 4, 5});
  const Tensor turned = run_op("Transpose", {cube}, {{"perm", Ints{2, 0, 1}}});
  EXPECT_EQ(turned.dims(), (Dims{3, 1, 2}));
  EXPECT_EQ(values<std::int8_t>(turned), (std::vector<std::int8_t>{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(infer_text("Transpose", {typed("fp32[n, c, h, w]")}, {{"perm", Ints{0, 2, 3, 1}}}),
            "fp32[n, h, w, c]");
  EXPECT_EQ(infer_text("Transpose", {typed("fp32[n, c]")}, {{"perm", Ints{0, 0}}}),
            "attribute 'perm': axis 0 stands twice");
  EXPECT_EQ(infer_text("Transpose", {typed("fp32[n, c]")}, {{"perm", Ints{0}}}),
            "attribute 'perm': expected 2 values, found 1");
}

TEST(Transpose, MovesPackedElements) {
  const Tensor packed = run_op("Reshape", {int4s({1, 2, 3, 4, 5, 6}), int64s({2, 3})});
  const Tensor turned = run_op("Transpose", {packed});
  EXPECT_THAT(to_int64_vector(turned.view()), ElementsAre(1, 4, 2, 5, 3, 6));
}

// Outputs in memory that others have used before, as a plan gives it.
class UsedMemory final : public KernelContext {
 public:
  using KernelContext::KernelContext;
  [[nodiscard]] std::size_t output_count() const override { return 1; }
  Result<MutableTensorView> output(std::size_t /*index*/, DType dtype, const Dims& dims) override {
    bytes_.assign(static_cast<std::size_t>(nbytes(dtype, dims)), 0xFF);
    return MutableTensorView{dtype, dims, bytes_.data()};
  }
  [[nodiscard]] const std::vector<std::uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<std::uint8_t> bytes_;
};

TEST(PackedElements, WhatNoneCoversIsZero) {
  const Tensor packed = int4s({1, 2, 3});
  const TensorView view = packed.view();
  const TensorView* inputs[] = {&view};
  const Attributes none;
  UsedMemory turned(none, inputs);
  ASSERT_TRUE(find_op("", "Transpose")->kernel(turned));
  EXPECT_EQ(turned.bytes(), (std::vector<std::uint8_t>{0x21, 0x03}));

  const Tensor shape = int64s({3});
  const TensorView shape_view = shape.view();
  const TensorView* shapes[] = {&shape_view};
  Attributes fill;
  fill.set("value", int4s({5}));
  UsedMemory filled(fill, shapes);
  ASSERT_TRUE(find_op("", "ConstantOfShape")->kernel(filled));
  EXPECT_EQ(filled.bytes(), (std::vector<std::uint8_t>{0x55, 0x05}));
}

TEST(Concat, JoinsAlongAnAxis) {
  const Tensor column = tensor<float>({2, 1}, {9, 8});
  EXPECT_EQ(values<float>(run_op("Concat", {matrix(), column}, {{"axis", -1}})),
            (std::vector<float>{1, 2, 3, 9, 4, 5, 6, 8}));
  EXPECT_EQ(op_error("Concat", {matrix(), floats({1})}, {{"axis", 1}}),
            "Concat: input 1: expected fp32 [2, 3] but for axis 1, found fp32 [1]");
  EXPECT_EQ(infer_text("Concat", {typed("fp32[n, 3]"), typed("fp32[2, k]")}, {{"axis", 1}}),
            "fp32[2, k + 3]");
  EXPECT_EQ(infer_text("Concat", {typed("fp32[4, 3]"), typed("fp32[2, 3]")}, {{"axis", 1}}),
            "input 'inputs[1]': dim 0: expected 4, found 2");
  EXPECT_EQ(infer_text("Concat", {sized({"n"}), known(int64s({-1}))}, {{"axis", 0}}),
            "int64[2] = [n, -1]");
}

TEST(Split, CutsIntoSizesOrEqualParts) {
  const auto parts = run_all("Split", {matrix(), int64s({1, 2})}, {{"axis", 1}}, 2);
  EXPECT_EQ(values<float>(parts[0]), (std::vector<float>{1, 4}));
  EXPECT_EQ(values<float>(parts[1]), (std::vector<float>{2, 3, 5, 6}));
  const auto uneven = run_all("Split", {floats({1, 2, 3, 4, 5})}, {{"num_outputs", 2}}, 2);
  EXPECT_EQ(values<float>(uneven[0]), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(values<float>(uneven[1]), (std::vector<float>{4, 5}));
  const auto four = run_all("Split", {floats({1, 2, 3, 4, 5})}, {{"num_outputs", 4}}, 4);
  EXPECT_EQ(four[0].dims(), (Dims{2}));
  EXPECT_EQ(four[2].dims(), (Dims{1}));
  EXPECT_EQ(four[3].dims(), (Dims{0}));
  EXPECT_EQ(op_error("Split", {matrix(), int64s({1, 1})}, {{"axis", 1}}, 2),
            "Split: expected 2 sizes whose sum is 3, found [1, 1]");
  EXPECT_EQ(infer_text("Split", {typed("fp32[2*n]"), omitted()}, {{"num_outputs", 2}}, 2),
            "fp32[n]; fp32[n]");
  EXPECT_EQ(infer_text("Split", {typed("fp32[6]"), known(int64s({2, 3}))}, {}, 2),
            "input 'split': expected sizes whose sum is 6, found 5");
  EXPECT_EQ(infer_text("Split", {typed("fp32[6]")}, {{"num_outputs", 3}}, 2),
            "attribute 'num_outputs': expected 2, the number of outputs, found 3");
}

TEST(Slice, FollowsNumpy) {
  const Tensor line = int64s({0, 1, 2, 3, 4, 5});
  const auto slice = [&](std::int64_t start, std::int64_t end, std::int64_t step) {
    return values<std::int64_t>(
        run_op("Slice", {line, int64s({start}), int64s({end}), int64s({0}), int64s({step})}));
  };
  EXPECT_THAT(slice(1, 4, 1), ElementsAre(1, 2, 3));
  EXPECT_THAT(slice(-3, INT64_MAX, 1), ElementsAre(3, 4, 5));
  EXPECT_THAT(slice(-1, INT64_MIN, -2), ElementsAre(5, 3, 1));
  EXPECT_THAT(slice(4, 1, -1), ElementsAre(4, 3, 2));
  EXPECT_THAT(slice(0, 6, INT64_MAX), ElementsAre(0));
  EXPECT_THAT(slice(4, 2, 1), ElementsAre());
  EXPECT_EQ(values<float>(run_op("Slice", {matrix(), int64s({1}), int64s({3}), int64s({-1})})),
            (std::vector<float>{2, 3, 5, 6}));
  EXPECT_EQ(op_error("Slice", {line, int64s({0}), int64s({1}), int64s({0}), int64s({0})}),
            "input 'steps': expected values other than 0, found 0");
  EXPECT_EQ(op_error("Slice", {line, int64s({0}), int64s({1}), int64s({3})}),
            "input 'axes': expected a value from -1 to 0, found 3");
  EXPECT_EQ(op_error("Slice", {matrix(), int64s({0, 0}), int64s({1, 1}), int64s({0, -2})}),
            "input 'axes': axis 0 stands twice");
}

TEST(Slice, TheSizeOfABackwardSliceHoldsAtEverySize) {
  for (const std::int64_t start :
       {INT64_MAX, std::int64_t{3}, std::int64_t{0}, std::int64_t{-1}, std::int64_t{-3}})
    for (const std::int64_t end : {INT64_MIN, std::int64_t{2}, std::int64_t{0}, std::int64_t{-2}})
      for (const std::int64_t step : {-1, -2, -3}) {
        const std::string text =
            infer_text("Slice", {typed("fp32[h]"), known(int64s({start})), known(int64s({end})),
                                 known(int64s({0})), known(int64s({step}))});
        const auto type = parse_value_type(text);
        ASSERT_TRUE(type) << text;
        for (std::int64_t h = 0; h < 7; ++h) {
          const Tensor line = *Tensor::zeros(DType::kFp32, {h});
          const Tensor found =
              run_op("Slice", {line, int64s({start}), int64s({end}), int64s({0}), int64s({step})});
          EXPECT_EQ(evaluate(*type->shape, {{"h", h}}).value(), found.dims())
              << text << " from " << start << " to " << end << " by " << step << " of " << h;
        }
      }
}

TEST(Slice, InfersSymbolicSizes) {
  const auto size = [](std::int64_t start, std::int64_t end, std::int64_t step) {
    return infer_text("Slice", {typed("fp32[h]"), known(int64s({start})), known(int64s({end})),
                                known(int64s({0})), known(int64s({step}))});
  };
  EXPECT_EQ(size(0, INT64_MAX, 1), "fp32[h]");
  EXPECT_EQ(size(0, INT32_MAX, 2), "fp32[floordiv(h + 1, 2)]");
  EXPECT_EQ(size(1, INT64_MAX, 1), "fp32[max(h - 1, 0)]");
  EXPECT_EQ(size(0, -1, 1), "fp32[max(h - 1, 0)]");
  EXPECT_EQ(size(-3, INT64_MAX, 1), "fp32[min(h, 3)]");
  EXPECT_EQ(size(-1, INT64_MIN, -1), "fp32[h]");
  EXPECT_EQ(infer_text("Slice", {typed("fp32[h + 4]"), known(int64s({0})), known(int64s({2}))}),
            "fp32[2]");
  EXPECT_EQ(infer_text("Slice", {typed("fp32[9]"), known(int64s({0})), sized({"n"})}),
            "fp32[min(n, 9)]");
  EXPECT_EQ(infer_text("Slice", {typed("fp32[9, 4]"), typed("int64[1]"), typed("int64[1]"),
                                 known(int64s({0}))}),
            "fp32[_0, 4]");
  EXPECT_EQ(
      infer_text("Slice", {sized({"n", "c", "h", "w"}), known(int64s({2})), known(int64s({4}))}),
      "int64[2] = [h, w]");
}

TEST(Slice, AttributesOfVersion1BecomeInputs) {
  testing::RecordingBuilder builder;
  UpgradeNode node{
      "Slice", testing::attributes({{"starts", Ints{1}}, {"ends", Ints{5}}, {"axes", Ints{2}}}),
      {0},     1,
      {true},  std::nullopt};
  ASSERT_TRUE(testing::upgrade(node, 1, builder));
  ASSERT_EQ(node.inputs.size(), 4U);
  EXPECT_EQ(values<std::int64_t>(builder.constants[node.inputs[2]]),
            (std::vector<std::int64_t>{5}));
  EXPECT_EQ(values<std::int64_t>(builder.constants[node.inputs[3]]),
            (std::vector<std::int64_t>{2}));
}

TEST(Slice, UpgradeRefusesAnAttributeOfAnotherType) {
  testing::RecordingBuilder builder;
  UpgradeNode node{"Slice", testing::attributes({{"starts", "one"}}), {0}, 1, {true}, std::nullopt};
  const Status status = testing::upgrade(node, 1, builder);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().to_string(), "attribute 'starts': expected ints, found \"one\"");
}

TEST(Pad, KnowsItsModes) {
  const Tensor line = floats({1, 2, 3});
  const auto pad = [&](const char* mode, std::int64_t before, std::int64_t after) {
    return values<float>(
        run_op("Pad",
               {line, int64s({before, after}),
                mode == std::string("constant") ? tensor<float>({}, {9}) : Tensor()},
               {{"mode", mode}}));
  };
  EXPECT_THAT(pad("constant", 1, 2), ElementsAre(9, 1, 2, 3, 9, 9));
  EXPECT_THAT(pad("reflect", 2, 1), ElementsAre(3, 2, 1, 2, 3, 2));
  EXPECT_THAT(pad("edge", 2, 1), ElementsAre(1, 1, 1, 2, 3, 3));
  EXPECT_THAT(pad("wrap", 2, 1), ElementsAre(2, 3, 1, 2, 3, 1));
  EXPECT_THAT(pad("constant", -1, 1), ElementsAre(2, 3, 9));
  EXPECT_THAT(pad("reflect", 5, 0), ElementsAre(2, 1, 2, 3, 2, 1, 2, 3));
  EXPECT_THAT(pad("wrap", 4, 0), ElementsAre(3, 1, 2, 3, 1, 2, 3));
  EXPECT_THAT(pad("reflect", -1, 2), ElementsAre(2, 3, 2, 1)) << "what is cut off is there yet";
  EXPECT_EQ(op_error("Pad", {line, int64s({-2, -2})}),
            "Pad: expected pads that leave axis 0 of size 3 a size of 0 or more, found -2 and -2");
  EXPECT_EQ(op_error("Pad", {line, int64s({1})}),
            "input 'pads': expected 2 values, two for each of 1 axes, found 1");
  EXPECT_EQ(infer_text("Pad", {typed("fp32[n]"), known(int64s({1, 1}))}, {{"mode", "mirror"}}),
            "attribute 'mode': expected 'constant', 'reflect', 'edge' or 'wrap', found 'mirror'");
}

TEST(Pad, SizesBeyondAllMemoryAreAnError) {
  const auto line = floats({1, 2, 3});
  // More than any machine has, and less; without elements the positions alone are too many.
  EXPECT_THAT(op_error("Pad", {line, int64s({std::int64_t{1} << 58, 0})}),
              ::testing::HasSubstr("out of memory: "));
  const Tensor none = tensor<float>({0, 1}, {});
  EXPECT_EQ(op_error("Pad", {none, int64s({0, std::int64_t{1} << 40, 0, 0})}),
            "Pad: expected at most 268435456 positions along all axes, found [0, 1099511627777]");
}

TEST(Pad, PadsChosenAxes) {
  const Tensor padded = run_op("Pad", {matrix(), int64s({1, 0}), {}, int64s({-1})});
  EXPECT_EQ(values<float>(padded), (std::vector<float>{0, 1, 2, 3, 0, 4, 5, 6}));
  EXPECT_EQ(
      infer_text("Pad", {typed("fp32[n, c]"), sized({"k", "1"}), omitted(), known(int64s({1}))}),
      "fp32[n, c + k + 1]");
  EXPECT_EQ(op_error("Pad", {matrix(), int64s({1, 1, 1, 1}), {}, int64s({1, -1})}),
            "input 'axes': axis 1 stands twice");
}

TEST(Repeat, ExpandsAndTiles) {
  EXPECT_EQ(values<float>(run_op("Expand", {tensor<float>({2, 1}, {1, 2}), int64s({2, 1, 2})})),
            (std::vector<float>{1, 1, 2, 2, 1, 1, 2, 2}));
  EXPECT_EQ(values<float>(run_op("Tile", {tensor<float>({1, 2}, {1, 2}), int64s({2, 2})})),
            (std::vector<float>{1, 2, 1, 2, 1, 2, 1, 2}));
  EXPECT_EQ(op_error("Expand", {floats({1, 2, 3}), int64s({2})}),
            "Expand: [3] cannot be expanded to [2]");
  EXPECT_EQ(op_error("Tile", {floats({1, 2, 3}), int64s({2, 2})}),
            "Tile: expected 1 repeats, one for each dim, found 2");
  EXPECT_EQ(op_error("Tile", {floats({1, 2, 3}), int64s({-1})}),
            "Tile: expected repeats of 0 or more, found -1");
  EXPECT_EQ(infer_text("Expand", {typed("fp32[n, 1]"), sized({"1", "1", "h"})}), "fp32[1, n, h]");
  EXPECT_EQ(infer_text("Expand", {typed("fp32[2]"), known(int64s({-1}))}),
            "input 'shape': expected sizes of 0 or more, found -1");
  EXPECT_EQ(infer_text("Tile", {typed("fp32[n, 3]"), known(int64s({2, 1}))}), "fp32[2*n, 3]");
}

TEST(Gather, TakesSlices) {
  EXPECT_EQ(values<float>(run_op("Gather", {matrix(), int64s({-1, 0})}, {{"axis", 1}})),
            (std::vector<float>{3, 1, 6, 4}));
  EXPECT_EQ(run_op("Gather", {matrix(), tensor<std::int64_t>({}, {1})}).dims(), (Dims{3}));
  EXPECT_EQ(op_error("Gather", {floats({1, 2, 3}), int64s({7})}),
            "Gather: index 7 is out of range for axis 0 of size 3");
  EXPECT_EQ(infer_text("Gather", {sized({"n", "c", "h"}), known(tensor<std::int64_t>({}, {-1}))}),
            "int64[] = [h]");
  EXPECT_EQ(infer_text("Gather", {typed("fp32[v, 64]"), typed("int64[b, s]")}), "fp32[b, s, 64]");
}

TEST(Gather, TakesElementsAndTuples) {
  const Tensor positions = tensor<std::int64_t>({2, 2}, {0, 2, -1, 0});
  EXPECT_EQ(values<float>(run_op("GatherElements", {matrix(), positions}, {{"axis", 1}})),
            (std::vector<float>{1, 3, 6, 4}));
  EXPECT_EQ(
      values<float>(run_op("GatherND", {matrix(), tensor<std::int64_t>({2, 2}, {0, 1, 1, -1})})),
      (std::vector<float>{2, 6}));
  EXPECT_EQ(values<float>(run_op("GatherND", {matrix(), tensor<std::int64_t>({2, 1}, {2, 0})},
                                 {{"batch_dims", 1}})),
            (std::vector<float>{3, 4}));
  EXPECT_EQ(op_error("GatherND", {matrix(), tensor<std::int64_t>({1, 2}, {0, 5})}),
            "GatherND: index 5 is out of range for axis 1 of size 3");
  EXPECT_EQ(op_error("GatherElements", {matrix(), tensor<std::int64_t>({3, 1}, {0, 0, 0})},
                     {{"axis", 1}}),
            "GatherElements: expected indices no larger than [2, 3] but for axis 1, found [3, 1]");
  EXPECT_EQ(infer_text("GatherND", {typed("fp32[a, b, c]"), typed("int64[k, 2]")}), "fp32[k, c]");
}

TEST(Scatter, WritesAndFolds) {
  const Tensor data = floats({1, 2, 3, 4});
  EXPECT_EQ(values<float>(run_op("ScatterElements", {data, int64s({-1, 0}), floats({9, 8})})),
            (std::vector<float>{8, 2, 3, 9}));
  EXPECT_EQ(values<float>(run_op("ScatterElements", {data, int64s({1, 1}), floats({9, 8})},
                                 {{"reduction", "add"}})),
            (std::vector<float>{1, 19, 3, 4}));
  const Tensor row = tensor<std::int64_t>({1, 1}, {1});
  EXPECT_EQ(values<float>(run_op("ScatterND", {matrix(), row, tensor<float>({1, 3}, {7, 0, 9})},
                                 {{"reduction", "max"}})),
            (std::vector<float>{1, 2, 3, 7, 5, 9}));
  EXPECT_EQ(op_error("ScatterND", {matrix(), tensor<std::int64_t>({1, 1}, {2}),
                                   tensor<float>({1, 3}, {1, 1, 1})}),
            "ScatterND: index 2 is out of range for axis 0 of size 2");
  EXPECT_EQ(op_error("ScatterND", {matrix(), row, floats({1})}),
            "ScatterND: indices [1, 1] and updates [1] do not fit data [2, 3]");
  EXPECT_EQ(op_error("ScatterElements", {data, int64s({0}), floats({1})}, {{"reduction", "avg"}}),
            "attribute 'reduction': expected 'none', 'add', 'mul', 'min' or 'max', found 'avg'");
}

TEST(Scatter, InTheOrderOfTheIndices) {
  EXPECT_THAT(
      values<float>(run_op("ScatterElements", {floats({1, 2}), int64s({1, 1}), floats({9, 8})})),
      ElementsAre(1, 8));
  EXPECT_THAT(
      values<float>(run_op("ScatterND",
                           {floats({1, 2}), tensor<std::int64_t>({2, 1}, {0, 0}), floats({5, 6})})),
      ElementsAre(6, 2));
  EXPECT_THAT(values<float>(run_op("ScatterElements", {floats({1, 2}), int64s({0}), floats({kNan})},
                                   {{"reduction", "max"}})),
              ElementsAre(IsNan(), 2));
  EXPECT_EQ(values<std::int8_t>(run_op(
                "ScatterElements",
                {tensor<std::int8_t>({1}, {127}), int64s({0}), tensor<std::int8_t>({1}, {1})},
                {{"reduction", "add"}})),
            (std::vector<std::int8_t>{-128}));
}

TEST(Rearrange, MovesBlocksBetweenDepthAndSpace) {
  const Tensor deep = tensor<float>({1, 8, 1, 1}, {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(values<float>(run_op("DepthToSpace", {deep}, {{"blocksize", 2}})),
            (std::vector<float>{0, 2, 4, 6, 1, 3, 5, 7}));
  EXPECT_EQ(values<float>(run_op("DepthToSpace", {deep}, {{"blocksize", 2}, {"mode", "CRD"}})),
            (std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7}));
  const Tensor wide = run_op("DepthToSpace", {deep}, {{"blocksize", 2}});
  EXPECT_TRUE(run_op("SpaceToDepth", {wide}, {{"blocksize", 2}}).equals(deep));
  const Tensor deeper = run_op("Concat", {deep, deep}, {{"axis", 1}});
  const Tensor columns = run_op("DepthToSpace", {deeper}, {{"blocksize", 2}, {"mode", "CRD"}});
  EXPECT_TRUE(
      run_op("SpaceToDepth", {columns}, {{"blocksize", 2}, {"mode", "CRD"}}).equals(deeper));
  EXPECT_EQ(
      infer_text("SpaceToDepth", {typed("fp32[1, 1, 2, 2]")}, {{"blocksize", 2}, {"mode", "RCD"}}),
      "attribute 'mode': expected 'DCR' or 'CRD', found 'RCD'");
  EXPECT_EQ(infer_text("DepthToSpace", {typed("fp32[n, 12, h, w]")}, {{"blocksize", 2}}),
            "fp32[n, 3, 2*h, 2*w]");
  EXPECT_EQ(infer_text("DepthToSpace", {typed("fp32[n, 6, h, w]")}, {{"blocksize", 2}}),
            "input 'input': expected a channel count that 4 divides, found 6");
}

TEST(Rearrange, ReversesSequencesAndCutsTriangles) {
  const Tensor steps = tensor<float>({3, 2}, {0, 1, 2, 3, 4, 5});
  EXPECT_EQ(values<float>(run_op("ReverseSequence", {steps, int64s({3, 2})})),
            (std::vector<float>{4, 3, 2, 1, 0, 5}));
  EXPECT_EQ(op_error("ReverseSequence", {steps, int64s({4, 1})}),
            "ReverseSequence: expected lengths from 0 to 3, found 4");
  const Tensor square = tensor<std::int64_t>({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(values<std::int64_t>(run_op("Trilu", {square})),
            (std::vector<std::int64_t>{1, 2, 0, 4}));
  EXPECT_EQ(values<std::int64_t>(
                run_op("Trilu", {square, tensor<std::int64_t>({}, {-1})}, {{"upper", 0}})),
            (std::vector<std::int64_t>{0, 0, 3, 0}));
}

TEST(Generate, MakesTensors) {
  EXPECT_EQ(
      values<std::int64_t>(run_op("ConstantOfShape", {int64s({2})}, {{"value", int64s({7})}})),
      (std::vector<std::int64_t>{7, 7}));
  EXPECT_EQ(values<float>(run_op("ConstantOfShape", {int64s({1})})), (std::vector<float>{0}));
  EXPECT_EQ(values<std::int64_t>(
                run_op("Range", {tensor<std::int64_t>({}, {10}), tensor<std::int64_t>({}, {4}),
                                 tensor<std::int64_t>({}, {-3})})),
            (std::vector<std::int64_t>{10, 7}));
  EXPECT_EQ(values<float>(run_op("Range", {tensor<float>({}, {1}), tensor<float>({}, {2}),
                                           tensor<float>({}, {0.5F})})),
            (std::vector<float>{1, 1.5F}));
  EXPECT_EQ(
      op_error("Range", {tensor<float>({}, {1}), tensor<float>({}, {2}), tensor<float>({}, {0})}),
      "Range: input 'delta': expected a number other than 0, found 0");
  EXPECT_EQ(values<float>(run_op("EyeLike", {matrix()}, {{"k", 1}})),
            (std::vector<float>{0, 1, 0, 0, 0, 1}));
  const Tensor hot =
      run_op("OneHot", {int64s({1, -1, 5}), tensor<std::int64_t>({}, {3}), floats({0, 1})});
  EXPECT_EQ(values<float>(hot), (std::vector<float>{0, 1, 0, 0, 0, 1, 0, 0, 0}));
}

TEST(Generate, TakesNanAndRefusesWhatHasNoSize) {
  const auto scalar = [](float x) { return tensor<float>({}, {x}); };
  EXPECT_EQ(op_error("Range", {scalar(0), scalar(kNan), scalar(1)}),
            "Range: expected a number of elements that fits 64 bits, found nan");
  const Tensor two = tensor<std::int64_t>({}, {2});
  EXPECT_THAT(values<float>(run_op("OneHot", {floats({kNan}), two, floats({0, 1})})),
              ElementsAre(1, 0));
  EXPECT_EQ(op_error("OneHot", {int64s({0}), tensor<std::int64_t>({}, {-1}), floats({0, 1})}),
            "OneHot: expected a depth of 0 or more, found -1");
}

TEST(Generate, InfersSizes) {
  EXPECT_EQ(infer_text("ConstantOfShape", {sized({"n", "3"})}), "fp32[n, 3]");
  EXPECT_EQ(infer_text("ConstantOfShape", {known(int64s({2}))}, {{"value", int64s({5})}}),
            "int64[2] = [5, 5]");
  EXPECT_EQ(infer_text("ConstantOfShape", {known(int64s({-2}))}),
            "input 'input': expected sizes of 0 or more, found -2");
  const ops::InferInput zero = known(tensor<std::int64_t>({}, {0}));
  const ops::InferInput one = known(tensor<std::int64_t>({}, {1}));
  ops::InferInput limit = sized({"n"});
  limit.value->scalar = true;
  limit.type.shape = Shape{};
  EXPECT_EQ(infer_text("Range", {zero, limit, one}), "int64[n]");
  EXPECT_EQ(infer_text("Constant", {}, {{"value_ints", Ints{1, 2}}}), "int64[2] = [1, 2]");
  EXPECT_EQ(infer_text("Constant", {}),
            "expected exactly one of the attributes 'value', 'value_int', ..., found 0");
}

TEST(Select, ChoosesByValue) {
  const Tensor found = run_op("NonZero", {tensor<float>({2, 2}, {1, 0, 0, 2})});
  EXPECT_EQ(found.dims(), (Dims{2, 2}));
  EXPECT_EQ(values<std::int64_t>(found), (std::vector<std::int64_t>{0, 1, 0, 1}));
  EXPECT_EQ(values<float>(
                run_op("Compress", {matrix(), tensor<bool>({2}, {false, true})}, {{"axis", 0}})),
            (std::vector<float>{4, 5, 6}));
  EXPECT_EQ(values<float>(run_op("Compress", {matrix(), tensor<bool>({3}, {false, true, true})})),
            (std::vector<float>{2, 3}));
  EXPECT_EQ(op_error("Compress", {floats({1}), tensor<bool>({2}, {true, true})}),
            "Compress: expected at most 1 conditions for axis 0, found 2");
}

TEST(Select, TopKOrdersTiesByPosition) {
  const auto top = run_all("TopK", {floats({1, 3, 3, 2}), int64s({3})}, {}, 2);
  EXPECT_EQ(values<float>(top[0]), (std::vector<float>{3, 3, 2}));
  EXPECT_EQ(values<std::int64_t>(top[1]), (std::vector<std::int64_t>{1, 2, 3}));
  const auto least = run_all("TopK", {matrix(), int64s({1})}, {{"axis", 0}, {"largest", 0}}, 2);
  EXPECT_EQ(values<float>(least[0]), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(op_error("TopK", {floats({1}), int64s({2})}, {}, 2),
            "TopK: input 'K': expected one value from 0 to 1, found 2");
  EXPECT_EQ(infer_text("TopK", {typed("fp32[n, 9]"), known(int64s({5}))}, {}, 2),
            "fp32[n, 5]; int64[n, 5]");
}

TEST(Select, UniqueKeepsOrder) {
  const auto sorted = run_all("Unique", {floats({2, 1, 1, 3, 2})}, {}, 4);
  EXPECT_EQ(values<float>(sorted[0]), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(values<std::int64_t>(sorted[1]), (std::vector<std::int64_t>{1, 0, 3}));
  EXPECT_EQ(values<std::int64_t>(sorted[2]), (std::vector<std::int64_t>{1, 0, 0, 2, 1}));
  EXPECT_EQ(values<std::int64_t>(sorted[3]), (std::vector<std::int64_t>{2, 2, 1}));
  EXPECT_EQ(values<float>(run_op("Unique", {floats({2, 1, 1, 3, 2})}, {{"sorted", 0}})),
            (std::vector<float>{2, 1, 3}));
}

TEST(Select, NanIsNotZeroAndOneElement) {
  EXPECT_EQ(run_op("NonZero", {floats({kNan, 0})}).dims(), (Dims{1, 1}));
  EXPECT_THAT(values<std::int64_t>(run_op("NonZero", {tensor<std::string>({2}, {"", "a"})})),
              ElementsAre(1));
  const auto unique = run_all("Unique", {floats({kNan, 1, kNan})}, {}, 4);
  EXPECT_THAT(values<float>(unique[0]), ElementsAre(1, IsNan()));
  EXPECT_THAT(values<std::int64_t>(unique[3]), ElementsAre(1, 2));
}

TEST(Range, SaysWhichDtypeItComputesIn) {
  EXPECT_EQ(infer_text("Range", {typed("fp16[]"), typed("fp16[]"), typed("fp16[]")},
                       {{"stash_type", 10}}),
            "attribute 'stash_type': expected 1 (fp32), found 10");
}

TEST(CenterCropPad, CropsAndPadsAroundTheCentre) {
  const Tensor x = tensor<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(values<float>(run_op("CenterCropPad", {x, int64s({3, 2})})),
            (std::vector<float>{1, 2, 4, 5, 0, 0}));
  EXPECT_EQ(values<float>(run_op("CenterCropPad", {x, int64s({6})}, {{"axes", Ints{-1}}})),
            (std::vector<float>{0, 1, 2, 3, 0, 0, 0, 4, 5, 6, 0, 0}));
  EXPECT_EQ(infer_text("CenterCropPad", {typed("fp32[n, 3, w]"), sized({"h", "4"})},
                       {{"axes", Ints{0, 2}}}),
            "fp32[h, 3, 4]");
  EXPECT_EQ(infer_text("CenterCropPad", {typed("fp32[n, 3]"), known(int64s({1}))}),
            "input 'shape': expected 2 sizes, one for each axis, found 1");
  EXPECT_EQ(op_error("CenterCropPad", {x, int64s({1})}),
            "CenterCropPad: expected 2 sizes, one for each axis, found 1");
  EXPECT_EQ(op_error("CenterCropPad", {x, int64s({1, 1})}, {{"axes", Ints{0, -2}}}),
            "attribute 'axes': axis 0 stands twice");
  EXPECT_NE(op_error("CenterCropPad", {x, int64s({-1, 1})}), "no error");
}

TEST(TensorScatter, WritesIntoTheCache) {
  const Tensor cache = tensor<float>({2, 3, 1}, {1, 2, 3, 4, 5, 6});
  const Tensor update = tensor<float>({2, 2, 1}, {10, 20, 30, 40});
  EXPECT_EQ(values<float>(run_op("TensorScatter", {cache, update})),
            (std::vector<float>{10, 20, 3, 30, 40, 6}));
  EXPECT_EQ(values<float>(
                run_op("TensorScatter", {cache, update, int64s({1, 2})}, {{"mode", "circular"}})),
            (std::vector<float>{1, 10, 20, 40, 5, 30}));
  EXPECT_EQ(infer_text("TensorScatter", {typed("fp16[b, s, 4]"), typed("fp16[b, t, 4]")}),
            "fp16[b, s, 4]");
}

TEST(TensorScatter, SaysWhatDoesNotFit) {
  const Tensor cache = tensor<float>({2, 3, 1}, {1, 2, 3, 4, 5, 6});
  const Tensor update = tensor<float>({2, 2, 1}, {10, 20, 30, 40});
  EXPECT_EQ(op_error("TensorScatter", {cache, update, int64s({1, 2})}),
            "TensorScatter: expected write indices from 0 to 1, found 2");
  EXPECT_EQ(op_error("TensorScatter", {cache, update, int64s({-1, 0})}, {{"mode", "circular"}}),
            "TensorScatter: expected write indices from 0 to 1, found -1");
  EXPECT_EQ(
      op_error("TensorScatter", {update, cache}),
      "TensorScatter: expected an update that fits into [2, 2, 1] along axis 1, found [2, 3, 1]");
  EXPECT_EQ(op_error("TensorScatter", {cache, update, int64s({1})}),
            "TensorScatter: expected one write index for each of 2 samples, found 1");
  EXPECT_EQ(
      op_error("TensorScatter", {cache, matrix()}),
      "TensorScatter: expected an update that fits into [2, 3, 1] along axis 1, found [2, 3]");
  EXPECT_EQ(
      infer_text("TensorScatter", {typed("fp32[2, 3]"), typed("fp32[2, 3]")}, {{"mode", "ring"}}),
      "attribute 'mode': expected 'linear' or 'circular', found 'ring'");
  EXPECT_EQ(infer_text("TensorScatter", {typed("fp32[2, 3]"), typed("fp32[2, 3]")}),
            "attribute 'axis': expected an axis other than that of the batch, found 0");
}

// The numbers of numpy.random.seed(3).
TEST(Random, DrawsWhatNumPyDraws) {
  const auto uniform = values<float>(
      run_op("RandomUniform", {}, {{"shape", Ints{3}}, {"seed", 3.0F}, {"high", 2.0F}}));
  EXPECT_NEAR(uniform[0], 2 * 0.550797903F, 1e-6F);
  EXPECT_NEAR(uniform[2], 2 * 0.290904739F, 1e-6F);
  const auto normal = run_op("RandomNormalLike", {matrix()}, {{"dtype", 11}, {"seed", 3.0F}});
  EXPECT_EQ(normal.dims(), (Dims{2, 3}));
  EXPECT_NEAR(values<double>(normal)[0], 1.788628473, 1e-8);
  EXPECT_NEAR(values<double>(normal)[1], 0.436509851, 1e-8);
}

TEST(Random, SeedsDecideAndNoneDoesNot) {
  const auto draw = [](const testing::AttributeList& attributes) {
    return values<float>(run_op("RandomUniformLike", {matrix()}, attributes));
  };
  EXPECT_EQ(draw({{"seed", 0.5F}}), draw({{"seed", 0.5F}}));
  EXPECT_NE(draw({{"seed", 0.5F}}), draw({{"seed", 0.25F}}));
  EXPECT_NE(draw({}), draw({}));
  EXPECT_FALSE(testing::schema("RandomUniformLike").deterministic);
}

TEST(Random, BernoulliAndMultinomial) {
  EXPECT_EQ(values<bool>(run_op("Bernoulli", {floats({0, 1, 0})}, {{"dtype", 9}})),
            (std::vector<bool>{false, true, false}));
  const Tensor drawn = run_op("Multinomial", {tensor<float>({2, 3}, {-50, 0, -50, 0, -50, -50})},
                              {{"sample_size", 4}, {"dtype", 7}});
  EXPECT_EQ(values<std::int64_t>(drawn), (std::vector<std::int64_t>{1, 1, 1, 1, 0, 0, 0, 0}));
  EXPECT_EQ(infer_text("Multinomial", {typed("fp32[n, 3]")}, {{"sample_size", 5}}), "int32[n, 5]");
  EXPECT_EQ(infer_text("Multinomial", {typed("fp32[n, 3]")}, {{"sample_size", -1}}),
            "attribute 'sample_size': expected 0 or more, found -1");
  EXPECT_EQ(op_error("Multinomial", {tensor<float>({2, 0}, {})}),
            "Multinomial: expected [batch, classes], found [2, 0]");
  EXPECT_EQ(infer_text("RandomUniform", {}, {{"shape", Ints{2}}, {"dtype", 7}}),
            "attribute 'dtype': expected the number of a dtype that the operator gives, found 7");
}

TEST(CumSum, RunsBothWays) {
  const Tensor axis = tensor<std::int64_t>({}, {1});
  EXPECT_EQ(values<float>(run_op("CumSum", {matrix(), axis})),
            (std::vector<float>{1, 3, 6, 4, 9, 15}));
  EXPECT_EQ(values<float>(run_op("CumSum", {matrix(), axis}, {{"reverse", 1}, {"exclusive", 1}})),
            (std::vector<float>{5, 3, 0, 11, 6, 0}));
  EXPECT_EQ(op_error("CumSum", {matrix(), tensor<std::int64_t>({}, {2})}),
            "CumSum: input 'axis': expected a value from -2 to 1, found 2");
  EXPECT_EQ(values<float>(run_op("CumProd", {matrix(), axis})),
            (std::vector<float>{1, 2, 6, 4, 20, 120}));
  EXPECT_EQ(values<float>(run_op("CumProd", {matrix(), axis}, {{"reverse", 1}, {"exclusive", 1}})),
            (std::vector<float>{6, 3, 1, 30, 6, 1}));
  EXPECT_EQ(op_error("CumProd", {matrix(), int64s({1, 1})}),
            "CumProd: input 'axis': expected a scalar, found [2]");
  const Tensor first = tensor<std::int64_t>({}, {0});
  EXPECT_EQ(values<std::int8_t>(run_op("CumSum", {tensor<std::int8_t>({2}, {100, 100}), first})),
            (std::vector<std::int8_t>{100, -56}));
  EXPECT_EQ(values<float>(run_op("CumSum", {floats({1e8F, 1, -1e8F}), first})),
            (std::vector<float>{1e8F, 1e8F, 1}))
      << "folded in fp64";
}

}  // namespace
}  // namespace tessera::ops
