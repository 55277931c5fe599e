#include "io/npy_header.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/checked.h"

namespace tessera::io {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kVersionEnd = 8;  // magic, major, minor
constexpr std::size_t kAlignment = 64;

tl::unexpected<Error> damaged(std::string message) {
  return fail(ErrorCode::kDataLoss, std::move(message));
}

std::uint64_t little_endian(std::string_view text, std::size_t offset, std::size_t width) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < width; ++i) {
    value |= static_cast<std::uint64_t>(static_cast<unsigned char>(text[offset + i])) << (8 * i);
  }
  return value;
}

// The Python literal of a header: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }.
class DictParser {
 public:
  explicit DictParser(std::string_view text) : text_(text) {}

  Result<NpyHeader> parse() {
    NpyHeader header;
    if (!consume("{")) return expected("'{'");
    while (!consume("}")) {
      TESSERA_ASSIGN(const std::string key, quoted());
      if (!consume(":")) return expected("':'");
      TESSERA_TRY(value(key, header));
      if (consume("}")) break;
      if (!consume(",")) return expected("',' or '}'");
    }
    skip_spaces();
    if (!text_.empty()) return expected("the end of the header");
    if (!descr_ || !fortran_order_ || !shape_) {
      return damaged("expected the keys 'descr', 'fortran_order' and 'shape' in the npy header");
    }
    return header;
  }

 private:
  void skip_spaces() {
    const auto end = text_.find_first_not_of(" \n\t\r");
    text_.remove_prefix(std::min(end, text_.size()));
  }

  bool consume(std::string_view token) {
    skip_spaces();
    if (!text_.starts_with(token)) return false;
    text_.remove_prefix(token.size());
    return true;
  }

  tl::unexpected<Error> expected(std::string_view what) {
    skip_spaces();
    std::string found(text_.substr(0, 32));
    found.erase(found.find_last_not_of(" \n") + 1);
    found = found.empty() ? "its end" : "'" + found + "'";
    return damaged("expected " + std::string(what) + " in the npy header, found " + found);
  }

  Status value(const std::string& key, NpyHeader& header) {
    if (key == "descr" && !descr_) {
      if (consume("[")) {
        return fail(ErrorCode::kUnimplemented, "structured arrays are not read");
      }
      TESSERA_ASSIGN(header.descr, quoted());
      descr_ = true;
    } else if (key == "fortran_order" && !fortran_order_) {
      header.fortran_order = consume("True");
      if (!header.fortran_order && !consume("False")) return expected("True or False");
      fortran_order_ = true;
    } else if (key == "shape" && !shape_) {
      TESSERA_ASSIGN(header.shape, tuple());
      shape_ = true;
    } else {
      return damaged("unexpected or repeated key '" + key + "' in the npy header");
    }
    return {};
  }

  Result<std::string> quoted() {
    skip_spaces();
    const char quote = text_.empty() ? '\0' : text_.front();
    if (quote != '\'' && quote != '"') return expected("a quoted text");
    const std::size_t end = text_.find(quote, 1);
    if (end == std::string_view::npos) return expected("a closing quote");
    std::string content(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return content;
  }

  Result<Dims> tuple() {
    Dims dims;
    if (!consume("(")) return expected("'('");
    while (!consume(")")) {
      skip_spaces();
      std::int64_t dim = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), dim);
      if (error != std::errc() || dim < 0) return expected("a size");
      text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
      dims.push_back(dim);
      consume("L");  // Python 2 wrote long integers so
      if (consume(")")) break;
      if (!consume(",")) return expected("',' or ')'");
    }
    return dims;
  }

  std::string_view text_;
  bool descr_ = false;
  bool fortran_order_ = false;
  bool shape_ = false;
};

}  // namespace

Result<NpyHeader> parse_npy_header(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (!text.starts_with(kMagic)) {
    return fail(ErrorCode::kInvalidArgument, "expected an npy file, which starts with \\x93NUMPY");
  }
  if (text.size() < kVersionEnd) return damaged("the npy header is cut off");
  const int major = static_cast<unsigned char>(text[6]);
  const int minor = static_cast<unsigned char>(text[7]);
  if (major < 1 || major > 3 || minor != 0) {
    return fail(ErrorCode::kUnimplemented, "expected npy version 1.0, 2.0 or 3.0, found " +
                                               std::to_string(major) + "." + std::to_string(minor));
  }
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  if (text.size() < kVersionEnd + length_bytes) return damaged("the npy header is cut off");
  const auto length = little_endian(text, kVersionEnd, length_bytes);
  const std::size_t start = kVersionEnd + length_bytes;
  if (length > kMaxNpyHeaderBytes) {
    return damaged("expected an npy header of at most " + std::to_string(kMaxNpyHeaderBytes) +
                   " bytes, found " + std::to_string(length));
  }
  if (text.size() - start < length) return damaged("the npy header is cut off");
  TESSERA_ASSIGN(NpyHeader header, DictParser(text.substr(start, length)).parse());
  header.size_bytes = start + length;
  return header;
}

std::string print_npy_header(std::string_view descr, const Dims& shape) {
  std::string dict = "{'descr': '" + std::string(descr) + "', 'fortran_order': False, 'shape': (";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    dict += std::to_string(shape[i]);
    if (i + 1 < shape.size() || shape.size() == 1) dict += ',';
    if (i + 1 < shape.size()) dict += ' ';
  }
  dict += "), }";
  const std::size_t unpadded = kVersionEnd + 2 + dict.size() + 1;
  const std::size_t width = unpadded + kAlignment <= UINT16_MAX ? 2 : 4;
  const auto total = static_cast<std::size_t>(
      align_up(static_cast<std::int64_t>(kVersionEnd + width + dict.size() + 1), kAlignment));
  const std::size_t length = total - kVersionEnd - width;
  std::string header(kMagic);
  header += static_cast<char>(width == 2 ? 1 : 2);
  header += '\0';
  for (std::size_t i = 0; i < width; ++i) header += static_cast<char>((length >> (8 * i)) & 0xFF);
  header += dict;
  header.append(total - header.size() - 1, ' ');
  return header + '\n';
}

}  // namespace tessera::io
