#pragma once

// What reference kernels share: C++ types for dtypes, dispatch over them, and iteration over
// broadcast operands.

#include <algorithm>
#include <array>
#include <complex>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "base/float_convert.h"
#include "ops/op.h"

namespace tessera::ops {

// ---- C++ types of elements
// -------------------------------------------------------------------------------------------------

struct Fp16 {
  std::uint16_t bits;
};
struct Bf16 {
  std::uint16_t bits;
};

// The type to compute in: float for the 16-bit floats, the type itself otherwise.
template <typename T>
using Compute = std::conditional_t<std::is_same_v<T, Fp16> || std::is_same_v<T, Bf16>, float, T>;

template <typename T>
inline Compute<T> load(const T& element) {
  return element;
}
inline float load(const Fp16& element) {
  return fp16_to_fp32(element.bits);
}
inline float load(const Bf16& element) {
  return bf16_to_fp32(element.bits);
}

// Rounds to nearest even where T is narrower than what was computed in.
template <typename T>
inline T store(const Compute<T>& value) {
  if constexpr (std::is_same_v<T, Fp16>) {
    return Fp16{fp32_to_fp16(value)};
  } else if constexpr (std::is_same_v<T, Bf16>) {
    return Bf16{fp32_to_bf16(value)};
  } else {
    return value;
  }
}

template <typename T>
struct Tag {
  using type = T;
};
template <typename... Ts>
struct Types {};
template <typename... As, typename... Bs>
Types<As..., Bs...> join(Types<As...>, Types<Bs...>);

using FloatTypes = Types<float, double, Fp16, Bf16>;
using SignedTypes = Types<std::int8_t, std::int16_t, std::int32_t, std::int64_t>;
using UnsignedTypes = Types<std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>;
using IntegerTypes = decltype(join(SignedTypes{}, UnsignedTypes{}));
using NumericTypes = decltype(join(FloatTypes{}, IntegerTypes{}));

template <typename T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>) return DType::kFp32;
  if constexpr (std::is_same_v<T, double>) return DType::kFp64;
  if constexpr (std::is_same_v<T, Fp16>) return DType::kFp16;
  if constexpr (std::is_same_v<T, Bf16>) return DType::kBf16;
  if constexpr (std::is_same_v<T, std::int8_t>) return DType::kInt8;
  if constexpr (std::is_same_v<T, std::int16_t>) return DType::kInt16;
  if constexpr (std::is_same_v<T, std::int32_t>) return DType::kInt32;
  if constexpr (std::is_same_v<T, std::int64_t>) return DType::kInt64;
  if constexpr (std::is_same_v<T, std::uint8_t>) return DType::kUInt8;
  if constexpr (std::is_same_v<T, std::uint16_t>) return DType::kUInt16;
  if constexpr (std::is_same_v<T, std::uint32_t>) return DType::kUInt32;
  if constexpr (std::is_same_v<T, std::uint64_t>) return DType::kUInt64;
  if constexpr (std::is_same_v<T, bool>) return DType::kBool;
  if constexpr (std::is_same_v<T, std::string>) return DType::kString;
  if constexpr (std::is_same_v<T, std::complex<float>>) return DType::kComplex64;
  if constexpr (std::is_same_v<T, std::complex<double>>) return DType::kComplex128;
  return DType::kUndefined;
}

// The error of a kernel that has no code for a dtype: "no reference kernel for dtype complex64".
tl::unexpected<Error> unsupported_dtype(DType dtype);

// body(Tag<T>) with the type in the list that `dtype` names; for `[&](auto tag) -> Status { using T
// = typename decltype(tag)::type; ... }`.
template <typename... Ts, typename Body>
Status dispatch(Types<Ts...>, DType dtype, Body&& body) {
  Status status;
  const bool found = ((dtype == dtype_of<Ts>() && (status = body(Tag<Ts>{}), true)) || ...);
  if (!found) return unsupported_dtype(dtype);
  return status;
}

// 16 bytes that are moved, never computed with (complex128).
struct Bits128 {
  std::uint64_t words[2];
};

// body(Tag<T>) with a type as wide as the elements: for operators that move elements and do not
// look at them. Packed types count as one byte an element; kernels see them so under
// run_unpacked.
template <typename Body>
Status dispatch_elements(DType dtype, Body&& body) {
  if (dtype == DType::kString) return body(Tag<std::string>{});
  switch (bits_of(dtype)) {
    case 2:
    case 4:
    case 6:
    case 8: return body(Tag<std::uint8_t>{});
    case 16: return body(Tag<std::uint16_t>{});
    case 32: return body(Tag<std::uint32_t>{});
    case 64: return body(Tag<std::uint64_t>{});
    case 128: return body(Tag<Bits128>{});
    default: return unsupported_dtype(dtype);
  }
}

// Runs a kernel that moves elements on tensors whose packed types are spread to one byte an
// element, and packs its outputs.
Status run_unpacked(KernelContext& context, KernelFn kernel);
template <KernelFn Kernel>
Status unpacked(KernelContext& context) {
  return run_unpacked(context, Kernel);
}

// ---- Iteration
// -------------------------------------------------------------------------------------------------

// Elements between neighbours along each dim of a row-major tensor.
Dims row_major_strides(const Dims& dims);

// Strides of an operand of `dims` walked along `out` (right-aligned): 0 where it is broadcast.
Dims broadcast_strides(const Dims& dims, const Dims& out);

// Product of sizes [begin, end).
std::int64_t count_between(const Dims& dims, std::size_t begin, std::size_t end);

// Drops sizes of 1 and merges neighbours that every operand walks as one. `strides` are per
// operand.
void collapse_dims(Dims& dims, std::vector<Dims>& strides);

// Elements that a piece of a parallel loop should at least hold.
inline constexpr std::int64_t kGrain = 16384;

// Walks a row-major output in rows, in parallel. N operands with strides along `dims`;
// row(out_offset, offsets, steps, count): element i of the row is at out_offset + i of the output
// and offsets[k] + i * steps[k] of operand k.
template <std::size_t N, typename Row>
void for_each_row(KernelContext& context, Dims dims, std::vector<Dims> strides, const Row& row) {
  collapse_dims(dims, strides);
  const std::size_t rank = dims.size();
  const std::int64_t inner = rank == 0 ? 1 : dims[rank - 1];
  std::array<std::int64_t, N> steps{};
  for (std::size_t k = 0; k < N; ++k) steps[k] = rank == 0 ? 0 : strides[k][rank - 1];
  context.parallel_for(count_between(dims, 0, rank), kGrain,
                       [&](std::int64_t begin, std::int64_t end) {
                         while (begin < end) {
                           std::array<std::int64_t, N> offsets{};
                           std::int64_t rest = begin;
                           for (std::size_t d = rank; d-- > 0;) {
                             const std::int64_t at = rest % dims[d];
                             rest /= dims[d];
                             for (std::size_t k = 0; k < N; ++k) offsets[k] += at * strides[k][d];
                           }
                           const std::int64_t count = std::min(end - begin, inner - begin % inner);
                           row(begin, offsets, steps, count);
                           begin += count;
                         }
                       });
}

// ---- Inputs of kernels
// -------------------------------------------------------------------------------------------------

// The input, which inference has promised to be there; an error names its number where it is not.
Result<const TensorView*> kernel_input(const KernelContext& context, std::size_t index);

// Copies all elements (string objects too).
void copy_elements(const TensorView& from, const MutableTensorView& to);

}  // namespace tessera::ops
