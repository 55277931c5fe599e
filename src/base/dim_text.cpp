// The text form of dims: printer and parser.

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "base/dim_node.h"
#include "base/dim_parser.h"
#include "base/shown_text.h"

namespace tessera {
namespace detail {
namespace {

constexpr std::array<Dim::Op, 6> kOps = {Dim::Op::kFloorDiv, Dim::Op::kCeilDiv,
                                         Dim::Op::kMod,      Dim::Op::kMin,
                                         Dim::Op::kMax,      Dim::Op::kBroadcast};

// The text of a dim that is too large to keep; it parses back to one.
constexpr std::string_view kTooLarge = "too_large()";

bool starts_identifier(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool continues_identifier(char c) {
  return starts_identifier(c) || (c >= '0' && c <= '9');
}

std::string symbol_text(const std::string& name) {
  if (!name.empty() && starts_identifier(name.front()) &&
      std::all_of(name.begin(), name.end(), continues_identifier)) {
    return name;
  }
  std::string text = "`";
  for (std::string_view rest = name; !rest.empty();) {
    const std::size_t length = visible_length(rest);
    if (length == 0) {
      append_hex(rest.front(), text);
    } else {
      if (rest.front() == '`' || rest.front() == '\\') text += '\\';
      text += rest.substr(0, length);
    }
    rest.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return text + "`";
}

std::string factor_text(const Dim::Term& term) {
  if (!term.op) return symbol_text(term.name);
  return std::string(to_string(*term.op)) + "(" + term.a.to_string() + ", " + term.b.to_string() +
         ")";
}

// A monomial without its sign.
std::string monomial_text(const Monomial& monomial) {
  const auto magnitude = monomial.coefficient < 0
                             ? 0 - static_cast<std::uint64_t>(monomial.coefficient)
                             : static_cast<std::uint64_t>(monomial.coefficient);
  std::string text;
  if (magnitude != 1 || monomial.factors.empty()) text = std::to_string(magnitude);
  for (const Factor& factor : monomial.factors) {
    if (!text.empty()) text += "*";
    text += factor_text(*factor);
  }
  return text;
}

// The byte that "x1b" names.
std::optional<char> hex_byte(std::string_view text) {
  if (text.size() < 3 || text.front() != 'x') return std::nullopt;
  unsigned value = 0;
  const auto [stop, error] = std::from_chars(text.data() + 1, text.data() + 3, value, 16);
  if (error != std::errc() || stop != text.data() + 3) return std::nullopt;
  return static_cast<char>(static_cast<unsigned char>(value));
}

// Recursive descent: sum = ["-"] product {("+" | "-") product}; product = atom {"*" atom}.
class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<Dim> sum() {
    bool negative = consume('-');
    Dim total = 0;
    while (true) {
      TESSERA_ASSIGN(const Dim part, product(negative));
      total = total + part;
      if (consume('+')) {
        negative = false;
      } else if (consume('-')) {
        negative = true;
      } else {
        return total;
      }
    }
  }

  [[nodiscard]] std::string_view rest() const { return text_; }

 private:
  // As deep as the printer of the largest dim goes, with room for brackets.
  static constexpr int kMaxDepth = static_cast<int>(Dim::Node::kMaxSize) + 64;

  void skip_spaces() {
    while (!text_.empty() && (text_.front() == ' ' || text_.front() == '\t')) {
      text_.remove_prefix(1);
    }
  }

  // The spaces that follow a dim are left to the caller.
  bool consume(char token) {
    const std::string_view before = text_;
    skip_spaces();
    if (!text_.empty() && text_.front() == token) {
      text_.remove_prefix(1);
      return true;
    }
    text_ = before;
    return false;
  }

  tl::unexpected<Error> expected(std::string_view what) {
    const std::string found =
        text_.empty() ? "the end of the text" : "'" + std::string(text_) + "'";
    return fail(ErrorCode::kInvalidArgument,
                "expected " + std::string(what) + " in a dimension, found " + found);
  }

  Result<Dim> product(bool negative) {
    TESSERA_ASSIGN(Dim result, atom(negative));
    while (consume('*')) {
      TESSERA_ASSIGN(const Dim factor, atom(false));
      result = result * factor;
    }
    return result;
  }

  Result<Dim> atom(bool negative) {
    if (depth_ >= kMaxDepth) {
      return fail(ErrorCode::kOutOfRange,
                  "a dimension nests deeper than " + std::to_string(kMaxDepth) + " levels");
    }
    ++depth_;
    auto result = atom_at_depth(negative);
    --depth_;
    return result;
  }

  Result<Dim> atom_at_depth(bool negative) {
    skip_spaces();
    const char first = text_.empty() ? '\0' : text_.front();
    if (first >= '0' && first <= '9') return integer(negative);
    TESSERA_ASSIGN(const Dim positive, unsigned_atom(first));
    return negative ? Dim(0) - positive : positive;
  }

  Result<Dim> unsigned_atom(char first) {
    if (first == '`') return quoted_symbol();
    if (starts_identifier(first)) return symbol_or_call();
    if (consume('-')) return atom(true);
    if (!consume('(')) return expected("a number, a symbol, '-' or '('");
    TESSERA_ASSIGN(Dim inner, sum());
    if (!consume(')')) return expected("')'");
    return inner;
  }

  Result<Dim> integer(bool negative) {
    std::size_t length = 0;
    while (length < text_.size() && text_[length] >= '0' && text_[length] <= '9') ++length;
    const std::string digits = (negative ? "-" : "") + std::string(text_.substr(0, length));
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc() || end != digits.data() + digits.size()) {
      return fail(ErrorCode::kOutOfRange,
                  "the number " + digits + " in a dimension exceeds 64 bits");
    }
    text_.remove_prefix(length);
    return Dim(value);
  }

  Result<Dim> quoted_symbol() {
    std::string name;
    for (std::size_t i = 1; i < text_.size(); ++i) {
      if (text_[i] == '`') {
        text_.remove_prefix(i + 1);
        return Dim::symbol(std::move(name));
      }
      if (text_[i] == '\\' && i + 1 < text_.size()) {
        ++i;
        if (const auto byte = hex_byte(text_.substr(i))) {
          name += *byte;
          i += 2;
          continue;
        }
      }
      name += text_[i];
    }
    return expected("a closing '`'");
  }

  Result<Dim> symbol_or_call() {
    if (text_.starts_with(kTooLarge)) {
      text_.remove_prefix(kTooLarge.size());
      return Dim::Node::make_too_large();
    }
    std::size_t length = 0;
    while (length < text_.size() && continues_identifier(text_[length])) ++length;
    const std::string_view name = text_.substr(0, length);
    if (length == text_.size() || text_[length] != '(') {
      text_.remove_prefix(length);
      return Dim::symbol(std::string(name));
    }
    const auto op = std::find_if(kOps.begin(), kOps.end(),
                                 [&](Dim::Op known) { return name == to_string(known); });
    if (op == kOps.end()) {
      return expected("one of floordiv, ceildiv, mod, min, max and broadcast");
    }
    text_.remove_prefix(length + 1);
    TESSERA_ASSIGN(const Dim a, sum());
    if (!consume(',')) return expected("','");
    TESSERA_ASSIGN(const Dim b, sum());
    if (!consume(')')) return expected("')'");
    return Dim::combine(*op, a, b);
  }

  std::string_view text_;
  int depth_ = 0;
};

}  // namespace

const char* to_string(Dim::Op op) {
  switch (op) {
    case Dim::Op::kFloorDiv: return "floordiv";
    case Dim::Op::kCeilDiv: return "ceildiv";
    case Dim::Op::kMod: return "mod";
    case Dim::Op::kMin: return "min";
    case Dim::Op::kMax: return "max";
    case Dim::Op::kBroadcast: return "broadcast";
  }
  return "";
}

}  // namespace detail

std::string Dim::to_string() const {
  if (node_ == nullptr) return std::to_string(constant_);
  if (node_->too_large) return std::string(detail::kTooLarge);
  std::string text;
  for (const detail::Monomial& monomial : node_->sum) {
    const bool negative = monomial.coefficient < 0;
    if (text.empty()) {
      text = negative ? "-" : "";
    } else {
      text += negative ? " - " : " + ";
    }
    text += detail::monomial_text(monomial);
  }
  return text;
}

Result<Dim> parse_dim_prefix(std::string_view& text) {
  detail::Parser parser(text);
  TESSERA_ASSIGN(Dim dim, parser.sum());
  text = parser.rest();
  return dim;
}

Result<Dim> parse_dim(std::string_view text) {
  std::string_view rest = text;
  TESSERA_ASSIGN(Dim dim, parse_dim_prefix(rest));
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  if (!rest.empty()) {
    return fail(ErrorCode::kInvalidArgument,
                "expected the end of a dimension, found '" + std::string(rest) + "'");
  }
  return dim;
}

}  // namespace tessera
