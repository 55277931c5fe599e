#include "io/bool_bytes.h"

#include <algorithm>

namespace tessera::io {

Tensor normalized_bools(Tensor tensor) {
  if (tensor.dtype() != DType::kBool) return tensor;
  const auto bytes = tensor.span<std::uint8_t>();
  if (std::ranges::all_of(bytes, [](std::uint8_t byte) { return byte <= 1; })) return tensor;
  std::vector<std::uint8_t> fixed(bytes.size());
  std::ranges::transform(bytes, fixed.begin(),
                         [](std::uint8_t byte) -> std::uint8_t { return byte != 0 ? 1 : 0; });
  return Tensor::of<std::uint8_t>(DType::kBool, tensor.dims(), fixed);
}

}  // namespace tessera::io
