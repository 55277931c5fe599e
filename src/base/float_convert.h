#pragma once

// Exact conversions of the small float types, by bit pattern, round to nearest even.

#include <cstdint>

#include "base/tensor.h"

namespace tessera {

float fp16_to_fp32(std::uint16_t bits);
std::uint16_t fp32_to_fp16(float value);
float bf16_to_fp32(std::uint16_t bits);
std::uint16_t fp32_to_bf16(float value);

// How a cast to fp8_e8m0 rounds between two powers of two (attribute round_mode of ONNX Cast); a
// tie of kNearest goes up.
enum class E8M0Rounding : std::uint8_t { kUp, kDown, kNearest };

// The floats of 8, 6 and 4 bits (fp8_*, e8m0, fp6_*, fp4_e2m1). `saturate` as ONNX Cast defines it:
// an overflow or an infinity becomes the largest number, else infinity or NaN. Those of 6 and 4
// bits always saturate, NaN to -0. e8m0 has no sign: a negative number becomes NaN; zero and
// less than 2^-127 becomes 2^-127 where `saturate`, else NaN. Sub-byte types: the low bits.
float small_float_to_fp32(DType dtype, std::uint8_t bits);
std::uint8_t fp32_to_small_float(DType dtype, float value, bool saturate,
                                 E8M0Rounding rounding = E8M0Rounding::kUp);

// Reads or writes element `index` of a packed tensor of 2, 4 or 6 bits: a stream of bits, the first
// element in the low ones. One of 6 bits may lie in two bytes.
std::uint8_t packed_get(const void* data, std::int64_t index, int bits);
void packed_set(void* data, std::int64_t index, int bits, std::uint8_t value);

// Casts every element as ONNX Cast (newest meaning) does; `to` has the dims of `from` (checked) and
// does not overlap it. No strings (ops handle those) and no complex types, unless both dtypes are
// equal. Integers wrap; floats to integers truncate towards zero. Where ONNX leaves it undefined, a
// float out of range becomes the nearest integer of the type, and NaN 0; in an integer of 2 or 4
// bits it keeps its low bits, as an integer does.
void cast_elements(const TensorView& from, const MutableTensorView& to, bool saturate,
                   E8M0Rounding rounding = E8M0Rounding::kUp);

}  // namespace tessera
