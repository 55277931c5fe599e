#include "tessera/dtype.h"

#include <array>

namespace tessera {
namespace {

enum class Family : std::uint8_t { kOther, kFloat, kInteger };

struct DTypeInfo {
  std::string_view name;
  int bits;
  Family family;
};

// Indexed by the number of the dtype.
constexpr std::array<DTypeInfo, kDTypeCount> kInfos = {{
    {"undefined", 0, Family::kOther},    {"fp32", 32, Family::kFloat},
    {"uint8", 8, Family::kInteger},      {"int8", 8, Family::kInteger},
    {"uint16", 16, Family::kInteger},    {"int16", 16, Family::kInteger},
    {"int32", 32, Family::kInteger},     {"int64", 64, Family::kInteger},
    {"string", 0, Family::kOther},       {"bool", 8, Family::kOther},
    {"fp16", 16, Family::kFloat},        {"fp64", 64, Family::kFloat},
    {"uint32", 32, Family::kInteger},    {"uint64", 64, Family::kInteger},
    {"complex64", 64, Family::kOther},   {"complex128", 128, Family::kOther},
    {"bf16", 16, Family::kFloat},        {"fp8_e4m3fn", 8, Family::kFloat},
    {"fp8_e4m3fnuz", 8, Family::kFloat}, {"fp8_e5m2", 8, Family::kFloat},
    {"fp8_e5m2fnuz", 8, Family::kFloat}, {"uint4", 4, Family::kInteger},
    {"int4", 4, Family::kInteger},       {"fp4_e2m1", 4, Family::kFloat},
    {"fp8_e8m0", 8, Family::kFloat},     {"uint2", 2, Family::kInteger},
    {"int2", 2, Family::kInteger},       {"fp6_e2m3", 6, Family::kFloat},
    {"fp6_e3m2", 6, Family::kFloat},
}};

// A number outside of the enumeration (from a damaged file) reads as kUndefined.
const DTypeInfo& info(DType dtype) {
  const auto index = static_cast<std::size_t>(dtype);
  return kInfos[index < kInfos.size() ? index : 0];
}

}  // namespace

std::string_view to_string(DType dtype) {
  return info(dtype).name;
}

DType dtype_from_string(std::string_view name) {
  for (std::size_t i = 0; i < kInfos.size(); ++i) {
    if (kInfos[i].name == name) return static_cast<DType>(i);
  }
  return DType::kUndefined;
}

int bits_of(DType dtype) {
  return info(dtype).bits;
}

bool is_complex(DType dtype) {
  return dtype == DType::kComplex64 || dtype == DType::kComplex128;
}

bool is_float(DType dtype) {
  return info(dtype).family == Family::kFloat;
}

bool is_integer(DType dtype) {
  return info(dtype).family == Family::kInteger;
}

}  // namespace tessera
