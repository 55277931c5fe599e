#pragma once

// Tokens of the text form of the IR, with their places. Internal to ir/.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace tessera::ir {

struct Token {
  enum class Kind : std::uint8_t {
    kWord,     // letters, digits, '_', '.', not starting with a digit
    kValue,    // %name or %"any name"; `text` is the name
    kString,   // "..."; `text` is what it stands for
    kNumber,   // 3, -0.5, 1e-07, 0x7fc00000
    kSymbol,   // one character, or "->"
    kInvalid,  // `text` says what is wrong
    kEnd,
  };
  Kind kind = Kind::kEnd;
  std::string text;
  std::size_t offset = 0;  // where it starts
};

class Lexer {
 public:
  explicit Lexer(std::string_view source);

  [[nodiscard]] const Token& peek() const { return token_; }
  Token next();

  [[nodiscard]] bool at_symbol(std::string_view symbol) const;
  [[nodiscard]] bool at_word(std::string_view word) const;
  // Steps over it where it stands here.
  bool accept_symbol(std::string_view symbol);
  bool accept_word(std::string_view word);
  // Errors: something else stands here.
  Status expect_symbol(std::string_view symbol);
  Status expect_word(std::string_view word);
  Result<std::string> expect_string(std::string_view what);
  Result<std::string> expect_value();
  Result<std::int64_t> expect_int(std::string_view what);
  Result<double> expect_double(
      std::string_view what);  // a decimal, or 0x and 16 digits for its bits

  // The source from here to the end of a type ("fp32[batch, 3]", "seq(...)") or of a dimension (up
  // to ',', ']' or ')').
  std::string_view take_type();
  std::string_view take_dim();

  // "line 3:7: expected `what`, found ...", about the token that stands here.
  [[nodiscard]] tl::unexpected<Error> expected(std::string_view what) const;
  // "line 3:7: message", about the token that starts at `offset`.
  [[nodiscard]] tl::unexpected<Error> error_at(std::size_t offset, std::string_view message) const;

 private:
  void scan();
  void skip_blanks();
  void scan_string();
  void scan_number();
  void scan_value();
  void invalid(std::string message);
  std::string_view take_balanced(bool stops_at_close);

  std::string_view source_;
  std::size_t position_ = 0;  // after token_
  Token token_;
};

// The string with quotes around it and escapes where needed: any bytes; UTF-8 stays readable.
std::string quoted(std::string_view text);

}  // namespace tessera::ir
