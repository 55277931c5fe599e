#include "ir/text_tensor.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/float_convert.h"
#include "base/shape.h"

namespace tessera::ir {
namespace {

template <typename T>
T load(const void* data, std::int64_t index) {
  T value;
  std::memcpy(&value,
              static_cast<const std::byte*>(data) + index * static_cast<std::int64_t>(sizeof(T)),
              sizeof(T));
  return value;
}

template <typename T>
void store(void* data, std::int64_t index, T value) {
  std::memcpy(static_cast<std::byte*>(data) + index * static_cast<std::int64_t>(sizeof(T)), &value,
              sizeof(T));
}

template <typename Float, typename Bits>
std::string decimal_or_bits(Float value, Bits bits) {
  if (!std::isfinite(value)) return fmt::format("0x{:0{}x}", bits, sizeof(Bits) * 2);
  return fmt::format("{}", value);
}

std::int64_t sign_extend(std::uint8_t value, int bits) {
  const int sign = 1 << (bits - 1);
  return static_cast<std::int64_t>(value) - (value >= sign ? 2 * sign : 0);
}

// Elements as they are written; a complex number counts two.
std::int64_t written_count(DType dtype, std::int64_t numel) {
  return is_complex(dtype) ? 2 * numel : numel;
}

std::string print_element(DType dtype, const void* data, std::int64_t i) {
  switch (dtype) {
    case DType::kComplex64:
    case DType::kFp32: return decimal_or_bits(load<float>(data, i), load<std::uint32_t>(data, i));
    case DType::kComplex128:
    case DType::kFp64: return decimal_or_bits(load<double>(data, i), load<std::uint64_t>(data, i));
    case DType::kFp16:
      return decimal_or_bits(fp16_to_fp32(load<std::uint16_t>(data, i)),
                             load<std::uint16_t>(data, i));
    case DType::kBf16:
      return decimal_or_bits(bf16_to_fp32(load<std::uint16_t>(data, i)),
                             load<std::uint16_t>(data, i));
    case DType::kBool:
    case DType::kUInt8: return fmt::format("{}", load<std::uint8_t>(data, i));
    case DType::kInt8: return fmt::format("{}", load<std::int8_t>(data, i));
    case DType::kUInt16: return fmt::format("{}", load<std::uint16_t>(data, i));
    case DType::kInt16: return fmt::format("{}", load<std::int16_t>(data, i));
    case DType::kUInt32: return fmt::format("{}", load<std::uint32_t>(data, i));
    case DType::kInt32: return fmt::format("{}", load<std::int32_t>(data, i));
    case DType::kUInt64: return fmt::format("{}", load<std::uint64_t>(data, i));
    case DType::kInt64: return fmt::format("{}", load<std::int64_t>(data, i));
    case DType::kFp8E4M3Fn:
    case DType::kFp8E4M3FnUz:
    case DType::kFp8E5M2:
    case DType::kFp8E5M2FnUz:
    case DType::kFp8E8M0: return fmt::format("0x{:02x}", load<std::uint8_t>(data, i));
    case DType::kFp6E2M3:
    case DType::kFp6E3M2: return fmt::format("0x{:02x}", packed_get(data, i, 6));
    case DType::kFp4E2M1: return fmt::format("0x{:x}", packed_get(data, i, 4));
    case DType::kUInt4:
    case DType::kUInt2: return fmt::format("{}", packed_get(data, i, bits_of(dtype)));
    case DType::kInt4:
    case DType::kInt2:
      return fmt::format("{}", sign_extend(packed_get(data, i, bits_of(dtype)), bits_of(dtype)));
    case DType::kString: return quoted(static_cast<const std::string*>(data)[i]);
    case DType::kUndefined: break;
  }
  return {};
}

// ---- Parsing ------------------------------------------------------------------------------------

template <typename T>
bool parse_number(std::string_view text, T& value, int base) {
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value, base);
  return parsed.ec == std::errc() && parsed.ptr == end;
}

template <typename T>
bool store_integer(std::string_view text, void* data, std::int64_t i) {
  T value = 0;
  if (!parse_number(text, value, 10)) return false;
  store(data, i, value);
  return true;
}

// Bits that stand as "0x..." with the digits of their width.
template <typename Bits>
bool parse_bits(std::string_view text, Bits& bits) {
  return text.starts_with("0x") && parse_number(text.substr(2), bits, 16);
}

template <typename Float, typename Bits>
bool store_float(std::string_view text, void* data, std::int64_t i) {
  Bits bits = 0;
  if (!parse_bits(text, bits)) {
    Float value = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return false;
    bits = std::bit_cast<Bits>(value);
  }
  store(data, i, bits);
  return true;
}

bool store_half(DType dtype, std::string_view text, void* data, std::int64_t i) {
  std::uint16_t bits = 0;
  if (!parse_bits(text, bits)) {
    float value = 0;
    if (!store_float<float, std::uint32_t>(text, &value, 0)) return false;
    bits = dtype == DType::kFp16 ? fp32_to_fp16(value) : fp32_to_bf16(value);
  }
  store(data, i, bits);
  return true;
}

bool store_packed(DType dtype, std::string_view text, void* data, std::int64_t i) {
  const int bits = bits_of(dtype);
  std::int64_t value = 0;
  if (is_float(dtype) ? !parse_bits(text, value) : !parse_number(text, value, 10)) return false;
  const bool is_signed = dtype == DType::kInt4 || dtype == DType::kInt2;
  const std::int64_t min = is_signed ? -(1 << (bits - 1)) : 0;
  const std::int64_t max = (1 << (is_signed ? bits - 1 : bits)) - 1;
  if (value < min || value > max) return false;
  packed_set(data, i, bits, static_cast<std::uint8_t>(value & ((1 << bits) - 1)));
  return true;
}

bool store_number(DType dtype, std::string_view text, void* data, std::int64_t i) {
  switch (dtype) {
    case DType::kComplex64:
    case DType::kFp32: return store_float<float, std::uint32_t>(text, data, i);
    case DType::kComplex128:
    case DType::kFp64: return store_float<double, std::uint64_t>(text, data, i);
    case DType::kFp16:
    case DType::kBf16: return store_half(dtype, text, data, i);
    case DType::kBool:
      return (text == "0" || text == "1") && store_integer<std::uint8_t>(text, data, i);
    case DType::kUInt8: return store_integer<std::uint8_t>(text, data, i);
    case DType::kInt8: return store_integer<std::int8_t>(text, data, i);
    case DType::kUInt16: return store_integer<std::uint16_t>(text, data, i);
    case DType::kInt16: return store_integer<std::int16_t>(text, data, i);
    case DType::kUInt32: return store_integer<std::uint32_t>(text, data, i);
    case DType::kInt32: return store_integer<std::int32_t>(text, data, i);
    case DType::kUInt64: return store_integer<std::uint64_t>(text, data, i);
    case DType::kInt64: return store_integer<std::int64_t>(text, data, i);
    case DType::kFp8E4M3Fn:
    case DType::kFp8E4M3FnUz:
    case DType::kFp8E5M2:
    case DType::kFp8E5M2FnUz:
    case DType::kFp8E8M0: {
      std::uint8_t bits = 0;
      if (!parse_bits(text, bits)) return false;
      store(data, i, bits);
      return true;
    }
    case DType::kFp6E2M3:
    case DType::kFp6E3M2:
    case DType::kFp4E2M1:
    case DType::kUInt4:
    case DType::kInt4:
    case DType::kUInt2:
    case DType::kInt2: return store_packed(dtype, text, data, i);
    case DType::kString:
    case DType::kUndefined: break;
  }
  return false;
}

// The tokens between '[' and ']'.
Result<std::vector<Token>> parse_list(Lexer& lexer) {
  TESSERA_TRY(lexer.expect_symbol("["));
  std::vector<Token> tokens;
  if (lexer.accept_symbol("]")) return tokens;
  while (true) {
    const Token::Kind kind = lexer.peek().kind;
    if (kind != Token::Kind::kNumber && kind != Token::Kind::kString)
      return lexer.expected("an element");
    tokens.push_back(lexer.next());
    if (lexer.accept_symbol("]")) return tokens;
    if (!lexer.accept_symbol(",")) return lexer.expected("',' or ']'");
  }
}

}  // namespace

std::string print_elements(const TensorView& view) {
  std::string text = "[";
  const std::int64_t count = written_count(view.dtype, view.numel());
  for (std::int64_t i = 0; i < count; ++i) {
    if (i > 0) text += ", ";
    text += print_element(view.dtype, view.data, i);
  }
  return text + "]";
}

Result<Tensor> parse_elements(Lexer& lexer, DType dtype, Dims dims) {
  const std::size_t offset = lexer.peek().offset;
  const auto numel = checked_numel(dims);
  if (!numel) return lexer.error_at(offset, numel.error().message);
  TESSERA_ASSIGN(const std::vector<Token> tokens, parse_list(lexer));
  const std::size_t parts = is_complex(dtype) ? 2 : 1;
  if (tokens.size() % parts != 0 || tokens.size() / parts != static_cast<std::size_t>(*numel)) {
    return lexer.error_at(
        offset, fmt::format("expected {} elements for {}{}, found {}", *numel, to_string(dtype),
                            to_string(to_shape(dims)), tokens.size() / parts));
  }
  auto tensor = Tensor::zeros(dtype, std::move(dims));
  if (!tensor) return lexer.error_at(offset, tensor.error().message);
  void* data = tensor->mutable_data();
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const bool is_string = tokens[i].kind == Token::Kind::kString;
    const auto index = static_cast<std::int64_t>(i);
    if (is_string && dtype == DType::kString) {
      static_cast<std::string*>(data)[i] = tokens[i].text;
    } else if (is_string || !store_number(dtype, tokens[i].text, data, index)) {
      return lexer.error_at(tokens[i].offset, fmt::format("expected an element of {}, found '{}'",
                                                          to_string(dtype), tokens[i].text));
    }
  }
  return *std::move(tensor);
}

std::string print_float(float value) {
  std::string text = decimal_or_bits(value, std::bit_cast<std::uint32_t>(value));
  if (text.find_first_of(".ex") == std::string::npos) text += ".0";
  return text;
}

std::string print_double(double value) {
  return decimal_or_bits(value, std::bit_cast<std::uint64_t>(value));
}

Result<float> parse_float(Lexer& lexer) {
  float value = 0;
  if (lexer.peek().kind != Token::Kind::kNumber ||
      !store_float<float, std::uint32_t>(lexer.peek().text, &value, 0)) {
    return lexer.expected("a float");
  }
  lexer.next();
  return value;
}

}  // namespace tessera::ir
