#include "compiler/drawn.h"

#include <algorithm>
#include <random>

#include "base/float_convert.h"

namespace tessera::compiler {

Result<Tensor> drawn_tensor(DType dtype, const Dims& dims, std::uint32_t seed,
                            std::int64_t integer) {
  TESSERA_ASSIGN(Tensor result, Tensor::zeros(dtype, dims));
  if (dtype == DType::kString || (!is_float(dtype) && integer == 0)) return result;
  TESSERA_ASSIGN(Tensor values, Tensor::zeros(DType::kFp32, dims));
  auto* elements = static_cast<float*>(values.mutable_data());
  std::minstd_rand random(seed);
  for (std::int64_t i = 0; i < values.numel(); ++i)
    elements[i] = is_float(dtype) ? 2.0F * static_cast<float>(random()) /
                                            static_cast<float>(std::minstd_rand::max()) -
                                        1.0F
                                  : static_cast<float>(integer);
  cast_elements(values.view(), result.mutable_view(), true);
  return result;
}

}  // namespace tessera::compiler
