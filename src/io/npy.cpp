#include "io/npy.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include "base/checked.h"
#include "base/file.h"
#include "base/float_convert.h"
#include "io/bool_bytes.h"
#include "io/npy_header.h"
#include "io/utf.h"

namespace tessera::io {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are stored little endian");

// How elements lie in a file.
struct Encoding {
  DType dtype = DType::kUndefined;
  std::int64_t width_bytes = 0;  // of an element
  std::int64_t swap_bytes = 1;   // of what a byte order applies to: half of a complex number
  bool big_endian = false;
  char kind = 0;
};

DType dtype_of(char kind, std::int64_t size_bytes) {
  const auto pick = [&](DType one, DType two, DType four, DType eight) {
    switch (size_bytes) {
      case 1: return one;
      case 2: return two;
      case 4: return four;
      case 8: return eight;
      default: return DType::kUndefined;
    }
  };
  constexpr DType kNone = DType::kUndefined;
  switch (kind) {
    case 'b': return pick(DType::kBool, kNone, kNone, kNone);
    case 'i': return pick(DType::kInt8, DType::kInt16, DType::kInt32, DType::kInt64);
    case 'u': return pick(DType::kUInt8, DType::kUInt16, DType::kUInt32, DType::kUInt64);
    case 'f': return pick(kNone, DType::kFp16, DType::kFp32, DType::kFp64);
    case 'c':
      if (size_bytes == 16) return DType::kComplex128;
      return size_bytes == 8 ? DType::kComplex64 : kNone;
    case 'U':
    case 'S': return DType::kString;
    default: return kNone;
  }
}

// "<f4": byte order, kind, size in bytes (in characters of 4 bytes for U).
Result<Encoding> parse_descr(std::string_view descr) {
  const auto unknown = [&] {
    return fail(ErrorCode::kUnimplemented,
                "expected an element type such as '<f4', '|u1' or '<U8', found '" +
                    std::string(descr) + "'");
  };
  std::string_view rest = descr;
  Encoding encoding;
  if (!rest.empty() && std::string_view("<>|=").find(rest.front()) != std::string_view::npos) {
    encoding.big_endian = rest.front() == '>';
    rest.remove_prefix(1);
  }
  if (rest.starts_with('O')) {
    return fail(ErrorCode::kUnimplemented, "pickled object arrays are not read");
  }
  if (rest.size() < 2) return unknown();
  encoding.kind = rest.front();
  std::int32_t size = 0;
  const auto [end, error] = std::from_chars(rest.data() + 1, rest.data() + rest.size(), size);
  if (error != std::errc() || end != rest.data() + rest.size() || size <= 0) return unknown();
  encoding.dtype = dtype_of(encoding.kind, size);
  if (encoding.dtype == DType::kUndefined) return unknown();
  encoding.width_bytes = encoding.kind == 'U' ? std::int64_t{4} * size : size;
  encoding.swap_bytes = encoding.kind == 'U'   ? 4
                        : encoding.kind == 'S' ? 1
                        : encoding.kind == 'c' ? size / 2
                                               : size;
  return encoding;
}

Status check_element_bytes(const NpyHeader& header, const Encoding& encoding, std::uint64_t found) {
  TESSERA_ASSIGN(const std::int64_t count, checked_numel(header.shape));
  const auto expected = checked_mul(count, encoding.width_bytes);
  if (expected && static_cast<std::uint64_t>(*expected) == found) return {};
  return fail(ErrorCode::kDataLoss,
              "expected " + (expected ? std::to_string(*expected) : "more than 2^63") +
                  " bytes for '" + header.descr + "' of shape " + to_string(header.shape) +
                  ", found " + std::to_string(found));
}

using Bytes = std::vector<std::byte>;

// Elements of `width` bytes from Fortran order (first index fastest) to row-major.
Bytes to_row_major(std::span<const std::byte> source, const Dims& dims, std::int64_t width) {
  Bytes target(source.size());
  const std::int64_t count = numel(dims);
  Dims index(dims.size(), 0);
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t offset = 0;
    for (std::size_t d = dims.size(); d-- > 0;) offset = offset * dims[d] + index[d];
    std::memcpy(target.data() + i * width, source.data() + offset * width,
                static_cast<std::size_t>(width));
    for (std::size_t d = dims.size(); d-- > 0 && ++index[d] == dims[d];) index[d] = 0;
  }
  return target;
}

void reverse_each(Bytes& bytes, std::int64_t width) {
  for (auto at = bytes.begin(); at != bytes.end(); at += width) std::reverse(at, at + width);
}

// One element of a U or S array: its trailing NULs are padding.
std::optional<std::string> decode_string(const std::byte* data, const Encoding& encoding) {
  const auto width = static_cast<std::size_t>(encoding.width_bytes);
  if (encoding.kind == 'S') {
    std::string text(reinterpret_cast<const char*>(data), width);
    text.erase(text.find_last_not_of('\0') + 1);
    return text;
  }
  std::u32string codes(width / 4, U'\0');
  std::memcpy(codes.data(), data, width);
  codes.erase(codes.find_last_not_of(U'\0') + 1);
  return utf32_to_utf8(codes);
}

Result<Tensor> decode_strings(std::span<const std::byte> bytes, const Encoding& encoding,
                              Dims dims) {
  TESSERA_ASSIGN(Tensor tensor, Tensor::zeros(DType::kString, std::move(dims)));
  auto* strings = static_cast<std::string*>(tensor.mutable_data());
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    auto text = decode_string(bytes.data() + i * encoding.width_bytes, encoding);
    if (!text) {
      return fail(ErrorCode::kDataLoss,
                  "element " + std::to_string(i) + " holds a code that is no character");
    }
    strings[i] = *std::move(text);
  }
  return tensor;
}

Result<Tensor> parse_elements(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                              const Encoding& encoding, NpyHeader header) {
  const bool swap = encoding.big_endian && encoding.swap_bytes > 1;
  const bool reorder = header.fortran_order && header.shape.size() > 1;
  if (swap || reorder) {
    auto copy =
        std::make_shared<Bytes>(reorder ? to_row_major(bytes, header.shape, encoding.width_bytes)
                                        : Bytes(bytes.begin(), bytes.end()));
    if (swap) reverse_each(*copy, encoding.swap_bytes);
    bytes = *copy;
    owner = std::move(copy);
  }
  if (encoding.dtype == DType::kString) {
    return decode_strings(bytes, encoding, std::move(header.shape));
  }
  return normalized_bools(
      Tensor::borrow(encoding.dtype, std::move(header.shape), bytes.data(), std::move(owner)));
}

// ---- Writing ----

std::string descr_of(DType dtype) {
  switch (dtype) {
    case DType::kBool: return "|b1";
    case DType::kInt8: return "|i1";
    case DType::kInt16: return "<i2";
    case DType::kInt32: return "<i4";
    case DType::kInt64: return "<i8";
    case DType::kUInt16:
    case DType::kBf16: return "<u2";
    case DType::kUInt32: return "<u4";
    case DType::kUInt64: return "<u8";
    case DType::kFp16: return "<f2";
    case DType::kFp32: return "<f4";
    case DType::kFp64: return "<f8";
    case DType::kComplex64: return "<c8";
    case DType::kComplex128: return "<c16";
    default: return "|u1";
  }
}

// Each element of a packed tensor in a byte of its own.
Result<Tensor> unpacked(const Tensor& tensor) {
  TESSERA_ASSIGN(Tensor bytes, Tensor::zeros(DType::kUInt8, tensor.dims()));
  auto* target = static_cast<std::uint8_t*>(bytes.mutable_data());
  const int bits = bits_of(tensor.dtype());
  for (std::int64_t i = 0; i < tensor.numel(); ++i) target[i] = packed_get(tensor.data(), i, bits);
  return bytes;
}

Result<NpyText> strings_to_npy(const Tensor& tensor) {
  std::vector<std::u32string> codes;
  std::size_t width = 1;  // NumPy reads no elements of no bytes
  for (const std::string& text : tensor.span<std::string>()) {
    auto element = utf8_to_utf32(text);
    const std::string name = "string " + std::to_string(codes.size());
    if (!element) return fail(ErrorCode::kInvalidArgument, name + " is not UTF-8");
    if (text.ends_with('\0')) {
      return fail(ErrorCode::kInvalidArgument,
                  name + " ends in NUL, which an npy file cannot hold");
    }
    width = std::max(width, element->size());
    codes.push_back(*std::move(element));
  }
  const auto size =
      checked_mul(static_cast<std::int64_t>(codes.size()), static_cast<std::int64_t>(4 * width));
  if (!size) return fail(ErrorCode::kOutOfRange, "the strings exceed 63 bits of bytes");
  TESSERA_ASSIGN(Tensor elements, Tensor::zeros(DType::kUInt8, {*size}));
  auto* target = static_cast<std::byte*>(elements.mutable_data());
  for (std::size_t i = 0; i < codes.size(); ++i) {
    std::memcpy(target + i * width * 4, codes[i].data(), codes[i].size() * 4);
  }
  return NpyText{print_npy_header("<U" + std::to_string(width), tensor.dims()),
                 std::move(elements)};
}

}  // namespace

Status check_npy_size(std::span<const std::byte> head, std::uint64_t size_bytes) {
  TESSERA_ASSIGN(const NpyHeader header, parse_npy_header(head));
  TESSERA_ASSIGN(const Encoding encoding, parse_descr(header.descr));
  return check_element_bytes(header, encoding, size_bytes - header.size_bytes);
}

Result<Tensor> parse_npy(std::span<const std::byte> bytes, std::shared_ptr<const void> owner) {
  TESSERA_ASSIGN(NpyHeader header, parse_npy_header(bytes));
  TESSERA_ASSIGN(const Encoding encoding, parse_descr(header.descr));
  const std::span<const std::byte> elements = bytes.subspan(header.size_bytes);
  TESSERA_TRY(check_element_bytes(header, encoding, elements.size()));
  return parse_elements(elements, std::move(owner), encoding, std::move(header));
}

Result<Tensor> read_npy(const std::filesystem::path& path) {
  TESSERA_ASSIGN(auto file, MappedFile::open(path));  // its errors name the path
  const auto bytes = file->bytes();
  auto tensor = parse_npy(bytes, std::move(file));
  if (!tensor) return tl::unexpected(in_context(std::move(tensor).error(), path.string()));
  return tensor;
}

Result<NpyText> to_npy(const Tensor& tensor) {
  TESSERA_CHECK(tensor.is_defined());
  if (tensor.dtype() == DType::kString) return strings_to_npy(tensor);
  std::string header = print_npy_header(descr_of(tensor.dtype()), tensor.dims());
  if (bits_of(tensor.dtype()) >= 8) return NpyText{std::move(header), tensor};
  TESSERA_ASSIGN(Tensor elements, unpacked(tensor));
  return NpyText{std::move(header), std::move(elements)};
}

Status write_npy(const std::filesystem::path& path, const Tensor& tensor) {
  auto text = to_npy(tensor);
  if (!text) return tl::unexpected(in_context(std::move(text).error(), path.string()));
  TESSERA_ASSIGN(const auto file, AtomicFile::create(path));
  TESSERA_TRY(file->write(text->header.data(), text->header.size()));
  TESSERA_TRY(
      file->write(text->elements.data(), static_cast<std::size_t>(text->elements.nbytes())));
  return file->commit();
}

}  // namespace tessera::io
