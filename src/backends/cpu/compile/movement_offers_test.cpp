#include <gtest/gtest.h>

#include "backends/cpu/compile/kernel_check.h"
#include "backends/cpu/run/kernels.h"

namespace tessera::backends::cpu {
namespace {

using Ints = std::vector<std::int64_t>;

Tensor ints(const Ints& values) {
  return Tensor::of<std::int64_t>(DType::kInt64, {static_cast<std::int64_t>(values.size())},
                                  values);
}

TEST(View, ReshapeFlattenSqueezeIdentity) {
  Bench reshape;
  reshape.output(reshape.op("Reshape", {reshape.input("x", {Dim::symbol("n"), 6, 4}),
                                        reshape.constant("s", ints({0, -1}))}));
  EXPECT_EQ(reshape.check({{"n", 2}}, {{{"n", 2}}, {{"n", 5}}}, 0), 1U);
  Bench flatten;
  flatten.output(flatten.op("Flatten", {flatten.input("x", {Dim::symbol("n"), 32, 1, 1})}));
  EXPECT_EQ(flatten.check({{"n", 1}}, {{{"n", 1}}, {{"n", 3}}}, 0),
            3U);  // blocked and channels-last are the same bytes
  Bench identity;
  identity.output(identity.op("Identity", {identity.input("x", {2, 5, 3, 3})}));
  EXPECT_EQ(identity.check(0), 3U);
}

TEST(Concat, EveryAxisAndLayout) {
  for (const std::int64_t axis : {0, 1, 2, -1}) {
    SCOPED_TRACE(axis);
    Bench bench;
    Shape a = {2, 16, 5, 6};
    Shape b = a;
    b[static_cast<std::size_t>(axis < 0 ? axis + 4 : axis)] = axis == 1 ? 20 : 3;
    bench.output(bench.op("Concat", {bench.input("a", a), bench.input("b", b)},
                          attributes({{"axis", axis}})));
    EXPECT_EQ(bench.check(0), 3U);
  }
}

TEST(Concat, OddChannelsAreNotBlocked) {
  Bench bench;
  bench.output(bench.op("Concat",
                        {bench.input("a", {1, 5, 30, 30}), bench.input("b", {1, 7, 30, 30}),
                         bench.random_constant("c", {1, 2, 30, 30})},
                        attributes({{"axis", std::int64_t{1}}})));
  EXPECT_EQ(bench.check(0), 1U);
}

// What the sizes of the run say may not be what the plan took for granted.
TEST(Concat, PartsThatDoNotFitAreAnError) {
  artefact::KernelSpec spec;
  spec.kernel = "cpu.concat";
  spec.inputs = {{DType::kUInt8, {}, {1, 4}}, {DType::kUInt8, {}, {Dim::symbol("n"), 5}}};
  spec.outputs = {{DType::kUInt8, {}, {1, 9}}};
  spec.steps = {{"", "Concat", attributes({{"axis", std::int64_t{1}}}), {0, 1}, 1}};
  const auto kernel = load_concat(spec, {});
  ASSERT_TRUE(kernel) << kernel.error().to_string();
  const auto error = [&](const Dims& second, const Dims& whole) {
    const auto instance = (*kernel)->instantiate({{{1, 4}, second}, {whole}}, 1);
    return instance ? std::string() : instance.error().to_string();
  };
  EXPECT_EQ(error({1, 5}, {1, 9}), "");
  EXPECT_EQ(error({2, 5}, {1, 9}), "cpu.concat: expected a part of 1x9 along axis 1, found 2x5");
  EXPECT_EQ(error({1, 5}, {1, 8}),
            "cpu.concat: expected parts that add up to 8 along axis 1, found 9");
}

TEST(Split, EqualAndUnequalParts) {
  Bench bench;
  const auto parts =
      bench.node("Split", {bench.input("x", {2, 48, 3, 5}), bench.constant("s", ints({16, 32}))},
                 attributes({{"axis", std::int64_t{1}}}), 2);
  bench.output(parts[0]);
  bench.output(parts[1]);
  EXPECT_EQ(bench.check(0), 3U);
}

// Between row-major and channels-last, what a Transpose does is a matter of the layouts.
TEST(Strided, TransposesThatMoveNothing) {
  const auto candidates = [](Shape shape, Ints perm, DType dtype = DType::kFp32) {
    Bench bench;
    bench.output(bench.op("Transpose", {bench.input("x", std::move(shape), dtype)},
                          attributes({{"perm", std::move(perm)}})));
    return bench.check(0);
  };
  EXPECT_EQ(candidates({2, 3, 4, 5}, {0, 2, 3, 1}), 2U);
  EXPECT_EQ(candidates({2, 3, 4, 5}, {0, 3, 1, 2}), 2U);
  EXPECT_EQ(candidates({2, 3, 4, 5}, {1, 0, 2, 3}), 1U);
  EXPECT_EQ(candidates({2, 3, 4}, {0, 2, 1}), 3U);        // from and to channels-last
  EXPECT_EQ(candidates({1, 7, 1, 5}, {2, 1, 0, 3}), 3U);  // every element stays where it is
  EXPECT_EQ(candidates({2, 3, 4, 5}, {0, 2, 3, 1}, DType::kInt32), 1U);
}

TEST(Strided, TransposeSliceExpandTilePad) {
  Bench transpose;
  transpose.output(transpose.op("Transpose", {transpose.input("x", {2, Dim::symbol("h"), 4, 5})},
                                attributes({{"perm", Ints{0, 2, 3, 1}}})));
  EXPECT_EQ(transpose.check({{"h", 3}}, {{{"h", 3}}, {{"h", 40}}}, 0), 2U);
  Bench slice;
  slice.output(
      slice.op("Slice", {slice.input("x", {10, 9, 8}), slice.constant("s", ints({8, 1})),
                         slice.constant("e", ints({-100, 7})), slice.constant("a", ints({0, 2})),
                         slice.constant("t", ints({-3, 2}))}));
  EXPECT_EQ(slice.check(0), 1U);
  Bench expand;
  expand.output(expand.op(
      "Expand", {expand.input("x", {3, 1, 4}), expand.constant("s", ints({2, 1, 5, 4}))}));
  EXPECT_EQ(expand.check(0), 1U);
  Bench tile;
  tile.output(tile.op("Tile", {tile.input("x", {3, 4}), tile.constant("r", ints({2, 3}))}));
  EXPECT_EQ(tile.check(0), 1U);
  for (const char* mode : {"constant", "edge", "reflect", "wrap"}) {
    Bench pad;
    pad.output(
        pad.op("Pad",
               {pad.input("x", {4, 6}), pad.constant("p", ints({1, 2, 3, 1})),
                pad.constant("v", Tensor::of<float>(DType::kFp32, {}, std::vector<float>{1.5F}))},
               attributes({{"mode", std::string(mode)}})));
    EXPECT_EQ(pad.check(0), 1U) << mode;
  }
}

TEST(Strided, TablesThatWouldBeTooLargeAreRefused) {
  Bench expand;
  const std::int64_t huge = std::int64_t{1} << 40;
  expand.output(
      expand.op("Expand", {expand.input("x", {4}), expand.constant("s", ints({huge, 4}))}));
  EXPECT_EQ(expand.offers({}).refusal,
            "Expand: expected at most 33554432 places along all dims, found 1099511627776x4");
}

TEST(Strided, DepthAndSpace) {
  for (const char* mode : {"DCR", "CRD"}) {
    Bench bench;
    bench.output(
        bench.op("DepthToSpace", {bench.input("x", {2, 12, 3, 5})},
                 attributes({{"blocksize", std::int64_t{2}}, {"mode", std::string(mode)}})));
    EXPECT_EQ(bench.check(0), 1U);
    Bench back;
    back.output(back.op("SpaceToDepth", {back.input("x", {2, 3, 4, 6})},
                        attributes({{"blocksize", std::int64_t{2}}, {"mode", std::string(mode)}})));
    EXPECT_EQ(back.check(0), 1U);
  }
}

TEST(Gather, RowsAtRunTimeAndNegative) {
  Bench bench;
  bench.low = -7;
  bench.high = 7;
  bench.output(bench.op(
      "Gather", {bench.random_constant("table", {7, 5}), bench.input("i", {3, 4}, DType::kInt64)}));
  EXPECT_EQ(bench.check(0), 1U);
  Bench inner;
  inner.output(inner.op("Gather",
                        {inner.input("x", {2, 6, 5}), inner.constant("i", ints({5, 0, 0}))},
                        attributes({{"axis", std::int64_t{1}}})));
  EXPECT_EQ(inner.check(0), 1U);
}

TEST(Resize, NearestByScalesAndLinearBySizes) {
  const auto scales = Tensor::of<float>(DType::kFp32, {4}, std::vector<float>{1, 1, 2, 2.5F});
  for (const char* nearest : {"floor", "round_prefer_floor", "ceil", "round_prefer_ceil"}) {
    for (const char* coordinates :
         {"asymmetric", "half_pixel", "align_corners", "pytorch_half_pixel"}) {
      Bench bench;
      const auto x = bench.input("x", {Dim::symbol("n"), 9, 6, 8});
      bench.output(
          bench.op("Resize", {x, ir::kNoValue, bench.constant("s", scales)},
                   attributes({{"mode", std::string("nearest")},
                               {"nearest_mode", std::string(nearest)},
                               {"coordinate_transformation_mode", std::string(coordinates)}})));
      EXPECT_EQ(bench.check({{"n", 1}}, {{{"n", 1}}, {{"n", 3}}}, 0), 3U)
          << nearest << " " << coordinates;
    }
  }
  for (const char* coordinates :
       {"asymmetric", "half_pixel", "align_corners", "pytorch_half_pixel"}) {
    Bench bench;
    const auto x = bench.input("x", {2, 9, 6, 8});
    bench.output(bench.op(
        "Resize", {x, ir::kNoValue, ir::kNoValue, bench.constant("s", ints({2, 9, 11, 5}))},
        attributes({{"mode", std::string("linear")},
                    {"coordinate_transformation_mode", std::string(coordinates)}})));
    EXPECT_EQ(bench.check(1e-5), 3U) << coordinates;
  }
}

// 7.5 rows of 6: the corners are those of 7.5.
TEST(Resize, NearestByScalesThatGiveNoWholeSize) {
  const auto scales = Tensor::of<float>(DType::kFp32, {4}, std::vector<float>{1, 1, 1.25F, 0.45F});
  for (const char* coordinates : {"asymmetric", "half_pixel", "align_corners", "pytorch_half_pixel",
                                  "half_pixel_symmetric"}) {
    Bench bench;
    bench.output(bench.op(
        "Resize", {bench.input("x", {2, 9, 6, 8}), ir::kNoValue, bench.constant("s", scales)},
        attributes({{"coordinate_transformation_mode", std::string(coordinates)}})));
    EXPECT_EQ(bench.check(0), 3U) << coordinates;
  }
}

TEST(Resize, OfMorePositionsThanItsTableHoldsIsAnError) {
  artefact::KernelSpec spec;
  spec.kernel = "cpu.resize";
  spec.inputs = {{DType::kFp32, {}, {1, 1, 1, Dim::symbol("w")}}};
  spec.outputs = {{DType::kFp32, {}, {1, 1, 1, Dim(2) * Dim::symbol("w")}}};
  spec.steps = {{"", "Resize", {}, {0}, 1}};
  const auto kernel = load_resize(spec, {});
  ASSERT_TRUE(kernel) << kernel.error().to_string();
  const auto instance = (*kernel)->instantiate({{{1, 1, 1, 1 << 26}}, {{1, 1, 1, 1 << 27}}}, 1);
  ASSERT_FALSE(instance);
  EXPECT_EQ(instance.error().to_string(),
            "Resize: expected sizes of at most 67108864, found 1x1x1x134217728");
}

TEST(Resize, CubicIsRefused) {
  Bench bench;
  const auto scales = Tensor::of<float>(DType::kFp32, {4}, std::vector<float>{1, 1, 2, 2});
  bench.output(bench.op("Resize",
                        {bench.input("x", {1, 3, 4, 4}), ir::kNoValue, bench.constant("s", scales)},
                        attributes({{"mode", std::string("cubic")}})));
  EXPECT_EQ(bench.offers({}).refusal,
            "Resize: attribute 'mode': expected nearest or linear, found cubic");
}

}  // namespace
}  // namespace tessera::backends::cpu
