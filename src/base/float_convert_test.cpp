#include "base/float_convert.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/small_float.h"
#include "testing/random.h"

namespace tessera {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::uint32_t bits32(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

// A float with an exponent that the small formats know, or a random bit pattern.
float random_float(testing::Random& random) {
  if (random.chance(0.2)) return std::bit_cast<float>(static_cast<std::uint32_t>(random.bits()));
  const double magnitude = std::ldexp(random.real(1, 2), static_cast<int>(random.integer(-40, 20)));
  return static_cast<float>(random.chance(0.5) ? magnitude : -magnitude);
}

TEST(HalfTest, EveryPatternRoundTrips) {
  for (std::uint32_t i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    ASSERT_EQ(fp32_to_fp16(fp16_to_fp32(bits)), bits) << i;
    ASSERT_EQ(fp32_to_bf16(bf16_to_fp32(bits)), bits) << i;
    const double half = decode_small_float(small_float_format(DType::kFp16), i);
    const double brain = decode_small_float(small_float_format(DType::kBf16), i);
    ASSERT_EQ(std::isnan(half), std::isnan(fp16_to_fp32(bits)));
    ASSERT_EQ(std::isnan(brain), std::isnan(bf16_to_fp32(bits)));
    const auto same = [](double general, float fast) {
      return std::isnan(general) || bits32(static_cast<float>(general)) == bits32(fast);
    };
    ASSERT_TRUE(same(half, fp16_to_fp32(bits))) << i;
    ASSERT_TRUE(same(brain, bf16_to_fp32(bits))) << i;
  }
}

TEST(HalfTest, KnownValues) {
  EXPECT_EQ(fp32_to_fp16(1.0F), 0x3C00);
  EXPECT_EQ(fp32_to_fp16(65504.0F), 0x7BFF);
  EXPECT_EQ(fp32_to_fp16(65519.996F), 0x7BFF);
  EXPECT_EQ(fp32_to_fp16(65520.0F), 0x7C00);
  EXPECT_EQ(fp32_to_fp16(-kInfinity), 0xFC00);
  EXPECT_EQ(fp32_to_fp16(0x1p-24F), 0x0001);
  EXPECT_EQ(fp32_to_fp16(0x1p-25F), 0x0000);      // a tie goes to the even 0
  EXPECT_EQ(fp32_to_fp16(0x1.8p-24F), 0x0002);    // a tie goes to the even 2
  EXPECT_EQ(fp32_to_fp16(0x1.ff8p-15F), 0x03FF);  // the largest subnormal
  EXPECT_EQ(fp32_to_fp16(-0.0F), 0x8000);
  EXPECT_EQ(fp32_to_bf16(1.0F), 0x3F80);
  EXPECT_EQ(fp32_to_bf16(0x1.01p0F), 0x3F80);  // a tie goes to the even one
  EXPECT_EQ(fp32_to_bf16(0x1.03p0F), 0x3F82);
  EXPECT_EQ(fp32_to_bf16(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_EQ(fp32_to_bf16(std::bit_cast<float>(0x7F800001U)), 0x7FC0);  // a NaN stays one
  EXPECT_EQ(fp32_to_fp16(std::bit_cast<float>(0x7F800001U)), 0x7E00);
}

TEST(HalfTest, FastPathsAgreeWithTheGeneralEncoder) {
  testing::Random random(3);
  for (int i = 0; i < 300000; ++i) {
    const float value = random_float(random);
    if (std::isnan(value)) continue;
    ASSERT_EQ(fp32_to_fp16(value),
              encode_small_float(small_float_format(DType::kFp16), value, false))
        << value;
    ASSERT_EQ(fp32_to_bf16(value),
              encode_small_float(small_float_format(DType::kBf16), value, false))
        << value;
  }
}

constexpr DType kSmallFloats[] = {DType::kFp8E4M3Fn,   DType::kFp8E4M3FnUz, DType::kFp8E5M2,
                                  DType::kFp8E5M2FnUz, DType::kFp8E8M0,     DType::kFp4E2M1,
                                  DType::kFp6E2M3,     DType::kFp6E3M2};

int patterns_of(DType dtype) {
  return 1 << bits_of(dtype);
}

TEST(SmallFloatTest, EveryPatternRoundTrips) {
  for (const DType dtype : kSmallFloats) {
    for (int i = 0; i < patterns_of(dtype); ++i) {
      const auto bits = static_cast<std::uint8_t>(i);
      const float value = small_float_to_fp32(dtype, bits);
      const std::uint8_t back = fp32_to_small_float(dtype, value, /*saturate=*/false);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(small_float_to_fp32(dtype, back)));
      } else {
        EXPECT_EQ(back, bits) << to_string(dtype) << " " << i;
      }
    }
  }
}

struct Known {
  DType dtype;
  int bits;
  float value;
};

TEST(SmallFloatTest, KnownPatterns) {
  const Known known[] = {{DType::kFp8E4M3Fn, 0x7E, 448},
                         {DType::kFp8E4M3Fn, 0x38, 1},
                         {DType::kFp8E4M3Fn, 0x01, 0x1p-9F},
                         {DType::kFp8E4M3FnUz, 0x7F, 240},
                         {DType::kFp8E4M3FnUz, 0x40, 1},
                         {DType::kFp8E4M3FnUz, 0x01, 0x1p-10F},
                         {DType::kFp8E5M2, 0x7B, 57344},
                         {DType::kFp8E5M2, 0x3C, 1},
                         {DType::kFp8E5M2, 0x7C, kInfinity},
                         {DType::kFp8E5M2, 0x01, 0x1p-16F},
                         {DType::kFp8E5M2FnUz, 0x7F, 57344},
                         {DType::kFp8E5M2FnUz, 0x40, 1},
                         {DType::kFp8E5M2FnUz, 0x01, 0x1p-17F},
                         {DType::kFp8E8M0, 0x00, 0x1p-127F},
                         {DType::kFp8E8M0, 0x7F, 1},
                         {DType::kFp8E8M0, 0xFE, 0x1p127F},
                         {DType::kFp4E2M1, 0x7, 6},
                         {DType::kFp4E2M1, 0x1, 0.5F},
                         {DType::kFp4E2M1, 0xF, -6},
                         {DType::kFp4E2M1, 0x2, 1},
                         {DType::kFp6E2M3, 0x1F, 7.5F},
                         {DType::kFp6E2M3, 0x08, 1},
                         {DType::kFp6E2M3, 0x21, -0.125F},
                         {DType::kFp6E3M2, 0x1F, 28},
                         {DType::kFp6E3M2, 0x0C, 1},
                         {DType::kFp6E3M2, 0x21, -0.0625F},
                         {DType::kFp8E4M3Fn, 0xFE, -448}};
  for (const Known& k : known) {
    EXPECT_EQ(small_float_to_fp32(k.dtype, static_cast<std::uint8_t>(k.bits)), k.value)
        << to_string(k.dtype) << " " << k.bits;
  }
  for (const auto& [dtype, bits] : {std::pair{DType::kFp8E4M3Fn, 0x7F},
                                    {DType::kFp8E4M3Fn, 0xFF},
                                    {DType::kFp8E4M3FnUz, 0x80},
                                    {DType::kFp8E5M2, 0x7D},
                                    {DType::kFp8E5M2FnUz, 0x80},
                                    {DType::kFp8E8M0, 0xFF}}) {
    EXPECT_TRUE(std::isnan(small_float_to_fp32(dtype, static_cast<std::uint8_t>(bits))));
  }
}

// The table of ONNX Cast for numbers out of range.
TEST(SmallFloatTest, SpecialValuesAsOnnxCastDefines) {
  const auto cast = [](DType dtype, float value, bool saturate) {
    return small_float_to_fp32(dtype, fp32_to_small_float(dtype, value, saturate));
  };
  const std::pair<DType, float> largest[] = {{DType::kFp8E4M3Fn, 448.0F},
                                             {DType::kFp8E4M3FnUz, 240.0F},
                                             {DType::kFp8E5M2, 57344.0F},
                                             {DType::kFp8E5M2FnUz, 57344.0F},
                                             {DType::kFp8E8M0, 0x1p127F}};
  for (const auto& [dtype, max] : largest) {
    SCOPED_TRACE(to_string(dtype));
    EXPECT_TRUE(std::isnan(cast(dtype, kNan, true)));
    EXPECT_TRUE(std::isnan(cast(dtype, kNan, false)));
    EXPECT_EQ(cast(dtype, kInfinity, true), max);
    EXPECT_EQ(cast(dtype, std::numeric_limits<float>::max(), true), max);
    const float overflow = cast(dtype, std::numeric_limits<float>::max(), false);
    const float infinity = cast(dtype, kInfinity, false);
    if (dtype == DType::kFp8E5M2) {
      EXPECT_EQ(overflow, kInfinity);
      EXPECT_EQ(infinity, kInfinity);
      EXPECT_EQ(cast(dtype, -kInfinity, false), -kInfinity);
    } else {
      EXPECT_TRUE(std::isnan(overflow));
      EXPECT_TRUE(std::isnan(infinity));
    }
    if (dtype == DType::kFp8E8M0) continue;
    EXPECT_EQ(cast(dtype, -kInfinity, true), -max);
  }
  EXPECT_EQ(fp32_to_small_float(DType::kFp8E4M3Fn, -0.0F, true), 0x80);
  EXPECT_EQ(fp32_to_small_float(DType::kFp8E4M3FnUz, -0.0F, true), 0x00);
  EXPECT_EQ(fp32_to_small_float(DType::kFp8E5M2FnUz, -1e-30F, true), 0x00);
  EXPECT_EQ(fp32_to_small_float(DType::kFp4E2M1, kNan, false), 0x8);
  EXPECT_EQ(cast(DType::kFp4E2M1, -kInfinity, false), -6.0F);
  EXPECT_EQ(fp32_to_small_float(DType::kFp6E2M3, kNan, false), 0x20);
  EXPECT_EQ(cast(DType::kFp6E3M2, 1e9F, false), 28.0F);
}

TEST(SmallFloatTest, E8M0Rounding) {
  const auto bits = [](float value, E8M0Rounding rounding) {
    return static_cast<int>(fp32_to_small_float(DType::kFp8E8M0, value, true, rounding));
  };
  EXPECT_EQ(bits(1.25F, E8M0Rounding::kUp), 128);
  EXPECT_EQ(bits(1.25F, E8M0Rounding::kDown), 127);
  EXPECT_EQ(bits(1.25F, E8M0Rounding::kNearest), 127);
  EXPECT_EQ(bits(1.5F, E8M0Rounding::kNearest), 128);
  EXPECT_EQ(bits(1.0F, E8M0Rounding::kUp), 127);
  EXPECT_EQ(bits(0.0F, E8M0Rounding::kUp), 0);
  EXPECT_EQ(fp32_to_small_float(DType::kFp8E8M0, 0.0F, false), 0xFF);
  EXPECT_EQ(fp32_to_small_float(DType::kFp8E8M0, -2.0F, true), 0xFF);
  EXPECT_EQ(bits(0x1.8p127F, E8M0Rounding::kUp), 254);
  EXPECT_EQ(bits(0x1.8p-127F, E8M0Rounding::kUp), 1);
}

// The finite pattern nearest to `value` by trying them all, a tie to the even pattern.
std::uint8_t nearest_by_search(DType dtype, float value) {
  int best = -1;
  double best_distance = 0;
  for (int i = 0; i < patterns_of(dtype); ++i) {
    const double candidate = small_float_to_fp32(dtype, static_cast<std::uint8_t>(i));
    if (!std::isfinite(candidate)) continue;
    if (candidate != 0 && std::signbit(candidate) != std::signbit(value)) continue;
    // Beyond every format, distances are no longer told apart.
    const double distance = std::fabs(candidate - std::clamp(value, -1e6F, 1e6F));
    if (best < 0 || distance < best_distance || (distance == best_distance && i % 2 == 0)) {
      best = i;
      best_distance = distance;
    }
  }
  return static_cast<std::uint8_t>(best);
}

TEST(SmallFloatTest, RoundsToTheNearestPattern) {
  testing::Random random(5);
  for (const DType dtype :
       {DType::kFp8E4M3Fn, DType::kFp8E4M3FnUz, DType::kFp8E5M2, DType::kFp8E5M2FnUz,
        DType::kFp4E2M1, DType::kFp6E2M3, DType::kFp6E3M2}) {
    for (int i = 0; i < 4000; ++i) {
      float value = random_float(random);
      if (i % 4 == 0) {  // just between two neighbours
        const int pattern = static_cast<int>(random.integer(0, patterns_of(dtype) / 2 - 2));
        value = (small_float_to_fp32(dtype, static_cast<std::uint8_t>(pattern)) +
                 small_float_to_fp32(dtype, static_cast<std::uint8_t>(pattern + 1))) /
                2;
      }
      if (!std::isfinite(value)) continue;
      const float found = small_float_to_fp32(dtype, fp32_to_small_float(dtype, value, true));
      const float expected = small_float_to_fp32(dtype, nearest_by_search(dtype, value));
      ASSERT_EQ(found, expected) << to_string(dtype) << " of " << value;
    }
  }
}

TEST(PackedTest, ElementsStandFromTheLowBits) {
  std::uint8_t bytes[2] = {};
  packed_set(bytes, 0, 4, 0x1);
  packed_set(bytes, 1, 4, 0x2);
  packed_set(bytes, 2, 4, 0xF3);  // the high bits are not of the element
  EXPECT_EQ(bytes[0], 0x21);
  EXPECT_EQ(bytes[1], 0x03);
  packed_set(bytes, 1, 4, 0xF);
  EXPECT_EQ(bytes[0], 0xF1);
  EXPECT_EQ(packed_get(bytes, 1, 4), 0xF);
  for (int i = 0; i < 8; ++i) packed_set(bytes, i, 2, static_cast<std::uint8_t>(i));
  for (int i = 0; i < 8; ++i) EXPECT_EQ(packed_get(bytes, i, 2), i % 4);
}

template <typename To, typename From>
std::vector<To> cast(DType from, DType to, const std::vector<From>& values, bool saturate = true) {
  const Dims dims = {static_cast<std::int64_t>(values.size())};
  std::vector<To> result(values.size());
  cast_elements({from, dims, values.data()}, {to, dims, result.data()}, saturate);
  return result;
}

TEST(CastTest, FloatToInteger) {
  const std::vector<float> values = {2.9F, -2.9F, kNan, 1e30F, -1e30F, kInfinity, 0.0F};
  EXPECT_EQ((cast<std::int32_t>(DType::kFp32, DType::kInt32, values)),
            (std::vector<std::int32_t>{2, -2, 0, INT32_MAX, INT32_MIN, INT32_MAX, 0}));
  EXPECT_EQ((cast<std::uint8_t>(DType::kFp32, DType::kUInt8, values)),
            (std::vector<std::uint8_t>{2, 0, 0, 255, 0, 255, 0}));
  EXPECT_EQ((cast<std::int64_t>(DType::kFp32, DType::kInt64, values)),
            (std::vector<std::int64_t>{2, -2, 0, INT64_MAX, INT64_MIN, INT64_MAX, 0}));
  EXPECT_EQ(
      (cast<std::uint64_t>(DType::kFp64, DType::kUInt64, std::vector<double>{0x1p64, 0x1p63, -1})),
      (std::vector<std::uint64_t>{UINT64_MAX, 1ULL << 63, 0}));
  EXPECT_EQ((cast<std::uint8_t>(DType::kFp32, DType::kBool, values)),
            (std::vector<std::uint8_t>{1, 1, 1, 1, 1, 1, 0}));
}

TEST(CastTest, IntegersWrap) {
  EXPECT_EQ(
      (cast<std::int8_t>(DType::kInt16, DType::kInt8, std::vector<std::int16_t>{200, -200, 5})),
      (std::vector<std::int8_t>{-56, 56, 5}));
  EXPECT_EQ((cast<std::uint32_t>(DType::kInt64, DType::kUInt32,
                                 std::vector<std::int64_t>{-1, 1LL << 33})),
            (std::vector<std::uint32_t>{UINT32_MAX, 0}));
  EXPECT_EQ(
      (cast<std::int64_t>(DType::kUInt64, DType::kInt64, std::vector<std::uint64_t>{UINT64_MAX})),
      (std::vector<std::int64_t>{-1}));
  EXPECT_EQ((cast<std::uint8_t>(DType::kInt32, DType::kBool, std::vector<std::int32_t>{256, 0})),
            (std::vector<std::uint8_t>{1, 0}));
  EXPECT_EQ((cast<float>(DType::kBool, DType::kFp32, std::vector<std::uint8_t>{1, 0})),
            (std::vector<float>{1, 0}));
}

TEST(CastTest, IntegersRoundOnce) {
  // 2^53 + 1 lies between two doubles; through the lower one, the tie of fp32 would go down.
  const std::vector<std::int64_t> values = {(1LL << 60) + (1LL << 36) + 1, INT64_MIN, INT64_MAX};
  EXPECT_EQ((cast<float>(DType::kInt64, DType::kFp32, values)),
            (std::vector<float>{static_cast<float>(values[0]), -0x1p63F, 0x1p63F}));
  // Just above the tie between two neighbours in bf16.
  const std::vector<std::int64_t> tie = {(1LL << 60) + (1LL << 52) + 1, (1LL << 60) + (1LL << 52)};
  EXPECT_EQ((cast<std::uint16_t>(DType::kInt64, DType::kBf16, tie)),
            (std::vector<std::uint16_t>{0x5D81, 0x5D80}));
  EXPECT_EQ(
      (cast<std::uint16_t>(DType::kInt32, DType::kFp16, std::vector<std::int32_t>{70000, -70000})),
      (std::vector<std::uint16_t>{0x7C00, 0xFC00}));
}

TEST(CastTest, DoubleRoundsOnceToHalf) {
  // Through fp32 this would become the tie 1 + 2^-11 and then the even 1.
  const std::vector<double> values = {1 + 0x1p-11 + 0x1p-40};
  EXPECT_EQ((cast<std::uint16_t>(DType::kFp64, DType::kFp16, values)),
            (std::vector<std::uint16_t>{0x3C01}));
}

TEST(CastTest, WhatNoPackedElementCoversIsZero) {
  const float values[3] = {1, 2, 3};
  std::uint8_t packed[2] = {0xFF, 0xFF};
  cast_elements({DType::kFp32, {3}, values}, {DType::kInt4, {3}, packed}, true);
  EXPECT_EQ(packed[0], 0x21);
  EXPECT_EQ(packed[1], 0x03);
}

TEST(CastTest, PackedTypes) {
  const std::vector<float> values = {-9, -8, 7.9F, 8, kNan};
  std::uint8_t packed[3] = {};
  cast_elements({DType::kFp32, {5}, values.data()}, {DType::kInt4, {5}, packed}, true);
  EXPECT_EQ(to_int64_vector({DType::kInt4, {5}, packed}), (Dims{7, -8, 7, -8, 0}));
  const std::vector<std::int32_t> integers = {-9, 8, 17, 3, 255};
  cast_elements({DType::kInt32, {5}, integers.data()}, {DType::kInt4, {5}, packed}, true);
  EXPECT_EQ(to_int64_vector({DType::kInt4, {5}, packed}), (Dims{7, -8, 1, 3, -1}));
  std::vector<std::int16_t> wide(5);
  cast_elements({DType::kInt4, {5}, packed}, {DType::kInt16, {5}, wide.data()}, true);
  EXPECT_EQ(wide, (std::vector<std::int16_t>{7, -8, 1, 3, -1}));
  cast_elements({DType::kFp32, {4}, values.data()}, {DType::kFp4E2M1, {4}, packed}, true);
  std::vector<float> back(4);
  cast_elements({DType::kFp4E2M1, {4}, packed}, {DType::kFp32, {4}, back.data()}, true);
  EXPECT_EQ(back, (std::vector<float>{-6, -6, 6, 6}));
}

// Four elements of 6 bits in three bytes, as ONNX lays them out.
TEST(CastTest, SixBitsCrossBytes) {
  const std::vector<float> values = {1, -0.125F, 7.5F, -7.5F, 2};
  std::uint8_t packed[] = {0xFF, 0xFF, 0xFF, 0xFF};
  cast_elements({DType::kFp32, {5}, values.data()}, {DType::kFp6E2M3, {5}, packed}, true);
  const std::uint8_t patterns[] = {0x08, 0x21, 0x1F, 0x3F, 0x10};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(packed_get(packed, i, 6), patterns[i]);
  EXPECT_EQ(packed[0], 0x08 | (0x21 & 0x3) << 6);
  EXPECT_EQ(packed[1], 0x21 >> 2 | (0x1F & 0xF) << 4);
  EXPECT_EQ(packed[2], 0x1F >> 4 | 0x3F << 2);
  EXPECT_EQ(packed[3], 0x10);
  std::vector<float> back(5);
  cast_elements({DType::kFp6E2M3, {5}, packed}, {DType::kFp32, {5}, back.data()}, true);
  EXPECT_EQ(back, values);
  packed_set(packed, 1, 6, 0);
  EXPECT_EQ(packed_get(packed, 0, 6), 0x08);
  EXPECT_EQ(packed_get(packed, 1, 6), 0);
  EXPECT_EQ(packed_get(packed, 2, 6), 0x1F);
}

// Every castable dtype to every other, over more elements than one chunk: small integers survive.
TEST(CastTest, EveryPairKeepsOneAndZero) {
  constexpr std::int64_t kCount = 1500;
  std::vector<std::uint8_t> bits(kCount);
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = i % 3 == 0 ? 1 : 0;
  for (int from = 1; from < kDTypeCount; ++from) {
    for (int to = 1; to < kDTypeCount; ++to) {
      const auto source = static_cast<DType>(from);
      const auto target = static_cast<DType>(to);
      const auto usable = [](DType dtype) {
        return is_float(dtype) || is_integer(dtype) || dtype == DType::kBool;
      };
      // e8m0 holds no 0.
      if (!usable(source) || !usable(target) || source == DType::kFp8E8M0 ||
          target == DType::kFp8E8M0) {
        continue;
      }
      // The 1 of int2 is its largest number.
      auto a = *Tensor::zeros(source, {kCount});
      auto b = *Tensor::zeros(target, {kCount});
      std::vector<std::uint8_t> result(kCount);
      cast_elements({DType::kBool, {kCount}, bits.data()}, a.mutable_view(), true);
      cast_elements(a.view(), b.mutable_view(), true);
      cast_elements(b.view(), {DType::kBool, {kCount}, result.data()}, true);
      ASSERT_EQ(result, bits) << to_string(source) << " to " << to_string(target);
      std::vector<float> floats(kCount);
      cast_elements(b.view(), {DType::kFp32, {kCount}, floats.data()}, true);
      ASSERT_EQ(floats[0], 1.0F) << to_string(source) << " to " << to_string(target);
      ASSERT_EQ(floats[kCount - 1], static_cast<float>(bits.back()));
    }
  }
}

TEST(CastTest, SaturateReachesTheSmallFloats) {
  EXPECT_EQ((cast<std::uint8_t>(DType::kFp32, DType::kFp8E5M2, std::vector<float>{1e30F}, true)[0]),
            0x7B);
  EXPECT_EQ(
      (cast<std::uint8_t>(DType::kFp32, DType::kFp8E5M2, std::vector<float>{1e30F}, false)[0]),
      0x7C);
  EXPECT_EQ((cast<std::uint16_t>(DType::kFp32, DType::kFp16, std::vector<float>{1e30F}, true)[0]),
            0x7C00);
}

}  // namespace
}  // namespace tessera
