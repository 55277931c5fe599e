#include "base/dims.h"

#include "base/checked.h"

namespace tessera {
namespace {

std::string listed(const Dims& dims) {
  std::string text = "[";
  for (std::size_t i = 0; i < dims.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(dims[i]);
  }
  return text + "]";
}

// Bytes of `count` elements; nothing on overflow.
std::optional<std::int64_t> bytes_for(DType dtype, std::int64_t count) {
  if (dtype == DType::kString) return checked_mul(count, sizeof(std::string));
  const int bits = bits_of(dtype);
  if (bits >= 8) return checked_mul(count, bits / 8);
  if (bits == 0) return 0;
  return count / 8 * bits + (count % 8 * bits + 7) / 8;
}

}  // namespace

Result<std::int64_t> checked_numel(const Dims& dims) {
  bool empty = false;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0) {
      return fail(ErrorCode::kInvalidArgument, "dim " + std::to_string(i) + " of " + listed(dims) +
                                                   " is negative; expected at least 0");
    }
    empty = empty || dims[i] == 0;
  }
  if (empty) return 0;
  std::int64_t count = 1;
  for (const std::int64_t dim : dims) {
    const auto product = checked_mul(count, dim);
    if (!product) {
      return fail(ErrorCode::kOutOfRange,
                  "the number of elements of " + listed(dims) + " overflows 63 bits");
    }
    count = *product;
  }
  return count;
}

Result<std::int64_t> checked_nbytes(DType dtype, const Dims& dims) {
  auto count = checked_numel(dims);
  if (!count) return count;
  if (dtype != DType::kString && bits_of(dtype) == 0) {
    return fail(ErrorCode::kInvalidArgument, "expected a tensor with an element type, found '" +
                                                 std::string(to_string(dtype)) + "'");
  }
  const auto bytes = bytes_for(dtype, *count);
  if (!bytes) {
    return fail(ErrorCode::kOutOfRange,
                "the bytes of " + std::string(to_string(dtype)) + listed(dims) + " exceed 63 bits");
  }
  return *bytes;
}

std::int64_t numel(const Dims& dims) {
  const auto count = checked_numel(dims);
  TESSERA_CHECK(count.has_value());
  return *count;
}

std::int64_t nbytes(DType dtype, const Dims& dims) {
  const auto bytes = bytes_for(dtype, numel(dims));
  TESSERA_CHECK(bytes.has_value());
  return *bytes;
}

std::string to_string(const Dims& dims) {
  if (dims.empty()) return "scalar";
  std::string text;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    text += (i == 0 ? "" : "x") + std::to_string(dims[i]);
  }
  return text;
}

}  // namespace tessera
