#pragma once

// Words for writing schemas: sets of dtypes, formal parameters and attributes.

#include <initializer_list>
#include <string_view>

#include "ops/op.h"

namespace tessera::ops {

constexpr DTypeSet dtype_set(std::initializer_list<DType> dtypes) {
  DTypeSet set = 0;
  for (const DType dtype : dtypes) set |= dtype_bit(dtype);
  return set;
}

inline constexpr DTypeSet kFloatTypes =
    dtype_set({DType::kFp32, DType::kFp64, DType::kFp16, DType::kBf16});
inline constexpr DTypeSet kSignedTypes =
    dtype_set({DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64});
inline constexpr DTypeSet kUnsignedTypes =
    dtype_set({DType::kUInt8, DType::kUInt16, DType::kUInt32, DType::kUInt64});
inline constexpr DTypeSet kIntegerTypes = kSignedTypes | kUnsignedTypes;
inline constexpr DTypeSet kNumericTypes = kFloatTypes | kIntegerTypes;
inline constexpr DTypeSet kIndexTypes = dtype_set({DType::kInt32, DType::kInt64});
inline constexpr DTypeSet kBoolType = dtype_bit(DType::kBool);
inline constexpr DTypeSet kInt64Type = dtype_bit(DType::kInt64);
inline constexpr DTypeSet kFp32Type = dtype_bit(DType::kFp32);
inline constexpr DTypeSet kStringType = dtype_bit(DType::kString);
inline constexpr DTypeSet kComplexTypes = dtype_set({DType::kComplex64, DType::kComplex128});
inline constexpr DTypeSet kFp8Types =
    dtype_set({DType::kFp8E4M3Fn, DType::kFp8E4M3FnUz, DType::kFp8E5M2, DType::kFp8E5M2FnUz,
               DType::kFp8E8M0});
inline constexpr DTypeSet kPackedTypes =
    dtype_set({DType::kUInt4, DType::kInt4, DType::kFp4E2M1, DType::kUInt2, DType::kInt2,
               DType::kFp6E2M3, DType::kFp6E3M2});
inline constexpr DTypeSet kFixedTypes =
    kNumericTypes | kBoolType | kComplexTypes | kFp8Types | kPackedTypes;
inline constexpr DTypeSet kAllTypes = kFixedTypes | kStringType;

constexpr FormalParam required(std::string_view name, std::string_view type) {
  return {name, type, FormalParam::Arity::kRequired};
}
constexpr FormalParam optional(std::string_view name, std::string_view type) {
  return {name, type, FormalParam::Arity::kOptional};
}
constexpr FormalParam variadic(std::string_view name, std::string_view type) {
  return {name, type, FormalParam::Arity::kVariadic};
}

constexpr FormalAttr attr(std::string_view name, AttrType type) {
  return {name, type, false};
}
constexpr FormalAttr required_attr(std::string_view name, AttrType type) {
  return {name, type, true};
}

}  // namespace tessera::ops
