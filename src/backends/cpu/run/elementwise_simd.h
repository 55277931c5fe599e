#pragma once

// Vectorised fp32 loops over contiguous elements, dispatched to this processor's instruction set at
// run time.

#include <cstddef>
#include <cstdint>
#include <string>

namespace tessera::backends::cpu {

// alpha and beta as the ONNX operators name them; a binary one takes two operands.
enum class SimdOp : std::uint8_t {
  kCopy,
  kRelu,
  kLeakyRelu,
  kThresholdedRelu,
  kElu,
  kSelu,
  kCelu,
  kSigmoid,
  kHardSigmoid,
  kHardSwish,
  kSwish,
  kTanh,
  kExp,
  kLog,
  kSqrt,
  kErf,
  kGeluErf,
  kGeluTanh,
  kAbs,
  kNeg,
  kReciprocal,
  kFloor,
  kCeil,
  kRound,
  kSign,
  kSoftplus,
  kSoftsign,
  kMish,
  kSin,
  kCos,
  kScaleShift,  // alpha * x + beta
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMin,
  kMax,
  kPow,
  kPRelu,  // kPRelu: b is the slope
};

// y[i] = op(a[i], b[i]) for `count` elements; b is null for unary ops. y may be a or b. Within a
// few ulp of the exact result, NaN goes through (Min and Max too).
void run_simd(SimdOp op, const float* a, const float* b, float* y, std::size_t count, float alpha,
              float beta);

// max and sum of `count` elements (-inf and 0 where there are none); exp(x - shift) into y, and its
// sum.
float simd_max(const float* x, std::size_t count);
float simd_sum(const float* x, std::size_t count);
float simd_sum_of_squares(const float* x, std::size_t count, float shift);
float simd_exp_sum(const float* x, float* y, std::size_t count, float shift);

// y[r] = the sum of x[i] * rows[r * size + i] over i, for `count` rows.
void simd_dots(const float* x, const float* rows, std::size_t count, std::size_t size, float* y);

// y[i] += x[i]; y[i] = max(y[i], x[i]); y[i] += scale * x[i].
void simd_accumulate(const float* x, float* y, std::size_t count);
void simd_accumulate_max(const float* x, float* y, std::size_t count);
void simd_accumulate_scaled(const float* x, float* y, std::size_t count, float scale);

// y[c] = the sum, or the largest, of x[r * columns + c] over the rows; at least one row.
void simd_column_sums(const float* x, std::size_t rows, std::size_t columns, float* y);
void simd_column_maxima(const float* x, std::size_t rows, std::size_t columns, float* y);

// Keeps Highway to the instruction sets that isa() allows. Called once, before the first kernel
// runs.
void limit_simd_targets();

std::string highway_version();  // "1.0.3"

}  // namespace tessera::backends::cpu
