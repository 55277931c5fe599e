#include "compiler/drawn.h"

#include <random>

#include "base/float_convert.h"

namespace tessera::compiler {

Result<Tensor> tensor_of(DType dtype, const Dims& dims, const std::function<float()>& next) {
  TESSERA_ASSIGN(Tensor result, Tensor::zeros(dtype, dims));
  if (dtype == DType::kString) return result;
  const DType part = dtype == DType::kComplex64    ? DType::kFp32
                     : dtype == DType::kComplex128 ? DType::kFp64
                                                   : dtype;
  const Dims parts = {result.numel(), part == dtype ? 1 : 2};
  TESSERA_ASSIGN(Tensor values, Tensor::zeros(DType::kFp32, parts));
  auto* elements = static_cast<float*>(values.mutable_data());
  for (std::int64_t i = 0; i < values.numel(); ++i) elements[i] = next();
  cast_elements(values.view(), {part, parts, result.mutable_data()}, true);
  return result;
}

Result<Tensor> drawn_tensor(DType dtype, const Dims& dims, std::uint32_t seed,
                            std::int64_t integer) {
  if (!is_float(dtype) && !is_complex(dtype)) {
    if (integer == 0) return Tensor::zeros(dtype, dims);
    return tensor_of(dtype, dims, [=] { return static_cast<float>(integer); });
  }
  std::minstd_rand random(seed);
  return tensor_of(dtype, dims, [&] {
    return 2.0F * static_cast<float>(random()) / static_cast<float>(std::minstd_rand::max()) - 1.0F;
  });
}

}  // namespace tessera::compiler
