#pragma once

// The formats of the floats that C++ has no type for, and their exact encoding from fp64.

#include <cstdint>

#include "tessera/dtype.h"

namespace tessera {

// A sign bit (none in e8m0), then `exponent_bits`, then `mantissa_bits`.
struct SmallFloatFormat {
  // What a format has besides finite numbers.
  enum class Specials : std::uint8_t {
    kIeee,             // infinities and NaNs in the largest exponent
    kNanAllOnes,       // NaN where all bits but the sign are 1; no infinities
    kNanNegativeZero,  // one NaN, the pattern of -0; no infinities
    kNone,
  };
  int exponent_bits;
  int mantissa_bits;
  int bias;
  Specials specials;
};

// The format of fp16, bf16, fp8_* (but not e8m0), fp6_* and fp4_e2m1. TESSERA_CHECKs the dtype.
const SmallFloatFormat& small_float_format(DType dtype);

double decode_small_float(const SmallFloatFormat& format, std::uint32_t bits);

// Rounds once, to nearest even. A magnitude that rounds to more than the largest finite number
// becomes that number where `saturate`, else the infinity, else the NaN of the format; infinity as
// well. A format without specials always saturates, and turns NaN into -0 (as ONNX's tests of
// Cast expect for fp4_e2m1).
std::uint32_t encode_small_float(const SmallFloatFormat& format, double value, bool saturate);

}  // namespace tessera
