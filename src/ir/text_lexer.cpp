#include "ir/text_lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>

#include "base/shown_text.h"

namespace tessera::ir {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_word(char c) {
  return is_letter(c) || is_digit(c) || c == '.';
}
bool is_bare_name(char c) {
  return is_word(c) || c == '/' || c == '-';
}

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::string found_text(const Token& token) {
  switch (token.kind) {
    case Token::Kind::kEnd: return "the end of the text";
    case Token::Kind::kInvalid: return token.text;
    case Token::Kind::kString: return quoted(token.text);
    case Token::Kind::kValue: return "'%" + token.text + "'";
    default: return "'" + token.text + "'";
  }
}

}  // namespace

std::string quoted(std::string_view text) {
  std::string result = "\"";
  while (!text.empty()) {
    const std::size_t length = visible_length(text);
    if (length == 0) append_hex(text.front(), result);
    if (text.front() == '"' || text.front() == '\\') result += '\\';
    result += text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return result + "\"";
}

Lexer::Lexer(std::string_view source) : source_(source) {
  scan();
}

Token Lexer::next() {
  Token taken = std::move(token_);
  scan();
  return taken;
}

bool Lexer::at_symbol(std::string_view symbol) const {
  return token_.kind == Token::Kind::kSymbol && token_.text == symbol;
}

bool Lexer::at_word(std::string_view word) const {
  return token_.kind == Token::Kind::kWord && token_.text == word;
}

bool Lexer::accept_symbol(std::string_view symbol) {
  if (!at_symbol(symbol)) return false;
  scan();
  return true;
}

bool Lexer::accept_word(std::string_view word) {
  if (!at_word(word)) return false;
  scan();
  return true;
}

Status Lexer::expect_symbol(std::string_view symbol) {
  if (!accept_symbol(symbol)) return expected(fmt::format("'{}'", symbol));
  return {};
}

Status Lexer::expect_word(std::string_view word) {
  if (!accept_word(word)) return expected(fmt::format("'{}'", word));
  return {};
}

Result<std::string> Lexer::expect_string(std::string_view what) {
  if (token_.kind != Token::Kind::kString) return expected(what);
  return next().text;
}

Result<std::string> Lexer::expect_value() {
  if (token_.kind != Token::Kind::kValue) return expected("a value such as '%x'");
  return next().text;
}

Result<std::int64_t> Lexer::expect_int(std::string_view what) {
  std::int64_t number = 0;
  const char* end = token_.text.data() + token_.text.size();
  const auto parsed = std::from_chars(token_.text.data(), end, number);
  if (token_.kind != Token::Kind::kNumber || parsed.ec != std::errc() || parsed.ptr != end)
    return expected(what);
  scan();
  return number;
}

Result<double> Lexer::expect_double(std::string_view what) {
  if (token_.kind != Token::Kind::kNumber) return expected(what);
  const char* begin = token_.text.data();
  const char* end = begin + token_.text.size();
  double number = 0;
  if (token_.text.starts_with("0x") && token_.text.size() == 18) {
    std::uint64_t bits = 0;
    const auto parsed = std::from_chars(begin + 2, end, bits, 16);
    if (parsed.ec != std::errc() || parsed.ptr != end) return expected(what);
    number = std::bit_cast<double>(bits);
  } else {
    const auto parsed = std::from_chars(begin, end, number);
    if (parsed.ec != std::errc() || parsed.ptr != end) return expected(what);
  }
  scan();
  return number;
}

std::string_view Lexer::take_type() {
  return take_balanced(true);
}

std::string_view Lexer::take_dim() {
  return take_balanced(false);
}

// From the current token on. A type ends with the bracket that closes it, a dimension before what
// cannot belong to it; names of symbols in back quotes may hold any character.
std::string_view Lexer::take_balanced(bool stops_at_close) {
  const std::size_t begin = token_.offset;
  std::size_t at = begin;
  int depth = 0;
  for (; at < source_.size(); ++at) {
    const char c = source_[at];
    if (c == '`') {
      for (++at; at < source_.size() && source_[at] != '`'; ++at) at += source_[at] == '\\' ? 1 : 0;
      if (at >= source_.size()) break;
    } else if (c == '(' || c == '[') {
      ++depth;
    } else if (c == ')' || c == ']') {
      if (depth == 0) break;
      --depth;
      if (depth == 0 && stops_at_close) {
        ++at;
        break;
      }
    } else if (depth == 0 &&
               (c == ',' || c == '\n' || (stops_at_close && (c == ' ' || c == '{' || c == '=')))) {
      break;
    }
  }
  position_ = std::min(at, source_.size());
  const std::string_view taken = source_.substr(begin, position_ - begin);
  scan();
  return taken;
}

tl::unexpected<Error> Lexer::expected(std::string_view what) const {
  return error_at(token_.offset, fmt::format("expected {}, found {}", what, found_text(token_)));
}

tl::unexpected<Error> Lexer::error_at(std::size_t offset, std::string_view message) const {
  const std::string_view before = source_.substr(0, offset);
  const auto line = std::count(before.begin(), before.end(), '\n') + 1;
  const std::size_t column =
      offset - (before.rfind('\n') + 1) + 1;  // npos + 1 is 0: the first line
  return fail(ErrorCode::kInvalidArgument, fmt::format("line {}:{}: {}", line, column, message));
}

// ---- Scanning -----------------------------------------------------------------------------------

void Lexer::skip_blanks() {
  while (position_ < source_.size()) {
    const char c = source_[position_];
    if (source_.substr(position_, 2) == "//") {
      position_ = std::min(source_.find('\n', position_), source_.size());
    } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      ++position_;
    } else {
      return;
    }
  }
}

void Lexer::invalid(std::string message) {
  token_.kind = Token::Kind::kInvalid;
  token_.text = std::move(message);
  position_ = source_.size();
}

void Lexer::scan() {
  skip_blanks();
  token_ = Token{};
  token_.offset = position_;
  if (position_ >= source_.size()) return;
  const char c = source_[position_];
  const bool is_negative =
      c == '-' && position_ + 1 < source_.size() && is_digit(source_[position_ + 1]);
  if (is_letter(c)) {
    token_.kind = Token::Kind::kWord;
    while (position_ < source_.size() && is_word(source_[position_]))
      token_.text += source_[position_++];
  } else if (is_digit(c) || is_negative) {
    scan_number();
  } else if (c == '"') {
    scan_string();
  } else if (c == '%') {
    scan_value();
  } else if (c > ' ' && c < 0x7f) {
    token_.kind = Token::Kind::kSymbol;
    token_.text = source_.substr(position_, source_.substr(position_, 2) == "->" ? 2 : 1);
    position_ += token_.text.size();
  } else {
    invalid(fmt::format("the byte 0x{:02x}", static_cast<unsigned char>(c)));
  }
}

void Lexer::scan_number() {
  token_.kind = Token::Kind::kNumber;
  const bool is_hex = source_.substr(position_, 2) == "0x";
  const auto belongs = [&](char c) {
    if (is_word(c)) return true;
    const char before = token_.text.empty() ? '\0' : token_.text.back();
    return !is_hex && (c == '+' || c == '-') && (before == '\0' || before == 'e' || before == 'E');
  };
  while (position_ < source_.size() && belongs(source_[position_]))
    token_.text += source_[position_++];
}

void Lexer::scan_string() {
  token_.kind = Token::Kind::kString;
  for (++position_; position_ < source_.size(); ++position_) {
    const char c = source_[position_];
    if (c == '"') {
      ++position_;
      return;
    }
    if (c == '\n') break;
    if (c != '\\') {
      token_.text += c;
      continue;
    }
    const std::string_view escape = source_.substr(position_ + 1, 3);
    if (!escape.empty() && (escape.front() == '"' || escape.front() == '\\')) {
      token_.text += escape.front();
      position_ += 1;
    } else if (escape.size() == 3 && escape.front() == 'x' && hex_digit(escape[1]) >= 0 &&
               hex_digit(escape[2]) >= 0) {
      token_.text += static_cast<char>(hex_digit(escape[1]) * 16 + hex_digit(escape[2]));
      position_ += 3;
    } else {
      return invalid("an unknown escape in a string (known: \\\", \\\\, \\xNN)");
    }
  }
  invalid("a string that is not closed");
}

void Lexer::scan_value() {
  ++position_;
  if (position_ < source_.size() && source_[position_] == '"') {
    scan_string();
    if (token_.kind == Token::Kind::kString) token_.kind = Token::Kind::kValue;
    return;
  }
  token_.kind = Token::Kind::kValue;
  while (position_ < source_.size() && is_bare_name(source_[position_]))
    token_.text += source_[position_++];
  if (token_.text.empty()) invalid("'%' without a name");
}

}  // namespace tessera::ir
