// Operators that read between elements, or put windows together again: AffineGrid, Col2Im,
// DeformConv, GridSample, MaxRoiPool, MaxUnpool, RoiAlign; and Det.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "testing/op_testing.h"

namespace tessera::ops {
namespace {

using testing::floats;
using testing::infer_text;
using testing::int64s;
using testing::Ints;
using testing::known;
using testing::near;
using testing::op_error;
using testing::run_op;
using testing::tensor;
using testing::typed;
using testing::values;

Tensor ramp(Dims dims, float first = 0) {
  std::vector<float> elements(static_cast<std::size_t>(numel(dims)));
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = first + static_cast<float>(i);
  return Tensor::of<float>(DType::kFp32, std::move(dims), elements);
}

TEST(AffineGrid, MapsPlacesBetweenEdgesOrCentres) {
  const Tensor theta = tensor<float>({1, 2, 3}, {1, 0.5F, 0.1F, 0, 2, -0.3F});
  const Tensor size = int64s({1, 1, 2, 2});
  const Tensor grid = run_op("AffineGrid", {theta, size});
  EXPECT_EQ(grid.dims(), (Dims{1, 2, 2, 2}));
  EXPECT_THAT(values<float>(grid), near({-0.65F, -1.3F, 0.35F, -1.3F, -0.15F, 0.7F, 0.85F, 0.7F}));
  EXPECT_THAT(values<float>(run_op("AffineGrid", {theta, size}, {{"align_corners", 1}})),
              near({-1.4F, -2.3F, 0.6F, -2.3F, -0.4F, 1.7F, 1.6F, 1.7F}));
  EXPECT_EQ(infer_text("AffineGrid", {typed("fp32[n, 2, 3]"), known(int64s({4, 3, 5, 6}))}),
            "fp32[n, 5, 6, 2]");
  EXPECT_EQ(infer_text("AffineGrid", {typed("fp32[n, 2, 3]"), known(int64s({4, 3, 5}))}),
            "input 'size': expected 4 sizes beside 2 rows, found 3");
  EXPECT_EQ(op_error("AffineGrid", {ramp({1, 4, 5}), size}),
            "AffineGrid: input 'theta': expected 2 or 3 rows, found 4");
  EXPECT_EQ(
      op_error("AffineGrid", {theta, int64s({2, 1, 2, 2})}),
      "AffineGrid: expected theta of 2 rows and 3 columns beside sizes of a batch of 1, found "
      "[1, 2, 3] beside 4 sizes");
}

TEST(AffineGrid, OneElementAloneLiesInTheMiddle) {
  const Tensor theta = tensor<float>({1, 2, 3}, {1, 0, 0, 0, 1, 0});
  EXPECT_THAT(
      values<float>(run_op("AffineGrid", {theta, int64s({1, 1, 1, 1})}, {{"align_corners", 1}})),
      near({0, 0}));
}

TEST(GridSample, EveryModeInsideAndOutside) {
  const Tensor image = ramp({1, 1, 3, 3});
  const Tensor grid = tensor<float>({1, 2, 2, 2}, {-1, -1, 0.3F, 0.2F, 1.4F, -0.6F, 0.9F, 2.5F});
  const auto sampled = [&](const char* mode, const char* outside) {
    return values<float>(
        run_op("GridSample", {image, grid},
               {{"mode", std::string(mode)}, {"padding_mode", std::string(outside)}}));
  };
  EXPECT_THAT(sampled("linear", "zeros"), near({0, 5.35F, 0, 0}));
  EXPECT_THAT(sampled("linear", "border"), near({0, 5.35F, 2.3F, 8}));
  EXPECT_THAT(sampled("linear", "reflection"), near({0, 5.35F, 2.2F, 2.75F}));
  EXPECT_THAT(sampled("nearest", "zeros"), near({0, 4, 0, 0}));
  EXPECT_THAT(sampled("nearest", "border"), near({0, 4, 2, 8}));
  EXPECT_THAT(sampled("nearest", "reflection"), near({0, 4, 2, 2}));
  EXPECT_THAT(sampled("cubic", "zeros"), near({-0.1875F, 6.616975F, -0.1425954F, 0}));
  EXPECT_THAT(sampled("cubic", "border"), near({-0.375F, 5.713652F, 2.225749F, 8.110909F}));
  EXPECT_THAT(sampled("cubic", "reflection"), near({-0.75F, 5.713652F, 2.150499F, 2.744844F}));
  EXPECT_THAT(values<float>(run_op("GridSample", {image, grid}, {{"align_corners", 1}})),
              near({0, 4.9F, 1.92F, 0}));
}

TEST(GridSample, APlaceThatIsNoneLiesBeforeTheFirstBorder) {
  const Tensor grid = tensor<float>({1, 1, 2, 2}, {NAN, 0, INFINITY, 0});
  const auto sampled = [&](const char* outside) {
    return values<float>(
        run_op("GridSample", {ramp({1, 1, 3, 3}, 1), grid}, {{"padding_mode", outside}}));
  };
  EXPECT_THAT(sampled("zeros"), near({0, 0}));
  EXPECT_THAT(sampled("border"), near({4, 4}));
}

TEST(GridSample, InfersAndSaysWhatDoesNotFit) {
  EXPECT_EQ(infer_text("GridSample", {typed("fp32[n, c, h, w]"), typed("fp32[n, p, q, 2]")}),
            "fp32[n, c, p, q]");
  EXPECT_EQ(infer_text("GridSample", {typed("fp32[n, c, h, w]"), typed("fp32[n, p, q, 2]")},
                       {{"mode", "bilinear"}}),
            "attribute 'mode': expected 'linear', 'nearest' or 'cubic', found 'bilinear'");
  EXPECT_EQ(infer_text("GridSample", {typed("fp32[n, c, h, w]"), typed("fp32[n, p, q, 2]")},
                       {{"padding_mode", "wrap"}}),
            "attribute 'padding_mode': expected 'zeros', 'border' or 'reflection', found 'wrap'");
  EXPECT_EQ(
      op_error("GridSample", {ramp({1, 1, 3, 3}), ramp({1, 2, 2, 3})}),
      "GridSample: expected a grid of [batch, sizes, axes] for X of [batch, channels, sizes], "
      "found [1, 2, 2, 3] for [1, 1, 3, 3]");
  EXPECT_EQ(op_error("GridSample", {ramp({1, 1, 0, 3}), ramp({1, 2, 2, 2})}),
            "GridSample: expected an image of one element or more");
  ops::UpgradeNode node;
  node.op_type = "GridSample";
  node.attributes.set("mode", std::string("bicubic"));
  testing::RecordingBuilder builder;
  ASSERT_TRUE(testing::upgrade(node, 16, builder));
  EXPECT_EQ(node.attributes.get_string("mode", ""), "cubic");
}

TEST(MaxRoiPool, TakesTheLargestOfEachBin) {
  const Tensor image = ramp({1, 1, 4, 4});
  const auto pooled = [&](const std::vector<float>& roi, float scale = 1) {
    return values<float>(run_op("MaxRoiPool", {image, Tensor::of<float>(DType::kFp32, {1, 5}, roi)},
                                {{"pooled_shape", Ints{2, 2}}, {"spatial_scale", scale}}));
  };
  // Three rows in bins of 1.5: rows 0 and 1, rows 1 and 2.
  EXPECT_THAT(pooled({0, 0, 0, 3, 2}), near({5, 7, 9, 11}));
  EXPECT_THAT(pooled({0, 0, 0, 6, 4}, 0.5F), near({5, 7, 9, 11}));
  // What lies outside of the image has no pixels.
  EXPECT_THAT(pooled({0, 3, 3, 4, 4}), near({15, 0, 0, 0}));
  EXPECT_THAT(pooled({0, -9, -9, -8, -8}), near({0, 0, 0, 0}));
  // A region has one pixel at least; both bins are in it.
  EXPECT_THAT(pooled({0, 2, 1, 0, 0}), near({6, 6, 6, 6}));
  EXPECT_EQ(infer_text("MaxRoiPool", {typed("fp32[n, c, h, w]"), typed("fp32[r, 5]")},
                       {{"pooled_shape", Ints{7, 3}}}),
            "fp32[r, c, 7, 3]");
}

TEST(MaxRoiPool, SaysWhatDoesNotFit) {
  const auto inferred = [](Ints pooled, const char* rois) {
    return infer_text("MaxRoiPool", {typed("fp32[n, c, h, w]"), typed(rois)},
                      {{"pooled_shape", std::move(pooled)}});
  };
  EXPECT_EQ(inferred({7}, "fp32[r, 5]"),
            "attribute 'pooled_shape': expected height and width, found 1 values");
  EXPECT_EQ(inferred({7, 0}, "fp32[r, 5]"),
            "attribute 'pooled_shape': expected 1 or more, found 0");
  EXPECT_EQ(inferred({7, 7}, "fp32[r, 4]"),
            "MaxRoiPool: size 1 of rois: expected 5 (image and two corners), found 4");
  EXPECT_EQ(op_error("MaxRoiPool", {ramp({1, 1, 4, 4}), tensor<float>({1, 5}, {1, 0, 0, 1, 1})},
                     {{"pooled_shape", Ints{1, 1}}}),
            "MaxRoiPool: rois[0, 0]: expected an image from 0 to 0, found 1");
  EXPECT_EQ(
      op_error("MaxRoiPool", {ramp({1, 1, 4, 4}), ramp({1, 4})}, {{"pooled_shape", Ints{1, 1}}}),
      "MaxRoiPool: expected X of rank 4 and rois of 5 columns, found [1, 1, 4, 4] and [1, 4]");
}

TEST(RoiAlign, PoolsByMeanOrLargest) {
  const Tensor image = ramp({1, 1, 4, 4});
  const Tensor rois = tensor<float>({1, 4}, {0, 0, 3, 2});
  EXPECT_THAT(
      values<float>(run_op("RoiAlign", {image, rois, int64s({0})},
                           {{"output_height", 2}, {"output_width", 2}, {"sampling_ratio", 2}})),
      near({0.8125F, 2.25F, 4.3125F, 5.75F}));
  EXPECT_THAT(values<float>(run_op("RoiAlign", {image, rois, int64s({0})},
                                   {{"output_width", 2},
                                    {"mode", "max"},
                                    {"coordinate_transformation_mode", "output_half_pixel"}})),
              near({3.9375F, 4.375F}));
  EXPECT_EQ(
      infer_text("RoiAlign", {typed("fp32[n, c, h, w]"), typed("fp32[r, 4]"), typed("int64[r]")},
                 {{"output_height", 7}}),
      "fp32[r, c, 7, 1]");
}

TEST(RoiAlign, WhatHasNoPixelsIsZero) {
  const Tensor rois = tensor<float>({2, 4}, {10, 10, 12, 12, 1, 1, 1, 1});
  EXPECT_THAT(values<float>(run_op("RoiAlign", {ramp({1, 1, 4, 4}, 1), rois, int64s({0, 0})})),
              near({0, 0}));
}

TEST(RoiAlign, SaysWhatDoesNotFit) {
  const auto inferred = [](const testing::AttributeList& attributes) {
    return infer_text("RoiAlign",
                      {typed("fp32[n, c, h, w]"), typed("fp32[r, 4]"), typed("int64[r]")},
                      attributes);
  };
  EXPECT_EQ(inferred({{"mode", "min"}}), "attribute 'mode': expected 'avg' or 'max', found 'min'");
  EXPECT_EQ(inferred({{"output_height", 0}}), "attribute 'output_height': expected 1 or more");
  EXPECT_EQ(inferred({{"output_width", 0}}), "attribute 'output_width': expected 1 or more");
  EXPECT_EQ(inferred({{"sampling_ratio", -1}}),
            "attribute 'sampling_ratio': expected a number from 0 to 4096, found -1");
  EXPECT_EQ(inferred({{"coordinate_transformation_mode", "pixel"}}),
            "attribute 'coordinate_transformation_mode': expected 'half_pixel' or "
            "'output_half_pixel', found 'pixel'");
  EXPECT_EQ(op_error("RoiAlign", {ramp({1, 1, 4, 4}), ramp({1, 4}), int64s({1})}),
            "RoiAlign: batch_indices: expected numbers from 0 to 0, found 1");
  EXPECT_EQ(op_error("RoiAlign", {ramp({1, 1, 4, 4}), ramp({1, 4}), int64s({0, 0})}),
            "RoiAlign: expected X of rank 4 and rois of 2x4, found [1, 1, 4, 4] and [1, 4]");
}

TEST(Col2Im, AddsUpBlocks) {
  EXPECT_THAT(values<float>(run_op("Col2Im", {ramp({1, 4, 4}, 1), int64s({3, 3}), int64s({2, 2})})),
              near({1, 7, 6, 12, 34, 22, 11, 27, 16}));
  EXPECT_EQ(
      infer_text("Col2Im", {typed("fp32[n, 12, l]"), known(int64s({5, 6})), known(int64s({2, 2}))}),
      "fp32[n, 3, 5, 6]");
  EXPECT_EQ(op_error("Col2Im", {ramp({1, 4, 3}), int64s({3, 3}), int64s({2, 2})}),
            "Col2Im: expected [batch, channels * 4, 4], found [1, 4, 3]");
  EXPECT_EQ(op_error("Col2Im", {ramp({1, 4, 4}), int64s({3, 3}), int64s({2, 0})}),
            "Col2Im: input 'block_shape': expected sizes of 1 or more, found 0");
  EXPECT_EQ(
      infer_text("Col2Im", {typed("fp32[1, 4, 4]"), known(int64s({3, 3})), known(int64s({2, 0}))}),
      "input 'block_shape': expected sizes of 1 or more, found 0");
}

TEST(Col2Im, SaturatesIntegers) {
  const Tensor blocks =
      Tensor::of<std::int8_t>(DType::kInt8, {1, 4, 4}, std::vector<std::int8_t>(16, 100));
  EXPECT_EQ(values<std::int8_t>(run_op("Col2Im", {blocks, int64s({3, 3}), int64s({2, 2})})),
            (std::vector<std::int8_t>{100, 127, 100, 127, 127, 127, 100, 127, 100}));
}

TEST(MaxUnpool, PutsElementsBack) {
  const Tensor x = tensor<float>({1, 1, 2, 2}, {5, 6, 7, 8});
  const Tensor indices = tensor<std::int64_t>({1, 1, 2, 2}, {0, 3, 8, 15});
  const testing::AttributeList halves = {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}};
  EXPECT_THAT(values<float>(run_op("MaxUnpool", {x, indices}, halves)),
              near({5, 0, 0, 6, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 8}));
  const Tensor twice = tensor<std::int64_t>({1, 1, 2, 2}, {0, 0, 8, 15});
  EXPECT_EQ(values<float>(run_op("MaxUnpool", {x, twice}, halves))[0], 6);
  const Tensor larger = run_op("MaxUnpool", {x, indices, int64s({1, 1, 5, 5})}, halves);
  EXPECT_EQ(larger.dims(), (Dims{1, 1, 5, 5}));
  EXPECT_EQ(values<float>(larger)[10], 7);
  EXPECT_EQ(
      infer_text("MaxUnpool", {typed("fp32[n, c, h, 4]"), typed("int64[n, c, h, 4]")}, halves),
      "fp32[n, c, 2*h, 8]");
  EXPECT_EQ(op_error("MaxUnpool", {x, tensor<std::int64_t>({1, 1, 2, 2}, {0, 3, 8, 16})}, halves),
            "MaxUnpool: expected indices from 0 to 15, found 16");
  EXPECT_EQ(op_error("MaxUnpool", {x, indices, int64s({1, 0, 3, 5})}, halves),
            "MaxUnpool: expected an output shape of [1, 1, 3, 4] or more, found [1, 0, 3, 5]");
  EXPECT_EQ(op_error("MaxUnpool", {x, indices, int64s({1, 1, -3, 5})}, halves),
            "MaxUnpool: expected an output shape of [1, 1, 0, 4] or more, found [1, 1, -3, 5]");
  EXPECT_EQ(op_error("MaxUnpool", {x, indices, int64s({1, 4, 4})}, halves),
            "MaxUnpool: expected an output shape of [1, 1, 4, 4] or more, found [1, 4, 4]");
  EXPECT_EQ(op_error("MaxUnpool", {x, int64s({0})}, halves),
            "MaxUnpool: expected indices as X of rank 3 or more, found [1] and [1, 1, 2, 2]");
}

// Windows of 3 in steps of 2 with pads of 1 pool 5 and 6 elements to 3, whose indices count in
// those.
TEST(MaxUnpool, AnOutputShapeStandsInThePlaceOfPads) {
  const Tensor x = tensor<float>({1, 1, 3}, {5, 6, 7});
  const Tensor indices = tensor<std::int64_t>({1, 1, 3}, {0, 2, 4});
  const testing::AttributeList padded = {
      {"kernel_shape", Ints{3}}, {"strides", Ints{2}}, {"pads", Ints{1, 1}}};
  const auto sized_as = [&](std::int64_t size, const Tensor& at) {
    return values<float>(run_op("MaxUnpool", {x, at, int64s({1, 1, size})}, padded));
  };
  EXPECT_EQ(values<float>(run_op("MaxUnpool", {x, indices}, padded)),
            (std::vector<float>{5, 0, 6, 0, 7}));
  EXPECT_EQ(sized_as(5, indices), (std::vector<float>{5, 0, 6, 0, 7}));
  EXPECT_EQ(sized_as(6, tensor<std::int64_t>({1, 1, 3}, {0, 2, 5})),
            (std::vector<float>{5, 0, 6, 0, 0, 7}));
  EXPECT_EQ(sized_as(8, tensor<std::int64_t>({1, 1, 3}, {0, 2, 6})),
            (std::vector<float>{5, 0, 6, 0, 0, 0, 7, 0}));
}

TEST(DeformConv, ReadsBetweenPixels) {
  const Tensor x = ramp({1, 1, 3, 3});
  const Tensor w = ramp({1, 1, 2, 2}, 1);
  std::vector<float> moved(32, 0.0F);
  moved[0] = 0.5F;   // the first tap of the first position, down
  moved[7] = 0.25F;  // and of the last one, to the right
  const Tensor offset = Tensor::of<float>(DType::kFp32, {1, 8, 2, 2}, moved);
  EXPECT_THAT(values<float>(run_op("DeformConv", {x, w, offset})), near({28.5F, 37, 57, 67.25F}));
  const Tensor mask = Tensor::of<float>(DType::kFp32, {1, 4, 2, 2}, std::vector<float>(16, 0.5F));
  EXPECT_THAT(values<float>(run_op("DeformConv", {x, w, offset, floats({10}), mask})),
              near({24.25F, 28.5F, 38.5F, 43.625F}));
  EXPECT_EQ(infer_text("DeformConv", {typed("fp32[n, 3, 8, 9]"), typed("fp32[4, 3, 3, 3]"),
                                      typed("fp32[n, 18, 6, 7]")}),
            "fp32[n, 4, 6, 7]");
}

TEST(DeformConv, SaysWhatDoesNotFit) {
  const Tensor x = ramp({1, 1, 3, 3});
  const Tensor w = ramp({1, 1, 2, 2});
  EXPECT_EQ(op_error("DeformConv", {x, w, ramp({1, 4, 2, 2})}),
            "DeformConv: input 'offset': expected [1, 8, 2, 2], found [1, 4, 2, 2]");
  EXPECT_EQ(op_error("DeformConv", {x, w, ramp({1, 8, 2, 2})}, {{"group", 2}}),
            "DeformConv: group: expected a divisor of 1 and 1 channels, found 2");
  EXPECT_EQ(op_error("DeformConv", {x, w, ramp({1, 8, 2, 2})}, {{"offset_group", 0}}),
            "DeformConv: offset_group: expected a divisor of 1 channels, found 0");
  EXPECT_EQ(op_error("DeformConv", {ramp({1, 3}), w, ramp({1, 8, 2, 2})}),
            "DeformConv: expected X and W of one rank of 3 or more, found [1, 3] and [1, 1, 2, 2]");
}

TEST(Det, EliminatesWithPivots) {
  EXPECT_THAT(values<float>(run_op("Det", {tensor<float>({2, 2, 2}, {0, 2, 3, 4, 1, 2, 2, 4})})),
              near({-6, 0}));
  EXPECT_EQ(infer_text("Det", {typed("fp32[n, 3, 3]")}), "fp32[n]");
  EXPECT_EQ(op_error("Det", {ramp({2, 3})}), "Det: expected square matrices, found [2, 3]");
}

}  // namespace
}  // namespace tessera::ops
