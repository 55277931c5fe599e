#pragma once

// NumPy's .npy files: one array, a text header before its bytes (format versions 1.0 to 3.0).

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "base/tensor.h"

namespace tessera::io {

// Reads bool, integers, floats, complex numbers and strings (U and S; UTF-32 becomes UTF-8), of
// either byte order, in C or Fortran order. Errors: a damaged header; bytes that disagree with the
// shape; an element type that has no ONNX type, or pickled objects.
Result<Tensor> read_npy(const std::filesystem::path& path);

// The same from memory. The result shares the bytes where it can; `owner` keeps them alive.
Result<Tensor> parse_npy(std::span<const std::byte> bytes, std::shared_ptr<const void> owner);

// Whether a file of `size_bytes` whose first bytes are `head` (its whole header at least) has just
// the elements that its header asks for. The errors are those of parse_npy.
Status check_npy_size(std::span<const std::byte> head, std::uint64_t size_bytes);

// The bytes of a .npy file: the header, then the elements.
struct NpyText {
  std::string header;
  Tensor elements;  // their bytes as NumPy stores them
};

// NumPy has no type for bf16, the 8-bit floats and the packed types. Their bit patterns are written
// as uint16 and uint8, one element of a packed type in each byte. Strings must be UTF-8 and not end
// in NUL, which NumPy cannot hold.
Result<NpyText> to_npy(const Tensor& tensor);

Status write_npy(const std::filesystem::path& path, const Tensor& tensor);

}  // namespace tessera::io
