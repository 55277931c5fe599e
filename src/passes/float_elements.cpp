#include "passes/float_elements.h"

#include <algorithm>

#include "base/error.h"
#include "base/float_convert.h"

namespace tessera::passes {

bool has_float_elements(DType dtype) {
  return dtype == DType::kFp64 || dtype == DType::kFp32 || dtype == DType::kFp16 ||
         dtype == DType::kBf16;
}

std::vector<double> float_elements(const TensorView& view) {
  TESSERA_CHECK(has_float_elements(view.dtype));
  std::vector<double> elements(static_cast<std::size_t>(view.numel()));
  const auto read = [&](const auto* from, auto to_double) {
    std::transform(from, from + elements.size(), elements.begin(), to_double);
  };
  switch (view.dtype) {
    case DType::kFp64: read(view.as<double>(), [](double x) { return x; }); break;
    case DType::kFp32:
      read(view.as<float>(), [](float x) { return static_cast<double>(x); });
      break;
    case DType::kFp16: read(view.as<std::uint16_t>(), fp16_to_fp32); break;
    default: read(view.as<std::uint16_t>(), bf16_to_fp32); break;
  }
  return elements;
}

double round_to(DType dtype, double value) {
  TESSERA_CHECK(has_float_elements(dtype));
  const auto narrow = static_cast<float>(value);
  switch (dtype) {
    case DType::kFp64: return value;
    case DType::kFp32: return narrow;
    case DType::kFp16: return fp16_to_fp32(fp32_to_fp16(narrow));
    default: return bf16_to_fp32(fp32_to_bf16(narrow));
  }
}

Tensor from_float_elements(DType dtype, const Dims& dims, const std::vector<double>& elements) {
  TESSERA_CHECK(has_float_elements(dtype) &&
                numel(dims) == static_cast<std::int64_t>(elements.size()));
  auto tensor = Tensor::zeros(dtype, dims);
  TESSERA_CHECK(tensor.has_value());
  void* data = tensor->mutable_data();
  const auto write = [&](auto* to, auto from_double) {
    std::transform(elements.begin(), elements.end(), to, from_double);
  };
  const auto narrow = [](double x) { return static_cast<float>(x); };
  switch (dtype) {
    case DType::kFp64: write(static_cast<double*>(data), [](double x) { return x; }); break;
    case DType::kFp32: write(static_cast<float*>(data), narrow); break;
    case DType::kFp16:
      write(static_cast<std::uint16_t*>(data), [&](double x) { return fp32_to_fp16(narrow(x)); });
      break;
    default:
      write(static_cast<std::uint16_t*>(data), [&](double x) { return fp32_to_bf16(narrow(x)); });
      break;
  }
  return *std::move(tensor);
}

}  // namespace tessera::passes
