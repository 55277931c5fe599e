// Arithmetic of two operands: Add, Sub, Mul, Div, Pow, Mod.
//
// Integers wrap around. Div truncates towards zero; x / 0 and x mod 0 are 0, and the smallest
// number divided by -1 is itself: the standard leaves these open, and a crash would be worse.

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <type_traits>

#include "ops/elementwise/elementwise_util.h"
#include "ops/elementwise/value_arithmetic.h"
#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/schema_util.h"
#include "ops/upgrade_util.h"

namespace tessera::ops {
namespace {

template <typename T>
T divide(T x, T y) {
  if (y == T{0}) return T{0};
  if constexpr (std::is_signed_v<T>) {
    if (y == T{-1}) return static_cast<T>(std::uint64_t{0} - static_cast<std::uint64_t>(x));
  }
  return static_cast<T>(x / y);
}

template <typename T>
T remainder(T x, T y) {
  if (y == T{0}) return T{0};
  if constexpr (std::is_signed_v<T>) {
    if (y == T{-1}) return T{0};
  }
  return static_cast<T>(x % y);
}

// The sign of the divisor, as Python has it.
template <typename T>
T floor_mod(T x, T y) {
  if constexpr (std::is_floating_point_v<T>) {
    const T rest = std::fmod(x, y);
    if (rest == T{0}) return std::copysign(T{0}, y);
    return (rest < T{0}) != (y < T{0}) ? rest + y : rest;
  } else {
    const T rest = remainder(x, y);
    return rest != T{0} && ((rest < T{0}) != (y < T{0})) ? static_cast<T>(rest + y) : rest;
  }
}

template <ScalarFunction F>
struct Arithmetic {
  template <typename T>
  T operator()(T x, T y) const {
    if constexpr (std::is_floating_point_v<T>) {
      const T args[2] = {x, y};
      return Scalar<F>::apply(args, {});
    } else {
      const auto a = static_cast<std::uint64_t>(x);
      const auto b = static_cast<std::uint64_t>(y);
      if constexpr (F == ScalarFunction::kAdd) return static_cast<T>(a + b);
      if constexpr (F == ScalarFunction::kSub) return static_cast<T>(a - b);
      if constexpr (F == ScalarFunction::kMul) return static_cast<T>(a * b);
      if constexpr (F == ScalarFunction::kDiv) return divide(x, y);
      if constexpr (F == ScalarFunction::kMod) return remainder(x, y);
    }
  }
};

template <ScalarFunction F>
Status arithmetic_kernel(KernelContext& context) {
  return binary_kernel<NumericTypes>(context, Arithmetic<F>{});
}

template <DimFunction Function>
Status infer_arithmetic(InferContext& context) {
  TESSERA_TRY(require_same_dtype(context, 1, 0));
  TESSERA_TRY(infer_broadcast(context));
  propagate_binary(context, Function);
  return {};
}

// ---- Mod
// -------------------------------------------------------------------------------------------------

Status mod_kernel(KernelContext& context) {
  if (context.attributes().get_int("fmod", 0) != 0)
    return arithmetic_kernel<ScalarFunction::kMod>(context);
  return binary_kernel<NumericTypes>(context, [](auto x, auto y) { return floor_mod(x, y); });
}

Status infer_mod(InferContext& context) {
  TESSERA_TRY(require_same_dtype(context, 1, 0));
  TESSERA_TRY(infer_broadcast(context));
  if (context.attributes.get_int("fmod", 0) == 0) propagate_binary(context, dim_mod);
  return {};
}

// ---- Pow
// -------------------------------------------------------------------------------------------------

// By squaring, wrapping around. A negative exponent gives the inverse cut to an integer; 0 for the
// inverse of 0.
template <typename T>
T integer_power(T base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == T{1}) return T{1};
    if constexpr (std::is_signed_v<T>) {
      if (base == T{-1}) return static_cast<T>(exponent % 2 == 0 ? 1 : -1);
    }
    return T{0};
  }
  std::uint64_t result = 1;
  for (auto factor = static_cast<std::uint64_t>(base); exponent > 0;
       exponent >>= 1, factor *= factor) {
    if ((exponent & 1) != 0) result *= factor;
  }
  return static_cast<T>(result);
}

// As Cast does: towards zero, saturated, NaN is 0.
template <typename T>
T to_integer(double value) {
  if (std::isnan(value)) return T{0};
  const auto lowest = static_cast<double>(std::numeric_limits<T>::min());
  const auto highest = static_cast<double>(std::numeric_limits<T>::max());
  if (value <= lowest) return std::numeric_limits<T>::min();
  if (value >= highest) return std::numeric_limits<T>::max();
  return static_cast<T>(value);
}

// Exponents as double or int64, so that the loops are two for each dtype of the base.
Result<Tensor> exponents_as(const TensorView& exponent, DType dtype) {
  TESSERA_ASSIGN(Tensor wide, Tensor::zeros(dtype, exponent.dims));
  cast_elements(exponent, wide.mutable_view(), true);
  return wide;
}

Status pow_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* base, kernel_input(context, 0));
  TESSERA_ASSIGN(const TensorView* exponent, kernel_input(context, 1));
  if (is_float(base->dtype) && exponent->dtype == base->dtype) {
    return binary_kernel<FloatTypes>(context, Arithmetic<ScalarFunction::kPow>{});
  }
  const bool integers = is_integer(base->dtype) && is_integer(exponent->dtype);
  TESSERA_ASSIGN(const Tensor wide,
                 exponents_as(*exponent, integers ? DType::kInt64 : DType::kFp64));
  return dispatch(NumericTypes{}, base->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    using C = Compute<T>;
    if constexpr (std::is_integral_v<T>) {
      if (integers)
        return map_binary<T, std::int64_t, T>(context, *base, wide.view(), integer_power<T>);
      return map_binary<T, double, T>(context, *base, wide.view(), [](T x, double y) {
        return to_integer<T>(std::pow(static_cast<double>(x), y));
      });
    } else {
      return map_binary<T, double, T>(context, *base, wide.view(), [](C x, double y) {
        return static_cast<C>(std::pow(static_cast<double>(x), y));
      });
    }
  });
}

OpSchema binary(std::string_view name, InferFn infer, KernelFn kernel) {
  OpSchema op;
  op.name = name;
  op.versions = {1, 6, 7, 13, 14};
  op.inputs = {required("A", "T"), required("B", "T")};
  op.outputs = {required("C", "T")};
  op.type_variables = {{"T", kNumericTypes}};
  op.structure = Structure::kElementwise;
  op.infer = infer;
  op.kernel = kernel;
  op.upgrades = {{1, 6, upgrade_legacy_broadcast}};
  op.in_place_inputs = {0, 1};
  op.unspecified = "integers wrap around";
  return op;
}

}  // namespace

std::vector<OpSchema> arithmetic_ops() {
  using S = ScalarFunction;
  std::vector<OpSchema> ops;
  ops.push_back(binary("Add", infer_arithmetic<dim_add>, arithmetic_kernel<S::kAdd>));
  ops.back().commutative = true;
  ops.push_back(binary("Sub", infer_arithmetic<dim_sub>, arithmetic_kernel<S::kSub>));
  ops.push_back(binary("Mul", infer_arithmetic<dim_mul>, arithmetic_kernel<S::kMul>));
  ops.back().commutative = true;
  ops.push_back(binary("Div", infer_arithmetic<dim_div>, arithmetic_kernel<S::kDiv>));
  ops.back().unspecified =
      "integers are cut towards zero; x / 0 is 0, and the smallest number by -1 is itself";

  OpSchema pow = binary("Pow", infer_broadcast, pow_kernel);
  pow.unspecified =
      "integers wrap around; a negative exponent gives the inverse cut to an integer, 0 for the "
      "inverse of 0; a real power that an integer base cannot hold is saturated, NaN is 0";
  pow.versions = {1, 7, 12, 13, 15};
  pow.inputs = {required("X", "T"), required("Y", "T1")};
  pow.outputs = {required("Z", "T")};
  pow.type_variables = {{"T", kNumericTypes}, {"T1", kNumericTypes}};
  pow.upgrades = {{1, 1, upgrade_legacy_broadcast}};
  pow.in_place_inputs = {0};
  ops.push_back(std::move(pow));

  OpSchema mod = binary("Mod", infer_mod, mod_kernel);
  mod.unspecified = "x mod 0 of integers is 0";
  mod.versions = {10, 13, 28};
  mod.attributes = {attr("fmod", AttrType::kInt)};
  mod.upgrades = {};
  ops.push_back(std::move(mod));
  return ops;
}

}  // namespace tessera::ops
