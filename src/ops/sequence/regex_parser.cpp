// From a pattern to a machine, by recursive descent.

#include <fmt/format.h>

#include <optional>
#include <string>

#include "ops/sequence/regex.h"
#include "ops/sequence/regex_builder.h"
#include "ops/sequence/regex_reader.h"
#include "ops/sequence/unicode.h"

namespace tessera::ops {
namespace {

using Kind = RegexState::Kind;

constexpr int kMaxDepth = 250;
constexpr int kMaxRepeats = 1000;  // RE2's limit

struct Flags {
  bool fold = false;        // i
  bool multi_line = false;  // m
  bool dot_all = false;     // s
};

struct Repeat {
  int least = 0;
  int most = 0;  // negative: any number
};

class Parser : private PatternReader {
 public:
  explicit Parser(std::u32string pattern) : PatternReader(std::move(pattern)) {}

  Result<RegexPiece> parse() {
    TESSERA_ASSIGN(RegexPiece piece, alternation(0));
    if (!at_end()) return error("expected the end, found ')'");
    TESSERA_TRY(append(piece, {{Kind::kMatch, 0, 0}}));
    return piece;
  }

  std::vector<CharSet> take_sets() { return std::move(sets_); }

 private:
  Result<RegexPiece> alternation(int depth) {
    std::vector<RegexPiece> branches;
    do {
      TESSERA_ASSIGN(RegexPiece branch, concatenation(depth));
      branches.push_back(std::move(branch));
    } while (accept(U"|"));
    return branches.size() == 1 ? std::move(branches.front()) : alternatives(branches);
  }

  Result<RegexPiece> concatenation(int depth) {
    RegexPiece out;
    while (!at_end() && (quoting_ || !(at(U"|") || at(U")")))) {
      TESSERA_ASSIGN(RegexPiece item, quoting_ ? quoted() : atom(depth));
      if (!quoting_) {
        TESSERA_ASSIGN(item, repetition(std::move(item)));
      }
      TESSERA_TRY(append(out, item));
    }
    return out;
  }

  Result<RegexPiece> repetition(RegexPiece piece) {
    TESSERA_ASSIGN(const auto repeat, read_repeat());
    if (!repeat) return piece;
    accept(U"?");  // as few as can be: all of the text must match either way
    TESSERA_ASSIGN(const auto second, read_repeat());
    if (second) return error("expected one repetition operator, found two");
    return repeated(piece, repeat->least, repeat->most);
  }

  // Nothing, and nothing taken, where no repetition operator stands here.
  Result<std::optional<Repeat>> read_repeat() {
    if (accept(U"*")) return Repeat{0, -1};
    if (accept(U"+")) return Repeat{1, -1};
    if (accept(U"?")) return Repeat{0, 1};
    const std::size_t begin = place();
    if (!accept(U"{")) return std::nullopt;
    const std::optional<int> least = number();
    std::optional<int> most = least;
    if (least && accept(U",")) most = at(U"}") ? std::optional(-1) : number();
    if (!least || !most || !accept(U"}")) {
      go_to(begin);  // a brace that stands for itself
      return std::nullopt;
    }
    if (*least > kMaxRepeats || *most > kMaxRepeats || (*most >= 0 && *most < *least)) {
      return error(
          fmt::format("expected repetitions from 0 to {}, least and most in order", kMaxRepeats));
    }
    return Repeat{*least, *most};
  }

  std::optional<int> number() {
    const std::size_t begin = place();
    int value = 0;
    while (at_between(U'0', U'9'))
      value = std::min(value * 10 + static_cast<int>(take() - U'0'), kMaxRepeats + 1);
    return place() == begin ? std::nullopt : std::optional(value);
  }

  // ---- Atoms
  Result<RegexPiece> atom(int depth) {
    TESSERA_ASSIGN(const auto repeat, read_repeat());
    if (repeat) return error("expected something to repeat before the repetition operator");
    const char32_t c = take();
    switch (c) {
      case U'(': return group(depth + 1);
      case U'[': return class_piece();
      case U'\\': return escape();
      case U'^':
        return assertion(flags_.multi_line ? RegexState::kBeginLine : RegexState::kBeginText);
      case U'$': return assertion(flags_.multi_line ? RegexState::kEndLine : RegexState::kEndText);
      case U'.': {
        CharSet line_end;
        if (!flags_.dot_all) line_end.add(U'\n', U'\n');
        line_end.negate();
        return set_piece(std::move(line_end));
      }
      default: return literal(c);
    }
  }

  static RegexPiece assertion(RegexState::Assertion which) { return {{Kind::kAssert, which, 0}}; }

  RegexPiece set_piece(CharSet set) {
    if (set.ranges().size() == 1) {
      const auto [first, last] = set.ranges().front();
      return {{Kind::kRange, static_cast<std::int32_t>(first), static_cast<std::int32_t>(last)}};
    }
    sets_.push_back(std::move(set));
    return {{Kind::kSet, static_cast<std::int32_t>(sets_.size() - 1), 0}};
  }

  RegexPiece literal(char32_t c) {
    CharSet set;
    set.add(c, c);
    if (flags_.fold) set.add_other_cases();
    set.normalize();
    return set_piece(std::move(set));
  }

  // One character between \Q and \E, or the \E.
  Result<RegexPiece> quoted() {
    if (accept(U"\\E")) {
      quoting_ = false;
      return RegexPiece{};
    }
    RegexPiece piece = literal(take());
    quoting_ = !accept(U"\\E");
    return piece;
  }

  Result<RegexPiece> group(int depth) {
    if (depth > kMaxDepth)
      return error(fmt::format("expected groups of at most {} levels, found more", kMaxDepth));
    const Flags outer = flags_;
    if (at(U"?=") || at(U"?!") || at(U"?<=") || at(U"?<!"))
      return error("look-around is not part of RE2's syntax");
    if (accept(U"?P<") || accept(U"?<")) {
      TESSERA_TRY(group_name());
    } else if (accept(U"?")) {
      TESSERA_TRY(read_flags());
      if (accept(U")")) return RegexPiece{};  // they hold up to the end of the group around
      if (!accept(U":")) return error("expected flags among i, m, s and U, then ':' or ')'");
    }
    TESSERA_ASSIGN(RegexPiece piece, alternation(depth));
    if (!accept(U")")) return error("expected ')', found the end");
    flags_ = outer;
    return piece;
  }

  Status group_name() {
    const std::size_t begin = place();
    while (!at_end() && !at(U">")) {
      const char32_t c = take();
      const bool is_word = (c >= U'0' && c <= U'9') || (c >= U'a' && c <= U'z') ||
                           (c >= U'A' && c <= U'Z') || c == U'_';
      if (!is_word) return error(fmt::format("expected a group name, found '{}'", to_utf8(c)));
    }
    if (place() == begin || !accept(U">")) return error("expected a group name and '>'");
    return {};
  }

  Status read_flags() {
    bool value = true;
    while (!at_end() && !at(U":") && !at(U")")) {
      const char32_t c = take();
      switch (c) {
        case U'i': flags_.fold = value; break;
        case U'm': flags_.multi_line = value; break;
        case U's': flags_.dot_all = value; break;
        case U'U': break;  // which match is found does not matter
        case U'-': value = false; break;
        default:
          return error(fmt::format("expected flags among i, m, s and U, found '{}'", to_utf8(c)));
      }
    }
    return {};
  }

  Result<RegexPiece> class_piece() {
    TESSERA_ASSIGN(CharSet set, char_class(flags_.fold));
    return set_piece(std::move(set));
  }

  Result<RegexPiece> escape() {
    if (at_end()) return error("expected a character after '\\', found the end");
    const char32_t c = take();
    switch (c) {
      case U'b': return assertion(RegexState::kWordBorder);
      case U'B': return assertion(RegexState::kNoWordBorder);
      case U'A': return assertion(RegexState::kBeginText);
      case U'z': return assertion(RegexState::kEndText);
      case U'Q': quoting_ = true; return RegexPiece{};
      default: break;
    }
    CharSet set;
    if (perl_class(c, set)) {
      set.normalize();
      return set_piece(std::move(set));
    }
    TESSERA_ASSIGN(const char32_t meant, escaped_char(c));
    return literal(meant);
  }

  Flags flags_;
  bool quoting_ = false;
  std::vector<CharSet> sets_;
};

}  // namespace

Result<Regex> Regex::compile(std::string_view pattern) {
  std::u32string characters = decode_utf8(pattern);
  if (characters.find(kReplacement) != std::u32string::npos &&
      pattern.find("\xEF\xBF\xBD") == std::string_view::npos)
    return fail(ErrorCode::kInvalidArgument, "expected a pattern in UTF-8");
  Parser parser(std::move(characters));
  Regex regex;
  TESSERA_ASSIGN(regex.states_, parser.parse());
  regex.sets_ = parser.take_sets();
  return regex;
}

}  // namespace tessera::ops
