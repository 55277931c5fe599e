#pragma once

// Element types of tensors: every type that ONNX can represent.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tessera {

// The numbers are those of ONNX TensorProto.DataType.
enum class DType : std::uint8_t {
  kUndefined = 0,
  kFp32 = 1,
  kUInt8 = 2,
  kInt8 = 3,
  kUInt16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFp16 = 10,
  kFp64 = 11,
  kUInt32 = 12,
  kUInt64 = 13,
  kComplex64 = 14,
  kComplex128 = 15,
  kBf16 = 16,
  kFp8E4M3Fn = 17,
  kFp8E4M3FnUz = 18,
  kFp8E5M2 = 19,
  kFp8E5M2FnUz = 20,
  kUInt4 = 21,
  kInt4 = 22,
  kFp4E2M1 = 23,
  kFp8E8M0 = 24,
  kUInt2 = 25,
  kInt2 = 26,
  kFp6E2M3 = 27,
  kFp6E3M2 = 28,
};

inline constexpr int kDTypeCount = 29;

// Short names as they stand in profiles, reports and the text form of the IR: "fp32", "int64",
// "bool", "bf16", "fp8_e4m3fn".
std::string_view to_string(DType dtype);

// The dtype of that name, or kUndefined.
DType dtype_from_string(std::string_view name);

// Bits of one element in memory; 2, 4 and 6 for the packed types; 0 for strings and kUndefined.
int bits_of(DType dtype);

bool is_float(DType dtype);  // fp64 down to the floats of 8, 6 and 4 bits, not complex
bool is_complex(DType dtype);
bool is_integer(DType dtype);  // signed and unsigned, not bool

}  // namespace tessera
