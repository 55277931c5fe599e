#include "base/string_tensor.h"

#include <cstring>

namespace tessera {

Tensor encode_strings(const TensorView& strings) {
  TESSERA_CHECK(strings.dtype == DType::kString);
  const auto* elements = strings.as<std::string>();
  const auto count = static_cast<std::size_t>(strings.numel());
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i < count; ++i)
    for (int shift = 0; shift < 64; shift += 8)
      bytes.push_back(static_cast<std::uint8_t>(elements[i].size() >> shift));
  for (std::size_t i = 0; i < count; ++i)
    bytes.insert(bytes.end(), elements[i].begin(), elements[i].end());
  return Tensor::of<std::uint8_t>(DType::kUInt8, {static_cast<std::int64_t>(bytes.size())}, bytes);
}

Result<Tensor> decode_strings(std::span<const std::byte> bytes, const Dims& dims) {
  const auto damaged = [] {
    return fail(ErrorCode::kDataLoss, "the lengths of the strings do not add up to their bytes");
  };
  TESSERA_ASSIGN(Tensor tensor, Tensor::zeros(DType::kString, dims));
  auto* elements = static_cast<std::string*>(tensor.mutable_data());
  const auto count = static_cast<std::size_t>(tensor.numel());
  if (count > bytes.size() / 8) return damaged();
  std::size_t at = count * 8;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t size = 0;
    for (std::size_t b = 0; b < 8; ++b)
      size |= std::to_integer<std::uint64_t>(bytes[i * 8 + b]) << (8 * b);
    if (size > bytes.size() - at) return damaged();
    elements[i].assign(reinterpret_cast<const char*>(bytes.data() + at), size);
    at += size;
  }
  if (at != bytes.size()) return damaged();
  return tensor;
}

}  // namespace tessera
