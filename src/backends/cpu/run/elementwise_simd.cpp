#include "backends/cpu/run/elementwise_simd.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

#include "backends/cpu/run/cpu_features.h"

// Three variants (the baseline, AVX2, AVX-512) bound the time to compile; the others gain nothing
// for fp32.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/run/elementwise_simd.cpp"
// foreach_target.h must come before whatever includes highway.h.
// clang-format off
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "hwy/contrib/math/math-inl.h"
#include "backends/cpu/run/simd_math-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace tessera::backends::cpu {
namespace HWY_NAMESPACE {

// Applies f vector by vector; what is left over goes through a padded copy.
template <typename F>
HWY_INLINE void map1(const float* a, float* y, std::size_t count, const F& f) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(f(hn::LoadU(d, a + i)), d, y + i);
  if (i == count) return;
  HWY_ALIGN float rest[HWY_MAX_BYTES / sizeof(float)] = {};
  std::memcpy(rest, a + i, (count - i) * sizeof(float));
  hn::Store(f(hn::Load(d, rest)), d, rest);
  std::memcpy(y + i, rest, (count - i) * sizeof(float));
}

template <typename F>
HWY_INLINE void map2(const float* a, const float* b, float* y, std::size_t count, const F& f) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(f(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, y + i);
  if (i == count) return;
  HWY_ALIGN float rest_a[HWY_MAX_BYTES / sizeof(float)] = {};
  HWY_ALIGN float rest_b[HWY_MAX_BYTES / sizeof(float)] = {};
  std::memcpy(rest_a, a + i, (count - i) * sizeof(float));
  std::memcpy(rest_b, b + i, (count - i) * sizeof(float));
  hn::Store(f(hn::Load(d, rest_a), hn::Load(d, rest_b)), d, rest_a);
  std::memcpy(y + i, rest_a, (count - i) * sizeof(float));
}

// log(1 + e^x) without overflow.
HWY_INLINE V softplus(V x) {
  const D d;
  return hn::Add(at_least(x, 0), hn::Log1p(d, hn::Exp(d, hn::Neg(hn::Abs(x)))));
}

// x P(x^2) / Q(x^2), a fit of least relative error (2e-8, with rounding 3.2e-7) to where fp32 has
// no more room below 1.
HWY_INLINE V erf_of(V x) {
  constexpr float kP[] = {2.8488266e-4F, 3.7656178e-3F, 5.2748724e-2F, 0.1904065F, 1.1283791F};
  constexpr float kQ[] = {1.1625356e-3F, 1.4969218e-2F, 0.11410912F, 0.50207611F, 1.0F};
  const V bounded = at_most(at_least(x, -3.92F), 3.92F);
  const V square = hn::Mul(bounded, bounded);
  V p = constant(2.0500858e-6F);
  V q = constant(3.8091697e-5F);
  for (std::size_t i = 0; i < std::size(kP); ++i) {
    p = hn::MulAdd(p, square, constant(kP[i]));
    q = hn::MulAdd(q, square, constant(kQ[i]));
  }
  return at_most(at_least(hn::Div(hn::Mul(bounded, p), q), -1), 1);
}

HWY_INLINE V elu(V x, float alpha, float scale) {
  const D d;
  const V negative = hn::Mul(constant(alpha), hn::Expm1(d, at_most(x, 0)));
  return hn::Mul(constant(scale), hn::IfThenElse(hn::Lt(x, hn::Zero(d)), negative, x));
}

HWY_INLINE V hard_sigmoid(V x, float alpha, float beta) {
  return at_most(at_least(hn::MulAdd(x, constant(alpha), constant(beta)), 0), 1);
}

HWY_INLINE V gelu_tanh(V x) {
  const D d;
  const V cube = hn::Mul(hn::Mul(x, x), x);
  const V inner = hn::Mul(constant(0.7978845608F), hn::MulAdd(cube, constant(0.044715F), x));
  return hn::Mul(hn::Mul(constant(0.5F), x), hn::Add(constant(1), hn::Tanh(d, inner)));
}

HWY_INLINE V sign(V x) {
  const D d;
  const V one = hn::CopySign(constant(1), x);
  return hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Zero(d), hn::IfThenElse(hn::IsNaN(x), x, one));
}

template <typename F>
void map_scalar(const float* a, float* y, std::size_t count, const F& f) {
  for (std::size_t i = 0; i < count; ++i) y[i] = f(a[i]);
}

void run_activation(SimdOp op, const float* a, float* y, std::size_t n, float alpha, float beta) {
  const D d;
  switch (op) {
    case SimdOp::kRelu: return map1(a, y, n, [](V x) HWY_ATTR { return at_least(x, 0); });
    case SimdOp::kLeakyRelu:
      return map1(a, y, n, [=](V x) HWY_ATTR {
        return hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(x, constant(alpha)), x);
      });
    case SimdOp::kThresholdedRelu:
      return map1(a, y, n,
                  [=](V x) HWY_ATTR { return hn::IfThenElseZero(hn::Gt(x, constant(alpha)), x); });
    case SimdOp::kElu: return map1(a, y, n, [=](V x) HWY_ATTR { return elu(x, alpha, 1); });
    case SimdOp::kSelu: return map1(a, y, n, [=](V x) HWY_ATTR { return elu(x, alpha, beta); });
    case SimdOp::kCelu:
      return map1(a, y, n, [=](V x) HWY_ATTR {
        const V negative =
            hn::Mul(constant(alpha), hn::Expm1(d, hn::Div(at_most(x, 0), constant(alpha))));
        return hn::Add(at_least(x, 0), negative);
      });
    case SimdOp::kSigmoid: return map1(a, y, n, [](V x) HWY_ATTR { return sigmoid(x); });
    case SimdOp::kHardSigmoid:
      return map1(a, y, n, [=](V x) HWY_ATTR { return hard_sigmoid(x, alpha, beta); });
    case SimdOp::kHardSwish:
      return map1(a, y, n,
                  [](V x) HWY_ATTR { return hn::Mul(x, hard_sigmoid(x, 1.0F / 6, 0.5F)); });
    case SimdOp::kSwish:
      return map1(a, y, n,
                  [=](V x) HWY_ATTR { return hn::Mul(x, sigmoid(hn::Mul(x, constant(alpha)))); });
    case SimdOp::kTanh: return map1(a, y, n, [=](V x) HWY_ATTR { return hn::Tanh(d, x); });
    case SimdOp::kErf: return map1(a, y, n, [](V x) HWY_ATTR { return erf_of(x); });
    case SimdOp::kGeluErf:
      return map1(a, y, n, [](V x) HWY_ATTR {
        return hn::Mul(hn::Mul(constant(0.5F), x),
                       hn::Add(constant(1), erf_of(hn::Mul(x, constant(0.7071067812F)))));
      });
    case SimdOp::kGeluTanh: return map1(a, y, n, [](V x) HWY_ATTR { return gelu_tanh(x); });
    case SimdOp::kSoftplus: return map1(a, y, n, [](V x) HWY_ATTR { return softplus(x); });
    case SimdOp::kSoftsign:
      return map1(a, y, n,
                  [](V x) HWY_ATTR { return hn::Div(x, hn::Add(constant(1), hn::Abs(x))); });
    case SimdOp::kMish:
      return map1(a, y, n, [=](V x) HWY_ATTR { return hn::Mul(x, hn::Tanh(d, softplus(x))); });
    default: return;
  }
}

void run_unary(SimdOp op, const float* a, float* y, std::size_t n, float alpha, float beta) {
  const D d;
  switch (op) {
    case SimdOp::kCopy:
      if (a != y) std::memmove(y, a, n * sizeof(float));
      return;
    case SimdOp::kExp: return map1(a, y, n, [](V x) HWY_ATTR { return exp_of(x); });
    case SimdOp::kLog: return map_scalar(a, y, n, [](float x) { return std::log(x); });
    case SimdOp::kSqrt: return map1(a, y, n, [](V x) HWY_ATTR { return hn::Sqrt(x); });
    case SimdOp::kAbs: return map1(a, y, n, [](V x) HWY_ATTR { return hn::Abs(x); });
    case SimdOp::kNeg: return map1(a, y, n, [](V x) HWY_ATTR { return hn::Neg(x); });
    case SimdOp::kReciprocal:
      return map1(a, y, n, [](V x) HWY_ATTR { return hn::Div(constant(1), x); });
    case SimdOp::kFloor: return map1(a, y, n, [](V x) HWY_ATTR { return hn::Floor(x); });
    case SimdOp::kCeil: return map1(a, y, n, [](V x) HWY_ATTR { return hn::Ceil(x); });
    case SimdOp::kRound: return map1(a, y, n, [](V x) HWY_ATTR { return hn::Round(x); });
    case SimdOp::kSign: return map1(a, y, n, [](V x) HWY_ATTR { return sign(x); });
    case SimdOp::kSin: return map_scalar(a, y, n, [](float x) { return std::sin(x); });
    case SimdOp::kCos: return map_scalar(a, y, n, [](float x) { return std::cos(x); });
    case SimdOp::kScaleShift:
      return map1(a, y, n,
                  [=](V x) HWY_ATTR { return hn::MulAdd(x, constant(alpha), constant(beta)); });
    default: (void)d; return run_activation(op, a, y, n, alpha, beta);
  }
}

void run(SimdOp op, const float* a, const float* b, float* y, std::size_t n, float alpha,
         float beta) {
  const D d;
  switch (op) {
    case SimdOp::kAdd: return map2(a, b, y, n, [](V p, V q) HWY_ATTR { return hn::Add(p, q); });
    case SimdOp::kSub: return map2(a, b, y, n, [](V p, V q) HWY_ATTR { return hn::Sub(p, q); });
    case SimdOp::kMul: return map2(a, b, y, n, [](V p, V q) HWY_ATTR { return hn::Mul(p, q); });
    case SimdOp::kDiv: return map2(a, b, y, n, [](V p, V q) HWY_ATTR { return hn::Div(p, q); });
    case SimdOp::kMin:
      return map2(a, b, y, n,
                  [](V p, V q) HWY_ATTR { return hn::IfThenElse(hn::IsNaN(p), p, hn::Min(p, q)); });
    case SimdOp::kMax:
      return map2(a, b, y, n,
                  [](V p, V q) HWY_ATTR { return hn::IfThenElse(hn::IsNaN(p), p, hn::Max(p, q)); });
    case SimdOp::kPow:
      for (std::size_t i = 0; i < n; ++i) y[i] = std::pow(a[i], b[i]);
      return;
    case SimdOp::kPRelu:
      return map2(a, b, y, n, [=](V p, V q) HWY_ATTR {
        return hn::IfThenElse(hn::Lt(p, hn::Zero(d)), hn::Mul(p, q), p);
      });
    default: return run_unary(op, a, y, n, alpha, beta);
  }
}

// NaN where one is there; looked for beside the maximum, which would have to wait for it.
float max_of(const float* x, std::size_t count) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  V best = constant(-HUGE_VALF);
  auto nans = hn::IsNaN(best);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const V next = hn::LoadU(d, x + i);
    nans = hn::Or(nans, hn::IsNaN(next));
    best = hn::Max(best, next);
  }
  if (!hn::AllFalse(d, nans)) return std::numeric_limits<float>::quiet_NaN();
  float result = hn::GetLane(hn::MaxOfLanes(d, best));
  for (; i < count; ++i) result = x[i] > result || std::isnan(x[i]) ? x[i] : result;
  return result;
}

// Sum of f(i) over whole vectors in [0, count), in four partial sums: the order is fixed, so equal
// inputs give equal bits.
template <typename F>
HWY_INLINE float sum_by(std::size_t count, const F& f) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
  std::size_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    s0 = hn::Add(s0, f(i));
    s1 = hn::Add(s1, f(i + lanes));
    s2 = hn::Add(s2, f(i + 2 * lanes));
    s3 = hn::Add(s3, f(i + 3 * lanes));
  }
  for (; i + lanes <= count; i += lanes) s0 = hn::Add(s0, f(i));
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
}

float sum_of(const float* x, std::size_t count) {
  const D d;
  float result = sum_by(count, [=](std::size_t i) HWY_ATTR { return hn::LoadU(d, x + i); });
  for (std::size_t i = count - count % hn::Lanes(d); i < count; ++i) result += x[i];
  return result;
}

float sum_of_squares(const float* x, std::size_t count, float shift) {
  const D d;
  float result = sum_by(count, [=](std::size_t i) HWY_ATTR {
    const V v = hn::Sub(hn::LoadU(d, x + i), constant(shift));
    return hn::Mul(v, v);
  });
  for (std::size_t i = count - count % hn::Lanes(d); i < count; ++i)
    result += (x[i] - shift) * (x[i] - shift);
  return result;
}

float exp_sum(const float* x, float* y, std::size_t count, float shift) {
  map1(x, y, count, [=](V v) HWY_ATTR { return exp_of(hn::Sub(v, constant(shift))); });
  return sum_of(y, count);
}

void accumulate(const float* x, float* y, std::size_t count) {
  run(SimdOp::kAdd, y, x, y, count, 0, 0);
}
void accumulate_max(const float* x, float* y, std::size_t count) {
  run(SimdOp::kMax, y, x, y, count, 0, 0);
}
void accumulate_scaled(const float* x, float* y, std::size_t count, float scale) {
  map2(x, y, y, count, [=](V p, V q) HWY_ATTR { return hn::MulAdd(p, constant(scale), q); });
}

constexpr std::size_t kRowsInOneGo = 256;

// One vector of columns, by four accumulators down the rows.
template <typename Tag, typename F>
HWY_INLINE hn::Vec<Tag> reduce_column(Tag d, const float* x, std::size_t rows, std::size_t columns,
                                      const F& f) {
  auto best = hn::LoadU(d, x);
  std::size_t r = 1;
  if (rows >= 8) {
    auto b1 = hn::LoadU(d, x + columns);
    auto b2 = hn::LoadU(d, x + 2 * columns);
    auto b3 = hn::LoadU(d, x + 3 * columns);
    for (r = 4; r + 4 <= rows; r += 4) {
      best = f(best, hn::LoadU(d, x + r * columns));
      b1 = f(b1, hn::LoadU(d, x + (r + 1) * columns));
      b2 = f(b2, hn::LoadU(d, x + (r + 2) * columns));
      b3 = f(b3, hn::LoadU(d, x + (r + 3) * columns));
    }
    best = f(f(best, b1), f(b2, b3));
  }
  for (; r < rows; ++r) best = f(best, hn::LoadU(d, x + r * columns));
  return best;
}

// The same in blocks of rows: a long sum in one go loses digits.
template <typename Tag, typename F>
HWY_INLINE void reduce_blocks(Tag d, const float* x, std::size_t rows, std::size_t columns,
                              float* y, const F& f) {
  auto best = reduce_column(d, x, std::min(rows, kRowsInOneGo), columns, f);
  for (std::size_t r = kRowsInOneGo; r < rows; r += kRowsInOneGo)
    best = f(best, reduce_column(d, x + r * columns, std::min(rows - r, kRowsInOneGo), columns, f));
  hn::StoreU(best, d, y);
}

// Columns in vectors; those left over one by one.
template <typename F>
HWY_INLINE void reduce_columns(const float* x, std::size_t rows, std::size_t columns, float* y,
                               const F& f) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  std::size_t c = 0;
  for (; c + lanes <= columns; c += lanes) reduce_blocks(d, x + c, rows, columns, y + c, f);
  const hn::CappedTag<float, 1> one;
  for (; c < columns; ++c) reduce_blocks(one, x + c, rows, columns, y + c, f);
}

void dots(const float* x, const float* rows, std::size_t count, std::size_t size, float* y) {
  const D d;
  const std::size_t lanes = hn::Lanes(d);
  const std::size_t whole = size / lanes * lanes;
  for (std::size_t r = 0; r < count; ++r, rows += size) {
    V first = hn::Zero(d);
    V second = hn::Zero(d);
    std::size_t i = 0;
    for (; i + 2 * lanes <= whole; i += 2 * lanes) {
      first = hn::MulAdd(hn::LoadU(d, x + i), hn::LoadU(d, rows + i), first);
      second = hn::MulAdd(hn::LoadU(d, x + i + lanes), hn::LoadU(d, rows + i + lanes), second);
    }
    if (i < whole) first = hn::MulAdd(hn::LoadU(d, x + i), hn::LoadU(d, rows + i), first);
    float sum = hn::GetLane(hn::SumOfLanes(d, hn::Add(first, second)));
    for (i = whole; i < size; ++i) sum += x[i] * rows[i];
    y[r] = sum;
  }
}

void column_sums(const float* x, std::size_t rows, std::size_t columns, float* y) {
  reduce_columns(x, rows, columns, y, [](auto a, auto b) HWY_ATTR { return hn::Add(a, b); });
}
void column_maxima(const float* x, std::size_t rows, std::size_t columns, float* y) {
  reduce_columns(x, rows, columns, y, [](auto a, auto b) HWY_ATTR {
    return hn::IfThenElse(hn::IsNaN(a), a, hn::Max(a, b));
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace tessera::backends::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::backends::cpu {

HWY_EXPORT(run);
HWY_EXPORT(max_of);
HWY_EXPORT(sum_of);
HWY_EXPORT(sum_of_squares);
HWY_EXPORT(exp_sum);
HWY_EXPORT(accumulate);
HWY_EXPORT(accumulate_max);
HWY_EXPORT(accumulate_scaled);
HWY_EXPORT(dots);
HWY_EXPORT(column_sums);
HWY_EXPORT(column_maxima);

void run_simd(SimdOp op, const float* a, const float* b, float* y, std::size_t count, float alpha,
              float beta) {
  HWY_DYNAMIC_DISPATCH(run)(op, a, b, y, count, alpha, beta);
}
float simd_max(const float* x, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(max_of)(x, count);
}
// A long sum in one go loses digits.
constexpr std::size_t kElementsInOneGo = 4096;

float simd_sum(const float* x, std::size_t count) {
  double sum = 0;
  for (std::size_t i = 0; i < count; i += kElementsInOneGo)
    sum += HWY_DYNAMIC_DISPATCH(sum_of)(x + i, std::min(count - i, kElementsInOneGo));
  return static_cast<float>(sum);
}
float simd_sum_of_squares(const float* x, std::size_t count, float shift) {
  return HWY_DYNAMIC_DISPATCH(sum_of_squares)(x, count, shift);
}
float simd_exp_sum(const float* x, float* y, std::size_t count, float shift) {
  return HWY_DYNAMIC_DISPATCH(exp_sum)(x, y, count, shift);
}
void simd_accumulate(const float* x, float* y, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(accumulate)(x, y, count);
}
void simd_accumulate_max(const float* x, float* y, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(accumulate_max)(x, y, count);
}
void simd_accumulate_scaled(const float* x, float* y, std::size_t count, float scale) {
  HWY_DYNAMIC_DISPATCH(accumulate_scaled)(x, y, count, scale);
}

void simd_dots(const float* x, const float* rows, std::size_t count, std::size_t size, float* y) {
  HWY_DYNAMIC_DISPATCH(dots)(x, rows, count, size, y);
}

void simd_column_sums(const float* x, std::size_t rows, std::size_t columns, float* y) {
  HWY_DYNAMIC_DISPATCH(column_sums)(x, rows, columns, y);
}
void simd_column_maxima(const float* x, std::size_t rows, std::size_t columns, float* y) {
  HWY_DYNAMIC_DISPATCH(column_maxima)(x, rows, columns, y);
}

void limit_simd_targets() {
  std::int64_t disabled = 0;
  if (isa() != Isa::kAvx512) disabled |= HWY_AVX3 | HWY_AVX3_DL;
  if (isa() == Isa::kSse41) disabled |= HWY_AVX2;
  hwy::DisableTargets(static_cast<decltype(hwy::SupportedTargets())>(disabled));
}

std::string highway_version() {
  return std::to_string(HWY_MAJOR) + "." + std::to_string(HWY_MINOR) + "." +
         std::to_string(HWY_PATCH);
}

}  // namespace tessera::backends::cpu
#endif
