#include "base/tensor.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>

#include "base/float_convert.h"

namespace tessera {
namespace {

bool is_aligned(const void* data, std::size_t alignment) {
  return reinterpret_cast<std::uintptr_t>(data) % alignment == 0;
}

TEST(TensorTest, ZerosAreAlignedAndZero) {
  for (const std::int64_t count : {0, 1, 7, 1000, 100000}) {
    const auto tensor = Tensor::zeros(DType::kFp32, {count});
    ASSERT_TRUE(tensor.has_value());
    EXPECT_TRUE(is_aligned(tensor->data(), 64));
    EXPECT_NE(tensor->data(), nullptr);
    for (const float value : tensor->span<float>()) ASSERT_EQ(value, 0.0F);
  }
}

TEST(TensorTest, ZerosErrors) {
  EXPECT_EQ(Tensor::zeros(DType::kFp32, {-1}).error().to_string(),
            "dim 0 of [-1] is negative; expected at least 0");
  EXPECT_EQ(Tensor::zeros(DType::kUInt8, {std::int64_t{1} << 62}).error().to_string(),
            "out of memory: 4611686018427387904 bytes for uint8 4611686018427387904");
  EXPECT_EQ(Tensor::zeros(DType::kUInt8, {INT64_MAX}).error().code, ErrorCode::kResourceExhausted);
}

TEST(TensorTest, StringsAreObjects) {
  auto tensor = Tensor::zeros(DType::kString, {2});
  ASSERT_TRUE(tensor.has_value());
  auto* strings = static_cast<std::string*>(tensor->mutable_data());
  strings[1] = "a text that is too long to stand inside of the string object itself";
  const Tensor copy = Tensor::copy_of(tensor->view());
  EXPECT_EQ(copy.span<std::string>()[0], "");
  EXPECT_EQ(copy.span<std::string>()[1], strings[1]);
  EXPECT_TRUE(copy.equals(*tensor));
  EXPECT_EQ(copy.content_hash(), tensor->content_hash());
  strings[1] = "b";
  EXPECT_FALSE(copy.equals(*tensor));
  EXPECT_NE(copy.content_hash(), tensor->content_hash());
}

TEST(TensorTest, BorrowKeepsTheOwnerAndSharesTheBytes) {
  auto owner = std::make_shared<std::array<float, 4>>(std::array<float, 4>{1, 2, 3, 4});
  const std::weak_ptr<void> watch = owner;
  Tensor tensor = Tensor::borrow(DType::kFp32, {2, 2}, owner->data(), owner);
  EXPECT_EQ(tensor.data(), owner->data());
  owner.reset();
  EXPECT_FALSE(watch.expired());
  const Tensor row = tensor.reshaped({4});
  tensor = {};
  EXPECT_EQ(row.span<float>()[3], 4.0F);
}

TEST(TensorTest, BorrowCopiesWhereTheAlignmentIsTooSmall) {
  auto owner = std::make_shared<std::array<std::int64_t, 3>>();
  auto* bytes = reinterpret_cast<std::byte*>(owner->data()) + 1;
  const double value = 2.5;
  std::memcpy(bytes, &value, sizeof(value));
  const Tensor copied = Tensor::borrow(DType::kFp64, {1}, bytes, owner);
  EXPECT_NE(copied.data(), bytes);
  EXPECT_EQ(copied.span<double>()[0], 2.5);
  const Tensor shared = Tensor::borrow(DType::kUInt8, {1}, bytes, owner);
  EXPECT_EQ(shared.data(), bytes);
}

TEST(TensorTest, WritingSharedStorageAborts) {
  auto tensor = Tensor::zeros(DType::kFp32, {1});
  ASSERT_TRUE(tensor.has_value());
  EXPECT_NE(tensor->mutable_data(), nullptr);
  const Tensor second = *tensor;
  EXPECT_DEATH(static_cast<void>(tensor->mutable_data()), "internal error");
  auto owner = std::make_shared<float>(1.0F);
  const float* data = owner.get();
  Tensor borrowed = Tensor::borrow(DType::kFp32, {}, data, std::move(owner));
  EXPECT_DEATH(static_cast<void>(borrowed.mutable_data()), "internal error");
  EXPECT_DEATH(static_cast<void>(second.reshaped({2})), "internal error");
}

TEST(TensorTest, EqualityIsOfBits) {
  const std::array<float, 2> zeros = {0.0F, -0.0F};
  const Tensor plus = Tensor::of<float>(DType::kFp32, {1}, std::span(zeros).subspan(0, 1));
  const Tensor minus = Tensor::of<float>(DType::kFp32, {1}, std::span(zeros).subspan(1, 1));
  EXPECT_TRUE(plus.equals(plus));
  EXPECT_FALSE(plus.equals(minus));
  EXPECT_NE(plus.content_hash(), minus.content_hash());
  EXPECT_FALSE(plus.equals(plus.reshaped({})));
  EXPECT_NE(plus.content_hash(), plus.reshaped({1, 1}).content_hash());
  EXPECT_TRUE(Tensor().equals(Tensor()));
  EXPECT_FALSE(Tensor().is_defined());
}

template <typename T>
std::vector<std::int64_t> as_int64(DType dtype, std::vector<T> values) {
  return to_int64_vector({dtype, {static_cast<std::int64_t>(values.size())}, values.data()});
}

TEST(TensorTest, ToInt64Vector) {
  EXPECT_EQ(as_int64<std::int8_t>(DType::kInt8, {-128, 127}), (Dims{-128, 127}));
  EXPECT_EQ(as_int64<std::uint8_t>(DType::kUInt8, {255}), (Dims{255}));
  EXPECT_EQ(as_int64<std::uint8_t>(DType::kBool, {0, 1}), (Dims{0, 1}));
  EXPECT_EQ(as_int64<std::uint16_t>(DType::kUInt16, {65535}), (Dims{65535}));
  EXPECT_EQ(as_int64<std::int16_t>(DType::kInt16, {-3}), (Dims{-3}));
  EXPECT_EQ(as_int64<std::int32_t>(DType::kInt32, {INT32_MIN}), (Dims{INT32_MIN}));
  EXPECT_EQ(as_int64<std::uint32_t>(DType::kUInt32, {UINT32_MAX}), (Dims{UINT32_MAX}));
  EXPECT_EQ(as_int64<std::int64_t>(DType::kInt64, {INT64_MIN}), (Dims{INT64_MIN}));
  std::array<std::uint8_t, 2> packed = {};
  for (int i = 0; i < 3; ++i) packed_set(packed.data(), i, 4, static_cast<std::uint8_t>(7 + i));
  EXPECT_EQ(to_int64_vector({DType::kInt4, {3}, packed.data()}), (Dims{7, -8, -7}));
  EXPECT_EQ(to_int64_vector({DType::kUInt4, {3}, packed.data()}), (Dims{7, 8, 9}));
  const std::uint8_t crumbs = 0b11100100;
  EXPECT_EQ(to_int64_vector({DType::kUInt2, {4}, &crumbs}), (Dims{0, 1, 2, 3}));
  EXPECT_EQ(to_int64_vector({DType::kInt2, {4}, &crumbs}), (Dims{0, 1, -2, -1}));
  const float real = 1;
  EXPECT_DEATH(to_int64_vector({DType::kFp32, {1}, &real}), "internal error");
}

}  // namespace
}  // namespace tessera
