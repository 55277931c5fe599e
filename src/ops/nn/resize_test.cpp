// Resize: values by hand, sizes with symbols, old versions and Upsample, errors.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/nn/nn_test_util.h"

namespace tessera::ops::nn::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;

Tensor scales(const std::vector<float>& values) {
  return floats({static_cast<std::int64_t>(values.size())}, values);
}
Tensor sizes(const std::vector<std::int64_t>& values) {
  return ints({static_cast<std::int64_t>(values.size())}, values);
}

std::vector<float> resized(const Attributes& attrs, const Tensor& x, const Tensor& scale,
                           const Tensor& size = {}) {
  return to_vector(run_op("Resize", attrs, {x, Tensor(), scale, size}).value()[0]);
}

Attributes mode(std::string name, std::string coordinates) {
  return attributes(
      {{"mode", std::move(name)}, {"coordinate_transformation_mode", std::move(coordinates)}});
}

TEST(Resize, RepeatsTheNearest) {
  Attributes attrs = mode("nearest", "asymmetric");
  attrs.set("nearest_mode", std::string("floor"));
  const auto y =
      run_op("Resize", attrs, {floats({1, 1, 2, 2}, {1, 2, 3, 4}), Tensor(), scales({1, 1, 2, 2})})
          .value();
  EXPECT_EQ(y[0].dims(), (Dims{1, 1, 4, 4}));
  EXPECT_THAT(to_vector(y[0]), ElementsAre(1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4));
}

TEST(Resize, NearestModesDifferAtTies) {
  const Tensor x = floats({4}, {0, 1, 2, 3});
  const auto with = [&](std::string nearest) {
    Attributes attrs = mode("nearest", "half_pixel");
    attrs.set("nearest_mode", std::move(nearest));
    return resized(attrs, x, scales({0.5F}));  // source positions 0.5 and 2.5
  };
  EXPECT_THAT(with("round_prefer_floor"), ElementsAre(0, 2));
  EXPECT_THAT(with("round_prefer_ceil"), ElementsAre(1, 3));
  EXPECT_THAT(with("floor"), ElementsAre(0, 2));
  EXPECT_THAT(with("ceil"), ElementsAre(1, 3));
}

TEST(Resize, InterpolatesInEachCoordinateMode) {
  const Tensor x = floats({2}, {0, 1});
  EXPECT_THAT(resized(mode("linear", "half_pixel"), x, scales({2})),
              ElementsAre(0, 0.25F, 0.75F, 1));
  EXPECT_THAT(resized(mode("linear", "asymmetric"), x, scales({2})), ElementsAre(0, 0.5F, 1, 1));
  EXPECT_THAT(resized(mode("linear", "align_corners"), x, Tensor(), sizes({3})),
              ElementsAre(0, 0.5F, 1));
  EXPECT_THAT(resized(mode("linear", "pytorch_half_pixel"), x, Tensor(), sizes({1})),
              ElementsAre(0));
  EXPECT_THAT(resized(mode("linear", "half_pixel"), x, Tensor(), sizes({1})), ElementsAre(0.5F));
}

TEST(Resize, CutsIntegersAndRefusesAnAxisTwice) {
  const Tensor x = Tensor::of<std::uint8_t>(DType::kUInt8, {2}, std::vector<std::uint8_t>{0, 255});
  const auto y =
      run_op("Resize", mode("linear", "align_corners"), {x, Tensor(), Tensor(), sizes({3})})
          .value();
  EXPECT_THAT(y[0].span<std::uint8_t>(), ElementsAre(0, 127, 255));
  Attributes twice = mode("linear", "half_pixel");
  twice.set("axes", std::vector<std::int64_t>{0, 0});
  EXPECT_THAT(error_text(run_op("Resize", twice, {floats({2}, {0, 1}), Tensor(), scales({2, 2})})),
              ::testing::HasSubstr("axis 0 stands twice"));
}

TEST(Resize, CutsARegionAndFillsWhatLiesOutside) {
  Attributes attrs = mode("linear", "tf_crop_and_resize");
  attrs.set("extrapolation_value", 9.0F);
  const auto y = run_op("Resize", attrs,
                        {floats({3}, {0, 1, 2}), floats({2}, {0.5F, 1.5F}), Tensor(), sizes({3})})
                     .value();
  EXPECT_THAT(to_vector(y[0]), ElementsAre(1, 2, 9));
}

TEST(Resize, CubicReproducesLinesAwayFromTheEdge) {
  const Tensor x = floats({8}, {0, 1, 2, 3, 4, 5, 6, 7});
  Attributes attrs = mode("cubic", "half_pixel");
  attrs.set("cubic_coeff_a", -0.5F);  // the only value for which the kernel does
  const auto y = resized(attrs, x, scales({2}));
  for (std::size_t i = 4; i < 12; ++i)
    EXPECT_NEAR(y[i], (static_cast<double>(i) + 0.5) / 2 - 0.5, 1e-5);
}

TEST(Resize, AntialiasingAveragesWhatShrinks) {
  Attributes attrs = mode("linear", "half_pixel");
  attrs.set("antialias", std::int64_t{1});
  // Weights 1/8, 3/8, 3/8, 1/8 around 0.5 and 2.5; the edge element stands for what lies beyond.
  EXPECT_THAT(resized(attrs, floats({4}, {0, 8, 16, 24}), scales({0.5F})),
              ElementsAre(FloatNear(5, 1e-5F), FloatNear(19, 1e-5F)));
}

TEST(Resize, KeepsTheAspectRatio) {
  const Tensor x = floats({2, 4}, {0, 1, 2, 3, 4, 5, 6, 7});
  Attributes attrs = attributes({{"keep_aspect_ratio_policy", std::string("not_larger")}});
  EXPECT_EQ(run_op("Resize", attrs, {x, Tensor(), Tensor(), sizes({6, 8})}).value()[0].dims(),
            (Dims{4, 8}));
  attrs.set("keep_aspect_ratio_policy", std::string("not_smaller"));
  EXPECT_EQ(run_op("Resize", attrs, {x, Tensor(), Tensor(), sizes({6, 8})}).value()[0].dims(),
            (Dims{6, 12}));
}

TEST(Resize, ResizesNamedAxesOnly) {
  const Attributes attrs = attributes({{"axes", std::vector<std::int64_t>{-1}}});
  EXPECT_EQ(run_op("Resize", attrs, {floats({2, 2}, {1, 2, 3, 4}), Tensor(), Tensor(), sizes({4})})
                .value()[0]
                .dims(),
            (Dims{2, 4}));
}

TEST(ResizeInference, ScalesSymbolsByBinaryFractions) {
  const auto with = [](std::vector<float> values) {
    return infer_text("Resize", {}, {"fp32[n, 3, h, w]", "", "fp32[4]"}, {{2, scales(values)}});
  };
  EXPECT_EQ(with({1, 1, 2, 2}), "fp32[n, 3, 2*h, 2*w]");
  EXPECT_EQ(with({1, 1, 0.5F, 1.5F}), "fp32[n, 3, floordiv(h, 2), w + floordiv(w, 2)]");
  EXPECT_EQ(with({1, 1, 0.3F, 1}), "fp32[n, 3, resize0, w]");
  EXPECT_EQ(infer_text("Resize", {}, {"fp32[n, 3, h, w]", "", "", "int64[4]"},
                       {{3, sizes({1, 3, 10, 20})}}),
            "fp32[1, 3, 10, 20]");
  EXPECT_EQ(
      infer_text("Resize", {}, {"fp32[1, 3, 5, 5]", "", "fp32[4]"}, {{2, scales({1, 1, 0.7F, 1})}}),
      "fp32[1, 3, 3, 5]");
}

TEST(ResizeInference, AnEmptyTensorIsAnOmittedInput) {
  EXPECT_EQ(
      infer_text("Resize", {}, {"fp32[2]", "fp32[0]", "fp32[0]", "int64[1]"}, {{3, sizes({4})}}),
      "fp32[4]");
}

TEST(ResizeUpgrade, Version10TakesThePositionBelow) {
  const auto y = run_old("Resize", 10, {}, {floats({2}, {1, 2}), scales({2})}).value();
  EXPECT_THAT(to_vector(y.outputs[0]), ElementsAre(1, 1, 2, 2));
  const auto shrunk =
      run_old("Resize", 10, {}, {floats({4}, {1, 2, 3, 4}), scales({0.6F})}).value();
  EXPECT_THAT(to_vector(shrunk.outputs[0]),
              ElementsAre(1, 3));  // the standard's own example rounds up
}

TEST(ResizeUpgrade, UpsampleBecomesResize) {
  const Tensor x = floats({1, 1, 1, 2}, {1, 2});
  const auto first = run_old("Upsample", 1,
                             attributes({{"height_scale", 1.0F},
                                         {"width_scale", 2.0F},
                                         {"mode", std::string("bilinear")}}),
                             {x})
                         .value();
  EXPECT_EQ(first.node.op_type, "Resize");
  EXPECT_THAT(to_vector(first.outputs[0]), ElementsAre(1, 1.5F, 2, 2));
  const auto seventh =
      run_old("Upsample", 7, attributes({{"scales", std::vector<float>{1, 1, 1, 2}}}), {x}).value();
  EXPECT_THAT(to_vector(seventh.outputs[0]), ElementsAre(1, 1, 2, 2));
  const auto ninth = run_old("Upsample", 9, {}, {x, scales({1, 1, 2, 1})}).value();
  EXPECT_THAT(to_vector(ninth.outputs[0]), ElementsAre(1, 2, 1, 2));
  EXPECT_EQ(error_text(run_old("Upsample", 9, {}, {x})), "Upsample: expected scales, found none");
}

TEST(ResizeErrors, NameTheAttribute) {
  const auto with = [](std::string name, std::string value) {
    return infer_text("Resize", attributes({{std::move(name), std::move(value)}}),
                      {"fp32[2]", "", "fp32[1]"}, {{2, scales({2})}});
  };
  EXPECT_EQ(with("mode", "area"), "Resize: mode: expected nearest, linear or cubic, found 'area'");
  EXPECT_EQ(with("nearest_mode", "x"),
            "Resize: nearest_mode: expected round_prefer_floor, round_prefer_ceil, floor or ceil, "
            "found 'x'");
  EXPECT_EQ(
      with("keep_aspect_ratio_policy", "x"),
      "Resize: keep_aspect_ratio_policy: expected stretch, not_larger or not_smaller, found 'x'");
  EXPECT_EQ(with("coordinate_transformation_mode", "x"),
            "Resize: coordinate_transformation_mode: expected half_pixel, half_pixel_symmetric, "
            "pytorch_half_pixel, align_corners, asymmetric, "
            "tf_half_pixel_for_nn or tf_crop_and_resize, found 'x'");
}

TEST(ResizeErrors, NameTheInput) {
  EXPECT_EQ(infer_text("Resize", {}, {"fp32[2]"}),
            "Resize: expected either scales or sizes, found none");
  EXPECT_EQ(infer_text("Resize", {}, {"fp32[2]", "", "fp32[1]", "int64[1]"}),
            "Resize: expected either scales or sizes, found both");
  EXPECT_EQ(infer_text("Resize", {}, {"fp32[2]", "", "fp32[2]"}, {{2, scales({2, 2})}}),
            "Resize: input 'scales': expected 1 elements, found 2");
  EXPECT_EQ(infer_text("Resize", {}, {"fp32[2]", "", "fp32[1]"}, {{2, scales({-1})}}),
            "Resize: scales[0]: expected more than 0, found -1");
  EXPECT_EQ(infer_text("Resize", {}, {"fp32[h]", "", "", "int64[2]"}, {{3, sizes({1, 2})}}),
            "Resize: input 'sizes': expected 1 elements, found 2");
  EXPECT_EQ(infer_text("Resize", {}, {"fp32[2]", "", "", "int64[1]"}, {{3, sizes({-1})}}),
            "Resize: sizes[0]: expected at least 0, found -1");
  EXPECT_EQ(infer_text("Resize", {}, {"fp32[0]", "", "", "int64[1]"}, {{3, sizes({2})}}),
            "Resize: axis 0: expected at least 1 element to resize to 2, found 0");
}

}  // namespace
}  // namespace tessera::ops::nn::testing
