#include "base/dims.h"

#include <gtest/gtest.h>

#include <set>

namespace tessera {
namespace {

TEST(DimsTest, Numel) {
  EXPECT_EQ(checked_numel({}), 1);
  EXPECT_EQ(checked_numel({2, 3, 4}), 24);
  EXPECT_EQ(checked_numel({INT64_MAX, INT64_MAX, 0}), 0);
  EXPECT_EQ(checked_numel({2, -1}).error().to_string(),
            "dim 1 of [2, -1] is negative; expected at least 0");
  EXPECT_EQ(checked_numel({0, -1}).error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(checked_numel({INT64_MAX, 2}).error().to_string(),
            "the number of elements of [9223372036854775807, 2] overflows 63 bits");
}

TEST(DimsTest, Nbytes) {
  EXPECT_EQ(checked_nbytes(DType::kFp32, {3}), 12);
  EXPECT_EQ(checked_nbytes(DType::kComplex128, {3}), 48);
  EXPECT_EQ(checked_nbytes(DType::kInt4, {3}), 2);
  EXPECT_EQ(checked_nbytes(DType::kUInt2, {5}), 2);
  EXPECT_EQ(checked_nbytes(DType::kInt4, {0}), 0);
  EXPECT_EQ(checked_nbytes(DType::kFp6E2M3, {1}), 1);
  EXPECT_EQ(checked_nbytes(DType::kFp6E2M3, {2}), 2);
  EXPECT_EQ(checked_nbytes(DType::kFp6E3M2, {4}), 3);
  EXPECT_EQ(checked_nbytes(DType::kFp6E3M2, {13}), 10);
  EXPECT_EQ(checked_nbytes(DType::kFp6E3M2, {INT64_MAX}), INT64_MAX / 8 * 6 + 6);
  EXPECT_EQ(checked_nbytes(DType::kInt4, {INT64_MAX}), INT64_MAX / 2 + 1);
  EXPECT_EQ(checked_nbytes(DType::kString, {2}),
            2 * static_cast<std::int64_t>(sizeof(std::string)));
  EXPECT_EQ(checked_nbytes(DType::kFp64, {INT64_MAX}).error().to_string(),
            "the bytes of fp64[9223372036854775807] exceed 63 bits");
  EXPECT_EQ(checked_nbytes(DType::kUndefined, {2}).error().to_string(),
            "expected a tensor with an element type, found 'undefined'");
}

TEST(DimsTest, Text) {
  EXPECT_EQ(to_string(Dims{1, 3, 640, 640}), "1x3x640x640");
  EXPECT_EQ(to_string(Dims{}), "scalar");
  EXPECT_EQ(to_string(Dims{7}), "7");
}

TEST(DTypeTest, NamesAreUniqueAndRoundTrip) {
  std::set<std::string_view> names;
  for (int code = 0; code < kDTypeCount; ++code) {
    const auto dtype = static_cast<DType>(code);
    EXPECT_TRUE(names.insert(to_string(dtype)).second) << to_string(dtype);
    EXPECT_EQ(dtype_from_string(to_string(dtype)), dtype);
  }
  EXPECT_EQ(to_string(DType::kFp8E4M3Fn), "fp8_e4m3fn");
  EXPECT_EQ(dtype_from_string("float"), DType::kUndefined);
  EXPECT_EQ(to_string(static_cast<DType>(200)), "undefined");
}

TEST(DTypeTest, Families) {
  EXPECT_TRUE(is_float(DType::kFp4E2M1));
  EXPECT_TRUE(is_float(DType::kFp64));
  EXPECT_FALSE(is_float(DType::kComplex64));
  EXPECT_TRUE(is_integer(DType::kUInt2));
  EXPECT_FALSE(is_integer(DType::kBool));
  EXPECT_FALSE(is_integer(DType::kString));
  EXPECT_EQ(bits_of(DType::kBool), 8);
  EXPECT_EQ(bits_of(DType::kInt2), 2);
  EXPECT_EQ(bits_of(DType::kString), 0);
}

}  // namespace
}  // namespace tessera
