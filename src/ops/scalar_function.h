#pragma once

// Elementwise float operators as scalar functions: what each computes for one element. The
// reference kernels and every backend that writes its own elementwise code share this table.

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "ops/op.h"

namespace tessera::ops {

// X(name, arity). Named as the operators; Gelu has two forms. Clip is (x, min, max); Sum, Min, Max
// fold pairwise over any number of inputs (Sum as Add).
// clang-format off
#define TESSERA_SCALAR_FUNCTIONS(X)                                                                \
  X(Identity, 1) X(Abs, 1) X(Neg, 1) X(Sqrt, 1) X(Exp, 1) X(Log, 1) X(Erf, 1) X(Reciprocal, 1)     \
  X(Floor, 1) X(Ceil, 1) X(Round, 1) X(Sign, 1) X(Sin, 1) X(Cos, 1) X(Tan, 1) X(Asin, 1)           \
  X(Acos, 1) X(Atan, 1) X(Sinh, 1) X(Cosh, 1) X(Tanh, 1) X(Asinh, 1) X(Acosh, 1) X(Atanh, 1)       \
  X(Relu, 1) X(LeakyRelu, 1) X(Elu, 1) X(Selu, 1) X(Celu, 1) X(ThresholdedRelu, 1) X(Shrink, 1)    \
  X(Sigmoid, 1) X(HardSigmoid, 1) X(HardSwish, 1) X(Softplus, 1) X(Softsign, 1) X(Mish, 1)         \
  X(Gelu, 1) X(GeluTanh, 1) X(Swish, 1) X(QuickGelu, 1)                                            \
  X(Add, 2) X(Sub, 2) X(Mul, 2) X(Div, 2) X(Pow, 2) X(Mod, 2) X(Min, 2) X(Max, 2) X(PRelu, 2)      \
  X(Clip, 3)
// clang-format on

enum class ScalarFunction : std::uint8_t {
#define TESSERA_ENUM(name, arity) k##name,
  TESSERA_SCALAR_FUNCTIONS(TESSERA_ENUM)
#undef TESSERA_ENUM
};

// Parameters from attributes, with the defaults of the standard filled in: LeakyRelu, Elu, Celu,
// ThresholdedRelu, Swish, QuickGelu use alpha; Selu (alpha, gamma as beta); HardSigmoid (alpha,
// beta); Shrink (lambd as alpha, bias as beta).
struct ScalarParams {
  float alpha = 0;
  float beta = 0;
};

// The number of operands.
int arity(ScalarFunction function);

// The function that a float operator applies to each element; nothing where it is not one
// (reductions, comparisons, Where).
std::optional<ScalarFunction> scalar_function(const OpSchema& op, const Attributes& attributes);
ScalarParams scalar_params(ScalarFunction function, const Attributes& attributes);

// One element; `args` holds arity(function) operands.
float apply(ScalarFunction function, const float* args, const ScalarParams& params);

// The same as a type for each function, so that loops over elements compile to the function alone.
// T is float or double.
template <ScalarFunction F>
struct Scalar;

#define TESSERA_SCALAR(name, expression)                                                  \
  template <>                                                                             \
  struct Scalar<ScalarFunction::k##name> {                                                \
    template <typename T>                                                                 \
    static T apply([[maybe_unused]] const T* a, [[maybe_unused]] const ScalarParams& p) { \
      [[maybe_unused]] const T x = a[0];                                                  \
      [[maybe_unused]] const T alpha = static_cast<T>(p.alpha);                           \
      [[maybe_unused]] const T beta = static_cast<T>(p.beta);                             \
      [[maybe_unused]] constexpr T zero = 0;                                              \
      [[maybe_unused]] constexpr T one = 1;                                               \
      return expression;                                                                  \
    }                                                                                     \
  }

TESSERA_SCALAR(Identity, x);
TESSERA_SCALAR(Abs, std::abs(x));
TESSERA_SCALAR(Neg, -x);
TESSERA_SCALAR(Sqrt, std::sqrt(x));
TESSERA_SCALAR(Exp, std::exp(x));
TESSERA_SCALAR(Log, std::log(x));
TESSERA_SCALAR(Erf, std::erf(x));
TESSERA_SCALAR(Reciprocal, one / x);
TESSERA_SCALAR(Floor, std::floor(x));
TESSERA_SCALAR(Ceil, std::ceil(x));
TESSERA_SCALAR(Round, std::nearbyint(x));  // half to even in the default rounding mode
TESSERA_SCALAR(Sign, x > zero ? one : x < zero ? -one : x);  // NaN and -0 stay
TESSERA_SCALAR(Sin, std::sin(x));
TESSERA_SCALAR(Cos, std::cos(x));
TESSERA_SCALAR(Tan, std::tan(x));
TESSERA_SCALAR(Asin, std::asin(x));
TESSERA_SCALAR(Acos, std::acos(x));
TESSERA_SCALAR(Atan, std::atan(x));
TESSERA_SCALAR(Sinh, std::sinh(x));
TESSERA_SCALAR(Cosh, std::cosh(x));
TESSERA_SCALAR(Tanh, std::tanh(x));
TESSERA_SCALAR(Asinh, std::asinh(x));
TESSERA_SCALAR(Acosh, std::acosh(x));
TESSERA_SCALAR(Atanh, std::atanh(x));
TESSERA_SCALAR(Relu, x < zero ? zero : x);
TESSERA_SCALAR(LeakyRelu, x < zero ? alpha * x : x);
TESSERA_SCALAR(Elu, x < zero ? alpha * std::expm1(x) : x);
TESSERA_SCALAR(Selu, x < zero ? beta * (alpha * std::expm1(x)) : beta * x);
// An alpha that is NaN reaches both sides of zero.
TESSERA_SCALAR(Celu, (x < zero ? zero : x) + alpha * std::expm1((x < zero ? x : zero) / alpha));
// A NaN is on neither side of a threshold.
TESSERA_SCALAR(ThresholdedRelu, x > alpha ? x : zero);
TESSERA_SCALAR(Shrink, x<-alpha ? x + beta : x> alpha ? x - beta : zero);
// Each side of zero in the form that cannot overflow.
TESSERA_SCALAR(Sigmoid, x < zero ? std::exp(x) / (one + std::exp(x)) : one / (one + std::exp(-x)));
TESSERA_SCALAR(HardSigmoid, alpha* x + beta < zero   ? zero
                            : alpha * x + beta > one ? one
                                                     : alpha * x + beta);
TESSERA_SCALAR(HardSwish, x*(x<T(-3) ? zero : x> T(3) ? one : x / T(6) + T(0.5)));
TESSERA_SCALAR(Softplus, x > zero ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)));
TESSERA_SCALAR(Softsign, x / (one + std::abs(x)));
TESSERA_SCALAR(Mish, x* std::tanh(Scalar<ScalarFunction::kSoftplus>::apply(a, p)));
TESSERA_SCALAR(Gelu, T(0.5) * x * (one + std::erf(x * T(0.70710678118654752440))));
TESSERA_SCALAR(GeluTanh,
               T(0.5) * x *
                   (one + std::tanh(T(0.79788456080286535588) * (x + T(0.044715) * x * x * x))));
TESSERA_SCALAR(Add, x + a[1]);
TESSERA_SCALAR(Sub, x - a[1]);
TESSERA_SCALAR(Mul, x* a[1]);
TESSERA_SCALAR(Div, x / a[1]);
TESSERA_SCALAR(Pow, std::pow(x, a[1]));
TESSERA_SCALAR(Mod, std::fmod(x, a[1]));
// NaN in either operand gives NaN.
TESSERA_SCALAR(Min, x != x ? x : a[1] != a[1] ? a[1] : a[1] < x ? a[1] : x);
TESSERA_SCALAR(Max, x != x ? x : a[1] != a[1] ? a[1] : a[1] > x ? a[1] : x);
TESSERA_SCALAR(PRelu, x < zero ? a[1] * x : x);

// Min(max, Max(x, min)): max wins where min > max; a NaN in any of the three stays.
template <>
struct Scalar<ScalarFunction::kClip> {
  template <typename T>
  static T apply(const T* a, const ScalarParams& p) {
    const T bounded[2] = {Scalar<ScalarFunction::kMax>::apply(a, p), a[2]};
    return Scalar<ScalarFunction::kMin>::apply(bounded, p);
  }
};

template <>
struct Scalar<ScalarFunction::kSwish> {
  template <typename T>
  static T apply(const T* a, const ScalarParams& p) {
    const T scaled = static_cast<T>(p.alpha) * a[0];
    return a[0] * Scalar<ScalarFunction::kSigmoid>::apply(&scaled, p);
  }
};

template <>
struct Scalar<ScalarFunction::kQuickGelu> : Scalar<ScalarFunction::kSwish> {};

#undef TESSERA_SCALAR

}  // namespace tessera::ops
