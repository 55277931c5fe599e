#include "passes/float_elements.h"

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
  for (std::size_t i = 0; i < elements.size(); ++i) {
    switch (view.dtype) {
      case DType::kFp64: elements[i] = view.as<double>()[i]; break;
      case DType::kFp32: elements[i] = view.as<float>()[i]; break;
      case DType::kFp16: elements[i] = fp16_to_fp32(view.as<std::uint16_t>()[i]); break;
      default: elements[i] = bf16_to_fp32(view.as<std::uint16_t>()[i]); break;
    }
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
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const auto narrow = static_cast<float>(elements[i]);
    switch (dtype) {
      case DType::kFp64: static_cast<double*>(data)[i] = elements[i]; break;
      case DType::kFp32: static_cast<float*>(data)[i] = narrow; break;
      case DType::kFp16: static_cast<std::uint16_t*>(data)[i] = fp32_to_fp16(narrow); break;
      default: static_cast<std::uint16_t*>(data)[i] = fp32_to_bf16(narrow); break;
    }
  }
  return *std::move(tensor);
}

}  // namespace tessera::passes
