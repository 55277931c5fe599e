// Operators of com.microsoft that the standard has under other signatures, and Inverse.

#include "ops/contrib/contrib_case_test.h"

namespace tessera::ops {
namespace {

using namespace contrib::testing;

TEST(ContribPad, TakesPadsInOneRow) {
  const auto found = run(
      "Pad", {},
      {tensor<float>({2}, {1, 2}), tensor<std::int64_t>({1, 2}, {1, 0}), tensor<float>({1}, {5})});
  expect_reals(found, 0, {5, 1, 2});
}

TEST(ContribUnique, KeepsTheOrderOfTheInput) {
  const auto found =
      run("Unique", {}, {tensor<float>({6}, {2, 1, 1, 3, 4, 3})}, {true, true, true});
  expect_reals(found, 0, {2, 1, 3, 4});
  expect_whole<std::int64_t>(found, 1, {0, 1, 1, 2, 3, 2});
  expect_whole<std::int64_t>(found, 2, {1, 2, 2, 1});
}

TEST(ContribRange, CountsInStepsOfOne) {
  expect_whole<std::int64_t>(
      run("Range", {}, {tensor<std::int64_t>({1}, {2}), tensor<std::int64_t>({}, {5})}), 0,
      {2, 3, 4});
}

TEST(ExpandDims, InsertsAnAxis) {
  const auto found = run("ExpandDims", {}, {pattern({2, 3}, 1), tensor<std::int32_t>({}, {1})});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->front().dims(), (Dims{2, 1, 3}));
}

TEST(CDist, MeasuresRows) {
  expect_reals(
      run("CDist", attributes({{"metric", "euclidean"}}), {pattern({2, 3}, 1), pattern({2, 3}, 2)}),
      0, {2.263846F, 2.358495F, 2.25F, 2.263846F});
  EXPECT_EQ(error_of("CDist", attributes({{"metric", "cosine"}}),
                     {pattern({2, 3}, 1), pattern({2, 3}, 2)}),
            "attribute 'metric': expected euclidean or sqeuclidean, found cosine");
}

TEST(Inverse, OfEachMatrix) {
  expect_reals(run("Inverse", {}, {tensor<float>({1, 2, 2}, {4, 7, 2, 6})}), 0,
               {0.6F, -0.7F, -0.2F, 0.4F});
  expect_reals(run("Inverse", {}, {tensor<float>({2, 2}, {0, 2, 1, 0})}), 0, {0, 1, 0.5F, 0});
  EXPECT_EQ(error_of("Inverse", {}, {tensor<float>({2, 2}, {1, 2, 2, 4})}),
            "Inverse: expected matrices that have an inverse, found that matrix 0 has none");
  EXPECT_EQ(error_of("Inverse", {}, {pattern({2, 3}, 1)}),
            "Inverse: expected square matrices, found [2, 3]");
}

}  // namespace
}  // namespace tessera::ops
