#include "base/float_convert.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/small_float.h"
#include "base/truncate.h"

namespace tessera {
namespace {

// Elements that are converted at once; a buffer of them stays in the first cache.
constexpr std::int64_t kChunk = 512;
constexpr std::uint8_t kE8M0Nan = 0xFF;
constexpr std::uint8_t kE8M0Largest = 0xFE;
constexpr int kE8M0Bias = 127;

double decode_e8m0(std::uint8_t bits) {
  if (bits == kE8M0Nan) return std::numeric_limits<double>::quiet_NaN();
  return std::ldexp(1.0, bits - kE8M0Bias);
}

std::uint8_t encode_e8m0(double value, bool saturate, E8M0Rounding rounding) {
  if (std::isnan(value) || value < 0) return kE8M0Nan;
  if (value < std::ldexp(1.0, -kE8M0Bias)) return saturate ? 0 : kE8M0Nan;
  if (std::isinf(value)) return saturate ? kE8M0Largest : kE8M0Nan;
  int exponent = std::ilogb(value);
  const double ratio = value / std::ldexp(1.0, exponent);  // in [1, 2)
  if ((rounding == E8M0Rounding::kUp && ratio > 1) ||
      (rounding == E8M0Rounding::kNearest && ratio >= 1.5)) {
    ++exponent;
  }
  const int bits = exponent + kE8M0Bias;
  if (bits > kE8M0Largest) return saturate ? kE8M0Largest : kE8M0Nan;
  return static_cast<std::uint8_t>(bits);
}

// A double that rounds to a shorter format as the integer itself would: where it is not exact, its
// last bit is odd.
template <typename Integer>
double to_odd_double(Integer value) {
  const std::uint64_t magnitude =
      value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  const int excess = 64 - std::countl_zero(magnitude) - std::numeric_limits<double>::digits;
  std::uint64_t kept = magnitude;
  if (excess > 0) {
    kept = magnitude >> excess;
    if ((kept << excess) != magnitude) kept |= 1;
    kept <<= excess;
  }
  const auto result = static_cast<double>(kept);
  return value < 0 ? -result : result;
}

double to_odd_double(double value) {
  return value;
}

// The low bits of a number, cut towards zero; what does not fit 64 bits has none.
std::uint8_t packed_from(double value, int bits) {
  const bool fits = std::fabs(value) < 0x1p63;
  const std::int64_t integer = fits ? static_cast<std::int64_t>(value) : 0;
  return static_cast<std::uint8_t>(integer & ((1 << bits) - 1));
}

template <typename Integer>
std::uint8_t packed_from(Integer value, int bits) {
  return static_cast<std::uint8_t>(value & ((1 << bits) - 1));
}

template <typename T, typename Carrier>
void load_as(const TensorView& from, std::int64_t start, std::int64_t count, Carrier* into) {
  const T* source = from.as<T>() + start;
  for (std::int64_t i = 0; i < count; ++i) into[i] = static_cast<Carrier>(source[i]);
}

void load(const TensorView& from, std::int64_t start, std::int64_t count, std::int64_t* into) {
  switch (from.dtype) {
    case DType::kInt8: return load_as<std::int8_t>(from, start, count, into);
    case DType::kInt16: return load_as<std::int16_t>(from, start, count, into);
    case DType::kInt32: return load_as<std::int32_t>(from, start, count, into);
    case DType::kInt64: return load_as<std::int64_t>(from, start, count, into);
    default: break;
  }
  const int bits = bits_of(from.dtype);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t value = packed_get(from.data, start + i, bits);
    into[i] = value >> (bits - 1) != 0 ? value - (std::int64_t{1} << bits) : value;
  }
}

void load(const TensorView& from, std::int64_t start, std::int64_t count, std::uint64_t* into) {
  switch (from.dtype) {
    case DType::kBool:
    case DType::kUInt8: return load_as<std::uint8_t>(from, start, count, into);
    case DType::kUInt16: return load_as<std::uint16_t>(from, start, count, into);
    case DType::kUInt32: return load_as<std::uint32_t>(from, start, count, into);
    case DType::kUInt64: return load_as<std::uint64_t>(from, start, count, into);
    default: break;
  }
  const int bits = bits_of(from.dtype);
  for (std::int64_t i = 0; i < count; ++i) into[i] = packed_get(from.data, start + i, bits);
}

void load(const TensorView& from, std::int64_t start, std::int64_t count, double* into) {
  switch (from.dtype) {
    case DType::kFp32: return load_as<float>(from, start, count, into);
    case DType::kFp64: return load_as<double>(from, start, count, into);
    case DType::kFp16:
      for (std::int64_t i = 0; i < count; ++i) {
        into[i] = fp16_to_fp32(from.as<std::uint16_t>()[start + i]);
      }
      return;
    case DType::kBf16:
      for (std::int64_t i = 0; i < count; ++i) {
        into[i] = bf16_to_fp32(from.as<std::uint16_t>()[start + i]);
      }
      return;
    default: break;
  }
  const int bits = bits_of(from.dtype);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint8_t pattern =
        bits == 8 ? from.as<std::uint8_t>()[start + i] : packed_get(from.data, start + i, bits);
    into[i] = small_float_to_fp32(from.dtype, pattern);
  }
}

struct Target {
  const MutableTensorView& view;
  bool saturate;
  E8M0Rounding rounding;
};

template <typename T, typename Carrier>
void store_as(const Target& to, std::int64_t start, std::int64_t count, const Carrier* values) {
  T* target = to.view.as<T>() + start;
  for (std::int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_integral_v<T> && std::is_floating_point_v<Carrier>) {
      target[i] = saturating_truncate<T>(values[i]);
    } else {
      target[i] = static_cast<T>(values[i]);
    }
  }
}

template <typename Carrier>
void store_half(const Target& to, std::int64_t start, std::int64_t count, const Carrier* values) {
  const SmallFloatFormat& format = small_float_format(to.view.dtype);
  std::uint16_t* target = to.view.as<std::uint16_t>() + start;
  for (std::int64_t i = 0; i < count; ++i) {
    target[i] = static_cast<std::uint16_t>(
        encode_small_float(format, to_odd_double(values[i]), /*saturate=*/false));
  }
}

template <typename Carrier>
void store_byte_float(const Target& to, std::int64_t start, std::int64_t count,
                      const Carrier* values) {
  std::uint8_t* target = to.view.as<std::uint8_t>() + start;
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = to_odd_double(values[i]);
    target[i] = to.view.dtype == DType::kFp8E8M0
                    ? encode_e8m0(value, to.saturate, to.rounding)
                    : static_cast<std::uint8_t>(encode_small_float(
                          small_float_format(to.view.dtype), value, to.saturate));
  }
}

template <typename Carrier>
void store_packed(const Target& to, std::int64_t start, std::int64_t count, const Carrier* values) {
  const DType dtype = to.view.dtype;
  const int bits = bits_of(dtype);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint8_t pattern =
        is_float(dtype) ? static_cast<std::uint8_t>(encode_small_float(
                              small_float_format(dtype), to_odd_double(values[i]), true))
                        : packed_from(values[i], bits);
    packed_set(to.view.data, start + i, bits, pattern);
  }
}

template <typename Carrier>
void store(const Target& to, std::int64_t start, std::int64_t count, const Carrier* values) {
  switch (to.view.dtype) {
    case DType::kBool: {
      std::uint8_t* target = to.view.as<std::uint8_t>() + start;
      for (std::int64_t i = 0; i < count; ++i) target[i] = values[i] != 0 ? 1 : 0;
      return;
    }
    case DType::kInt8: return store_as<std::int8_t>(to, start, count, values);
    case DType::kInt16: return store_as<std::int16_t>(to, start, count, values);
    case DType::kInt32: return store_as<std::int32_t>(to, start, count, values);
    case DType::kInt64: return store_as<std::int64_t>(to, start, count, values);
    case DType::kUInt8: return store_as<std::uint8_t>(to, start, count, values);
    case DType::kUInt16: return store_as<std::uint16_t>(to, start, count, values);
    case DType::kUInt32: return store_as<std::uint32_t>(to, start, count, values);
    case DType::kUInt64: return store_as<std::uint64_t>(to, start, count, values);
    case DType::kFp32: return store_as<float>(to, start, count, values);
    case DType::kFp64: return store_as<double>(to, start, count, values);
    case DType::kFp16:
    case DType::kBf16: return store_half(to, start, count, values);
    default: break;
  }
  if (bits_of(to.view.dtype) == 8) return store_byte_float(to, start, count, values);
  store_packed(to, start, count, values);
}

template <typename Carrier>
void cast_through(const TensorView& from, const Target& to) {
  std::array<Carrier, kChunk> buffer;
  const std::int64_t count = from.numel();
  for (std::int64_t start = 0; start < count; start += kChunk) {
    const std::int64_t length = std::min(kChunk, count - start);
    load(from, start, length, buffer.data());
    store(to, start, length, buffer.data());
  }
}

bool is_castable(DType dtype) {
  return is_float(dtype) || is_integer(dtype) || dtype == DType::kBool;
}

bool is_signed_integer(DType dtype) {
  switch (dtype) {
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
    case DType::kInt4:
    case DType::kInt2: return true;
    default: return false;
  }
}

}  // namespace

float fp16_to_fp32(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
  const std::uint32_t magnitude = bits & 0x7FFFU;
  if (magnitude >= 0x7C00) return std::bit_cast<float>(sign | 0x7F800000U | (magnitude << 13));
  if (magnitude >= 0x0400) return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000U));
  const float subnormal = static_cast<float>(magnitude) * 0x1p-24F;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(subnormal));
}

std::uint16_t fp32_to_fp16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  std::uint32_t result = 0;
  if (magnitude > 0x7F800000U) {  // NaN: the payload's high bits, or the quiet bit where they are 0
    const std::uint32_t payload = (magnitude >> 13) & 0x3FFU;
    result = 0x7C00U | (payload != 0 ? payload : 0x200U);
  } else if (magnitude >= 0x477FF000U) {  // rounds to 65536 or more
    result = 0x7C00U;
  } else if (magnitude >= 0x38800000U) {  // normal: round the 13 bits that fall off
    const std::uint32_t odd = (magnitude >> 13) & 1U;
    result = (magnitude - 0x38000000U + 0xFFFU + odd) >> 13;
  } else {  // subnormal: adding 0.5 aligns the last bit kept with the last bit of the sum
    const float aligned = std::bit_cast<float>(magnitude) + 0.5F;
    result = std::bit_cast<std::uint32_t>(aligned) - 0x3F000000U;
  }
  return static_cast<std::uint16_t>(sign | result);
}

float bf16_to_fp32(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t fp32_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) {  // NaN: must not turn into infinity
    const std::uint32_t high = bits >> 16;
    return static_cast<std::uint16_t>((high & 0x7FU) != 0 ? high : high | 0x40U);
  }
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16);
}

float small_float_to_fp32(DType dtype, std::uint8_t bits) {
  if (dtype == DType::kFp8E8M0) return static_cast<float>(decode_e8m0(bits));
  return static_cast<float>(decode_small_float(small_float_format(dtype), bits));
}

std::uint8_t fp32_to_small_float(DType dtype, float value, bool saturate, E8M0Rounding rounding) {
  if (dtype == DType::kFp8E8M0) return encode_e8m0(value, saturate, rounding);
  return static_cast<std::uint8_t>(encode_small_float(small_float_format(dtype), value, saturate));
}

std::uint8_t packed_get(const void* data, std::int64_t index, int bits) {
  const auto* bytes = static_cast<const std::uint8_t*>(data) + index * bits / 8;
  const int shift = static_cast<int>(index * bits % 8);
  unsigned pattern = bytes[0];
  if (shift + bits > 8) pattern |= static_cast<unsigned>(bytes[1]) << 8;
  return static_cast<std::uint8_t>((pattern >> shift) & ((1U << bits) - 1));
}

void packed_set(void* data, std::int64_t index, int bits, std::uint8_t value) {
  auto* bytes = static_cast<std::uint8_t*>(data) + index * bits / 8;
  const int shift = static_cast<int>(index * bits % 8);
  const unsigned mask = ((1U << bits) - 1) << shift;
  const unsigned pattern = static_cast<unsigned>(value) << shift & mask;
  bytes[0] = static_cast<std::uint8_t>((bytes[0] & ~mask) | pattern);
  if (shift + bits > 8)
    bytes[1] = static_cast<std::uint8_t>((bytes[1] & ~(mask >> 8)) | pattern >> 8);
}

void cast_elements(const TensorView& from, const MutableTensorView& to, bool saturate,
                   E8M0Rounding rounding) {
  TESSERA_CHECK(from.dims == to.dims);
  if (from.numel() == 0) return;
  if (from.dtype == to.dtype) {
    TESSERA_CHECK(from.dtype != DType::kString);
    std::memcpy(to.data, from.data, static_cast<std::size_t>(from.nbytes()));
    return;
  }
  TESSERA_CHECK(is_castable(from.dtype) && is_castable(to.dtype));
  // No element covers what is left of the last byte.
  if (bits_of(to.dtype) < 8) to.as<std::uint8_t>()[to.nbytes() - 1] = 0;
  const Target target{to, saturate, rounding};
  if (is_float(from.dtype)) {
    cast_through<double>(from, target);
  } else if (is_signed_integer(from.dtype)) {
    cast_through<std::int64_t>(from, target);
  } else {
    cast_through<std::uint64_t>(from, target);
  }
}

}  // namespace tessera
