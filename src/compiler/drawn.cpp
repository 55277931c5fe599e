#include "compiler/drawn.h"

#include <algorithm>
#include <random>

#include "base/float_convert.h"

namespace tessera::compiler {

Result<Tensor> drawn_tensor(DType dtype, const Dims& dims, std::uint32_t seed,
                            std::int64_t integer) {
  TESSERA_ASSIGN(Tensor result, Tensor::zeros(dtype, dims));
  const bool is_complex = dtype == DType::kComplex64 || dtype == DType::kComplex128;
  const bool is_real = is_float(dtype) || is_complex;
  if (dtype == DType::kString || (!is_real && integer == 0)) return result;
  const Dims parts = {result.numel(), is_complex ? 2 : 1};
  TESSERA_ASSIGN(Tensor values, Tensor::zeros(DType::kFp32, parts));
  auto* elements = static_cast<float*>(values.mutable_data());
  std::minstd_rand random(seed);
  for (std::int64_t i = 0; i < values.numel(); ++i)
    elements[i] = is_real ? 2.0F * static_cast<float>(random()) /
                                    static_cast<float>(std::minstd_rand::max()) -
                                1.0F
                          : static_cast<float>(integer);
  const DType part = dtype == DType::kComplex64    ? DType::kFp32
                     : dtype == DType::kComplex128 ? DType::kFp64
                                                   : dtype;
  cast_elements(values.view(), {part, parts, result.mutable_data()}, true);
  return result;
}

}  // namespace tessera::compiler
