#include "base/small_float.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace tessera {
namespace {

using Specials = SmallFloatFormat::Specials;

std::uint32_t magnitude_mask(const SmallFloatFormat& format) {
  return (1U << (format.exponent_bits + format.mantissa_bits)) - 1;
}

std::uint32_t sign_bit(const SmallFloatFormat& format) {
  return magnitude_mask(format) + 1;
}

std::uint32_t infinity_bits(const SmallFloatFormat& format) {
  return ((1U << format.exponent_bits) - 1) << format.mantissa_bits;
}

std::uint32_t largest_finite(const SmallFloatFormat& format) {
  switch (format.specials) {
    case Specials::kIeee: return infinity_bits(format) - 1;
    case Specials::kNanAllOnes: return magnitude_mask(format) - 1;
    default: return magnitude_mask(format);
  }
}

bool is_nan_bits(const SmallFloatFormat& format, std::uint32_t bits) {
  switch (format.specials) {
    case Specials::kIeee: return (bits & magnitude_mask(format)) > infinity_bits(format);
    case Specials::kNanAllOnes: return (bits & magnitude_mask(format)) == magnitude_mask(format);
    case Specials::kNanNegativeZero: return bits == sign_bit(format);
    case Specials::kNone: return false;
  }
  return false;
}

// The exponent of the smallest normal number, and of the subnormal ones.
int min_exponent(const SmallFloatFormat& format) {
  return 1 - format.bias;
}

std::uint32_t nan_bits(const SmallFloatFormat& format, std::uint32_t sign) {
  switch (format.specials) {
    case Specials::kIeee: return sign | infinity_bits(format) | (1U << (format.mantissa_bits - 1));
    case Specials::kNanAllOnes: return sign | magnitude_mask(format);
    case Specials::kNanNegativeZero: return sign_bit(format);
    case Specials::kNone: return sign_bit(format);
  }
  return 0;
}

std::uint32_t overflow_bits(const SmallFloatFormat& format, std::uint32_t sign, bool saturate) {
  if (saturate || format.specials == Specials::kNone) return sign | largest_finite(format);
  if (format.specials == Specials::kIeee) return sign | infinity_bits(format);
  return nan_bits(format, sign);
}

}  // namespace

const SmallFloatFormat& small_float_format(DType dtype) {
  static constexpr SmallFloatFormat kFp16{5, 10, 15, Specials::kIeee};
  static constexpr SmallFloatFormat kBf16{8, 7, 127, Specials::kIeee};
  static constexpr SmallFloatFormat kE4M3Fn{4, 3, 7, Specials::kNanAllOnes};
  static constexpr SmallFloatFormat kE4M3FnUz{4, 3, 8, Specials::kNanNegativeZero};
  static constexpr SmallFloatFormat kE5M2{5, 2, 15, Specials::kIeee};
  static constexpr SmallFloatFormat kE5M2FnUz{5, 2, 16, Specials::kNanNegativeZero};
  static constexpr SmallFloatFormat kE2M1{2, 1, 1, Specials::kNone};
  static constexpr SmallFloatFormat kE2M3{2, 3, 1, Specials::kNone};
  static constexpr SmallFloatFormat kE3M2{3, 2, 3, Specials::kNone};
  switch (dtype) {
    case DType::kFp16: return kFp16;
    case DType::kBf16: return kBf16;
    case DType::kFp8E4M3Fn: return kE4M3Fn;
    case DType::kFp8E4M3FnUz: return kE4M3FnUz;
    case DType::kFp8E5M2: return kE5M2;
    case DType::kFp8E5M2FnUz: return kE5M2FnUz;
    case DType::kFp6E2M3: return kE2M3;
    case DType::kFp6E3M2: return kE3M2;
    default: TESSERA_CHECK(dtype == DType::kFp4E2M1); return kE2M1;
  }
}

double decode_small_float(const SmallFloatFormat& format, std::uint32_t bits) {
  const double sign = (bits & sign_bit(format)) != 0 ? -1.0 : 1.0;
  if (is_nan_bits(format, bits)) {
    return std::copysign(std::numeric_limits<double>::quiet_NaN(), sign);
  }
  const std::uint32_t magnitude = bits & magnitude_mask(format);
  if (format.specials == Specials::kIeee && magnitude == infinity_bits(format)) {
    return sign * std::numeric_limits<double>::infinity();
  }
  const int exponent = static_cast<int>(magnitude >> format.mantissa_bits);
  const std::uint32_t hidden = 1U << format.mantissa_bits;
  const std::uint32_t fraction = magnitude & (hidden - 1);
  const std::uint32_t significand = exponent == 0 ? fraction : fraction + hidden;
  const int scale =
      (exponent == 0 ? 0 : exponent - 1) + min_exponent(format) - format.mantissa_bits;
  return sign * std::ldexp(static_cast<double>(significand), scale);
}

std::uint32_t encode_small_float(const SmallFloatFormat& format, double value, bool saturate) {
  const std::uint32_t sign = std::signbit(value) ? sign_bit(format) : 0;
  if (std::isnan(value)) return nan_bits(format, sign);
  if (std::isinf(value)) return overflow_bits(format, sign, saturate);
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return format.specials == Specials::kNanNegativeZero ? 0 : sign;
  const int lowest = min_exponent(format);
  const int exponent = std::max(std::ilogb(magnitude), lowest);
  if (exponent - lowest > (1 << format.exponent_bits)) return overflow_bits(format, sign, saturate);
  // The significand as an integer. With its hidden bit it adds 1 to the exponent field, which thus
  // starts at 0.
  const double significand = std::nearbyint(std::ldexp(magnitude, format.mantissa_bits - exponent));
  const std::uint32_t bits =
      (static_cast<std::uint32_t>(exponent - lowest) << format.mantissa_bits) +
      static_cast<std::uint32_t>(significand);
  if (bits > largest_finite(format)) return overflow_bits(format, sign, saturate);
  if (bits == 0 && format.specials == Specials::kNanNegativeZero) return 0;
  return sign | bits;
}

}  // namespace tessera
