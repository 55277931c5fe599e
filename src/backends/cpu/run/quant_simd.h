#pragma once

// Vectorised loops over 8-bit integers: exact sums of products, and the ways between integers and
// real numbers. Dispatched to this processor's instruction set at run time; every set gives the
// same bits.
//
// Products go through 16-bit operands and pairwise 32-bit sums. The 8-bit instruction of
// processors without dot products saturates pairs at 16 bits, so it is not used.

#include <cstddef>
#include <cstdint>

#include "base/tensor.h"

namespace tessera::backends::cpu {

constexpr std::int64_t kPanelColumns = 16;  // columns that one panel of packed weights holds

// A row-major piece of a matrix: `rows` times `columns`, rows `x_stride` and `y_stride` elements
// apart.
struct Piece {
  std::size_t rows = 1;
  std::size_t columns = 0;
  std::ptrdiff_t x_stride = 0;
  std::ptrdiff_t y_stride = 0;
};

// y = x - zero in 16 bits; dtype: int8 or uint8.
void widen_centred(DType dtype, const std::byte* x, std::int32_t zero, std::int16_t* y,
                   std::size_t count);

// y = (x - zero) * scale; dtype: int8 or uint8.
void dequantize(DType dtype, const std::byte* x, std::int32_t zero, float scale, float* y,
                const Piece& piece);

// y = x / scale rounded half to even, plus zero, kept in the range of dtype (int8 or uint8). NaN
// becomes zero.
void quantize(DType dtype, const float* x, float scale, std::int32_t zero, std::byte* y,
              const Piece& piece);

// y = sum * scale + bias, each of the piece's columns with its own scale and bias.
void scale_sums(const std::int32_t* sums, const float* scale, const float* bias, float* y,
                const Piece& piece);

// scale_sums and quantize with a scale of 1 in one pass.
void requantize(DType dtype, const std::int32_t* sums, const float* scale, const float* bias,
                std::int32_t zero, std::byte* y, const Piece& piece);

// sums[r * kPanelColumns + c] = the sum over k of a[r * a_stride + k] * weights[k][c], for
// 2 * pairs values of k. `panel` holds [pairs][kPanelColumns][2], int8 or (wide) int16. Exact as
// long as the sums fit into 32 bits; beyond they wrap.
void panel_product(const std::int16_t* a, std::ptrdiff_t a_stride, std::size_t rows,
                   const std::byte* panel, bool wide, std::size_t pairs, std::int32_t* sums);

// sums[c] = the sum over taps of (taps[t][c] - zero) * weight, for channels c. An even number of
// taps, all there: those outside of the tensor point to a row of zero points. `weights` holds
// [taps / 2][channels][2].
void depthwise_sums(DType dtype, const std::byte* const* taps, std::size_t tap_count,
                    std::int32_t zero, const std::int16_t* weights, std::size_t channels,
                    std::int32_t* sums);

// y = the larger of x and y; sums += x. dtype: int8 or uint8.
void accumulate_max(DType dtype, const std::byte* x, std::byte* y, std::size_t count);
void accumulate_sums(DType dtype, const std::byte* x, std::int32_t* sums, std::size_t count);

// Smallest and largest of the elements and 0.
struct FloatRange {
  float low = 0;
  float high = 0;
};
FloatRange range_with_zero(const float* x, std::size_t count);

}  // namespace tessera::backends::cpu
