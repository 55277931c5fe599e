#pragma once

// The header of a .npy file.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/dims.h"

namespace tessera::io {

struct NpyHeader {
  std::string descr;  // "<f4"
  bool fortran_order = false;
  Dims shape;
  std::size_t size_bytes = 0;  // of the header; the elements follow
};

// The longest header that parse_npy_header can want to see; NumPy's own limit is lower.
inline constexpr std::size_t kMaxNpyHeaderBytes = 1 << 20;

// Reads the header at the start of `bytes`. Errors: no magic, an unknown version, a header that is
// cut off or damaged.
Result<NpyHeader> parse_npy_header(std::span<const std::byte> bytes);

// A header of version 1.0 (2.0 where it does not fit), padded to a multiple of 64 bytes as NumPy
// does.
std::string print_npy_header(std::string_view descr, const Dims& shape);

}  // namespace tessera::io
