#include "backends/cpu/run/scalar_ops.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "base/truncate.h"

namespace tessera::backends::cpu {
namespace {

template <typename In, typename Out, typename F>
void loop1(const void* const* data, const std::int64_t* steps, void* out, std::int64_t count) {
  const auto* a = static_cast<const In*>(data[0]);
  auto* y = static_cast<Out*>(out);
  for (std::int64_t i = 0; i < count; ++i) y[i] = F{}(a[i * steps[0]]);
}

template <typename In, typename Out, typename F>
void loop2(const void* const* data, const std::int64_t* steps, void* out, std::int64_t count) {
  const auto* a = static_cast<const In*>(data[0]);
  const auto* b = static_cast<const In*>(data[1]);
  auto* y = static_cast<Out*>(out);
  for (std::int64_t i = 0; i < count; ++i) y[i] = F{}(a[i * steps[0]], b[i * steps[1]]);
}

template <typename T>
void where(const void* const* data, const std::int64_t* steps, void* out, std::int64_t count) {
  const auto* condition = static_cast<const std::uint8_t*>(data[0]);
  const auto* a = static_cast<const T*>(data[1]);
  const auto* b = static_cast<const T*>(data[2]);
  auto* y = static_cast<T*>(out);
  for (std::int64_t i = 0; i < count; ++i)
    y[i] = condition[i * steps[0]] != 0 ? a[i * steps[1]] : b[i * steps[2]];
}

// Integers wrap; they are computed without a sign.
template <typename T>
using Wrapping =
    std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>;

template <typename T>
struct Add {
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<typename Wrapping<T>::type>(a) +
                          static_cast<typename Wrapping<T>::type>(b));
  }
};
template <typename T>
struct Sub {
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<typename Wrapping<T>::type>(a) -
                          static_cast<typename Wrapping<T>::type>(b));
  }
};
template <typename T>
struct Mul {
  T operator()(T a, T b) const {
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  }
};
template <>
struct Mul<double> {
  double operator()(double a, double b) const { return a * b; }
};
template <typename T>
struct Div {  // a division by zero gives zero instead of a trap
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      if (b == 0) return 0;
      if constexpr (std::is_signed_v<T>) {
        if (b == -1) return Sub<T>{}(0, a);
      }
    }
    return static_cast<T>(a / b);
  }
};
template <typename T>
struct Mod {  // the sign of the divisor
  T operator()(T a, T b) const {
    if (b == 0) return 0;
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return 0;
      const T rest = static_cast<T>(a % b);
      return rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
    } else {
      return static_cast<T>(a % b);
    }
  }
};
// A NaN on either side is the result.
template <typename T>
struct Min {
  T operator()(T a, T b) const { return b < a || b != b ? b : a; }
};
template <typename T>
struct Max {
  T operator()(T a, T b) const { return a < b || b != b ? b : a; }
};
template <typename T>
struct Neg {
  T operator()(T a) const {
    if constexpr (std::is_floating_point_v<T>) return -a;  // 0 - 0 has the other sign
    return Sub<T>{}(0, a);
  }
};
template <typename T>
struct Abs {
  T operator()(T a) const { return a < 0 ? Neg<T>{}(a) : a; }
};
template <typename T>
struct Copy {
  T operator()(T a) const { return a; }
};
template <typename T>
struct Equal {
  bool operator()(T a, T b) const { return a == b; }
};
template <typename T>
struct Less {
  bool operator()(T a, T b) const { return a < b; }
};
template <typename T>
struct LessOrEqual {
  bool operator()(T a, T b) const { return a <= b; }
};
template <typename T>
struct Greater {
  bool operator()(T a, T b) const { return a > b; }
};
template <typename T>
struct GreaterOrEqual {
  bool operator()(T a, T b) const { return a >= b; }
};
struct And {
  bool operator()(std::uint8_t a, std::uint8_t b) const { return a != 0 && b != 0; }
};
struct Or {
  bool operator()(std::uint8_t a, std::uint8_t b) const { return a != 0 || b != 0; }
};
struct Xor {
  bool operator()(std::uint8_t a, std::uint8_t b) const { return (a != 0) != (b != 0); }
};
struct Not {
  bool operator()(std::uint8_t a) const { return a == 0; }
};
struct IsNan {
  bool operator()(float a) const { return std::isnan(a); }
};
template <typename In, typename Out>
struct Cast {
  Out operator()(In a) const {
    if constexpr (std::is_same_v<Out, bool>) return a != In{};
    if constexpr (std::is_floating_point_v<In> && std::is_integral_v<Out> &&
                  !std::is_same_v<Out, bool>)
      return saturating_truncate<Out>(a);
    else
      return static_cast<Out>(a);
  }
};

template <typename T>
ScalarFn arithmetic(std::string_view op) {
  if (op == "Add") return loop2<T, T, Add<T>>;
  if (op == "Sub") return loop2<T, T, Sub<T>>;
  if (op == "Mul") return loop2<T, T, Mul<T>>;
  if (op == "Div") return loop2<T, T, Div<T>>;
  if (op == "Min") return loop2<T, T, Min<T>>;
  if (op == "Max") return loop2<T, T, Max<T>>;
  if (op == "Identity") return loop1<T, T, Copy<T>>;
  if constexpr (std::is_integral_v<T>) {
    if (op == "Mod") return loop2<T, T, Mod<T>>;
  }
  if constexpr (std::is_signed_v<T>) {
    if (op == "Neg") return loop1<T, T, Neg<T>>;
    if (op == "Abs") return loop1<T, T, Abs<T>>;
  }
  return nullptr;
}

template <typename T>
ScalarFn comparison(std::string_view op) {
  if (op == "Equal") return loop2<T, bool, Equal<T>>;
  if (op == "Less") return loop2<T, bool, Less<T>>;
  if (op == "LessOrEqual") return loop2<T, bool, LessOrEqual<T>>;
  if (op == "Greater") return loop2<T, bool, Greater<T>>;
  if (op == "GreaterOrEqual") return loop2<T, bool, GreaterOrEqual<T>>;
  return nullptr;
}

ScalarFn logic(std::string_view op) {
  if (op == "And") return loop2<std::uint8_t, bool, And>;
  if (op == "Or") return loop2<std::uint8_t, bool, Or>;
  if (op == "Xor") return loop2<std::uint8_t, bool, Xor>;
  if (op == "Not") return loop1<std::uint8_t, bool, Not>;
  if (op == "Equal") return loop2<std::uint8_t, bool, Equal<std::uint8_t>>;
  return nullptr;
}

template <typename In>
ScalarFn cast_to(DType out) {
  switch (out) {
    case DType::kFp32: return loop1<In, float, Cast<In, float>>;
    case DType::kFp64: return loop1<In, double, Cast<In, double>>;
    case DType::kInt32: return loop1<In, std::int32_t, Cast<In, std::int32_t>>;
    case DType::kInt64: return loop1<In, std::int64_t, Cast<In, std::int64_t>>;
    case DType::kUInt8: return loop1<In, std::uint8_t, Cast<In, std::uint8_t>>;
    case DType::kInt8: return loop1<In, std::int8_t, Cast<In, std::int8_t>>;
    case DType::kBool: return loop1<In, bool, Cast<In, bool>>;
    default: return nullptr;
  }
}

ScalarFn cast(DType in, DType out) {
  switch (in) {
    case DType::kFp32: return cast_to<float>(out);
    case DType::kFp64: return cast_to<double>(out);
    case DType::kInt32: return cast_to<std::int32_t>(out);
    case DType::kInt64: return cast_to<std::int64_t>(out);
    case DType::kUInt8:
    case DType::kBool: return cast_to<std::uint8_t>(out);
    case DType::kInt8: return cast_to<std::int8_t>(out);
    default: return nullptr;
  }
}

ScalarFn where_of(DType dtype) {
  switch (bits_of(dtype)) {
    case 8: return where<std::uint8_t>;
    case 16: return where<std::uint16_t>;
    case 32: return where<std::uint32_t>;
    case 64: return where<std::uint64_t>;
    default: return nullptr;
  }
}

// Every operand of an operator but Where and Cast has one dtype.
ScalarFn of_dtype(std::string_view op, DType in, DType out) {
  const bool compares = out == DType::kBool;
  switch (in) {
    case DType::kBool: return logic(op);
    case DType::kFp32:
      return !compares       ? nullptr
             : op == "IsNaN" ? loop1<float, bool, IsNan>
                             : comparison<float>(op);
    case DType::kFp64: return compares ? comparison<double>(op) : arithmetic<double>(op);
    case DType::kInt32:
      return compares ? comparison<std::int32_t>(op) : arithmetic<std::int32_t>(op);
    case DType::kInt64:
      return compares ? comparison<std::int64_t>(op) : arithmetic<std::int64_t>(op);
    case DType::kUInt8:
      return compares ? comparison<std::uint8_t>(op) : arithmetic<std::uint8_t>(op);
    case DType::kInt8: return compares ? comparison<std::int8_t>(op) : arithmetic<std::int8_t>(op);
    default: return nullptr;
  }
}

}  // namespace

ScalarFn scalar_fn(const artefact::KernelStep& step, const std::vector<DType>& operands,
                   DType output) {
  if (!step.domain.empty() || operands.empty()) return nullptr;
  if (step.op_type == "Where" && operands.size() == 3 && operands[1] == output &&
      operands[2] == output)
    return where_of(output);
  if (step.op_type == "Cast" || step.op_type == "CastLike") return cast(operands[0], output);
  for (const DType dtype : operands) {
    if (dtype != operands[0]) return nullptr;
  }
  const bool binary = step.op_type != "Not" && step.op_type != "Neg" && step.op_type != "Abs" &&
                      step.op_type != "Identity" && step.op_type != "IsNaN";
  if (operands.size() != (binary ? 2U : 1U)) return nullptr;
  if (step.op_type == "Mod" && step.attributes.get_int("fmod", 0) != 0) return nullptr;
  return of_dtype(step.op_type, operands[0], output);
}

Status check_scalar_op(const artefact::KernelStep& step, const std::vector<DType>& operands,
                       DType output) {
  if (scalar_fn(step, operands, output) != nullptr) return {};
  std::string found;
  for (const DType dtype : operands)
    found += (found.empty() ? "" : ", ") + std::string(to_string(dtype));
  return fail(
      ErrorCode::kUnimplemented,
      fmt::format(
          "{}: expected fp32, or one or two operands of a dtype with code for it, found ({}) to {}",
          step.op_type, found, to_string(output)));
}

}  // namespace tessera::backends::cpu
