#include "compiler/drawn.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tessera::compiler {
namespace {

TEST(DrawnTensor, FloatsComeFromTheSeed) {
  const auto drawn = drawn_tensor(DType::kFp32, {50}, 3);
  ASSERT_TRUE(drawn);
  EXPECT_TRUE(std::ranges::all_of(drawn->span<float>(), [](float x) { return std::abs(x) <= 1; }));
  EXPECT_NE(drawn->span<float>()[0], drawn->span<float>()[1]);
  EXPECT_TRUE(drawn->equals(*drawn_tensor(DType::kFp32, {50}, 3, 1)));
  EXPECT_FALSE(drawn->equals(*drawn_tensor(DType::kFp32, {50}, 4)));
}

TEST(DrawnTensor, IntegersAreAlike) {
  const std::vector<std::int64_t> ones(6, 1);
  EXPECT_TRUE(drawn_tensor(DType::kInt64, {2, 3}, 1, 1)
                  ->equals(Tensor::of<std::int64_t>(DType::kInt64, {2, 3}, ones)));
  const std::vector<std::uint8_t> yes = {1, 1};
  EXPECT_TRUE(drawn_tensor(DType::kBool, {2}, 1, 1)
                  ->equals(Tensor::of<std::uint8_t>(DType::kBool, {2}, yes)));
  const std::vector<std::int32_t> zeros(2, 0);
  EXPECT_TRUE(drawn_tensor(DType::kInt32, {2}, 1)
                  ->equals(Tensor::of<std::int32_t>(DType::kInt32, {2}, zeros)));
}

TEST(DrawnTensor, ComplexNumbersHaveTwoParts) {
  const auto reals = drawn_tensor(DType::kFp64, {2, 3}, 7, 1);
  const auto drawn = drawn_tensor(DType::kComplex128, {3}, 7, 1);
  ASSERT_TRUE(drawn) << drawn.error().to_string();
  EXPECT_EQ(drawn->dims(), Dims{3});
  const auto* parts = static_cast<const double*>(drawn->data());
  EXPECT_TRUE(std::equal(parts, parts + 6, reals->span<double>().begin()));
  EXPECT_TRUE(drawn_tensor(DType::kComplex64, {4}, 7, 1));
}

TEST(DrawnTensor, StringsAreEmpty) {
  const auto drawn = drawn_tensor(DType::kString, {2}, 1, 1);
  ASSERT_TRUE(drawn);
  for (const std::string& text : drawn->span<std::string>()) EXPECT_EQ(text, "");
}

}  // namespace
}  // namespace tessera::compiler
