// The machine that matches, and RegexFullMatch.

#include "ops/sequence/regex.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/kernel_util.h"
#include "ops/schema_util.h"
#include "ops/sequence/unicode.h"

namespace tessera::ops {
namespace {

using Kind = RegexState::Kind;

bool is_word_char(char32_t c) {
  return (c >= U'0' && c <= U'9') || (c >= U'A' && c <= U'Z') || (c >= U'a' && c <= U'z') ||
         c == U'_';
}

bool holds(std::int32_t assertion, std::u32string_view text, std::size_t at) {
  const bool at_begin = at == 0;
  const bool at_end = at == text.size();
  const bool border =
      (!at_begin && is_word_char(text[at - 1])) != (!at_end && is_word_char(text[at]));
  switch (assertion) {
    case RegexState::kBeginText: return at_begin;
    case RegexState::kEndText: return at_end;
    case RegexState::kBeginLine: return at_begin || text[at - 1] == U'\n';
    case RegexState::kEndLine: return at_end || text[at] == U'\n';
    case RegexState::kWordBorder: return border;
    default: return !border;
  }
}

// All states that the machine can be in after each character.
class Machine {
 public:
  Machine(std::span<const RegexState> states, std::span<const CharSet> sets,
          std::u32string_view text)
      : states_(states), sets_(sets), text_(text), reached_at_(states.size(), 0) {}

  bool run() {
    enter(0, 0);
    for (std::size_t at = 0; at < text_.size() && !waiting_.empty(); ++at) {
      std::swap(current_, waiting_);
      waiting_.clear();
      for (const std::size_t state : current_) {
        if (accepts(states_[state], text_[at])) enter(state + 1, at + 1);
      }
    }
    return std::any_of(waiting_.begin(), waiting_.end(),
                       [&](std::size_t state) { return states_[state].kind == Kind::kMatch; });
  }

 private:
  [[nodiscard]] bool accepts(const RegexState& state, char32_t c) const {
    if (state.kind == Kind::kRange)
      return c >= static_cast<char32_t>(state.a) && c <= static_cast<char32_t>(state.b);
    return state.kind == Kind::kSet && sets_[static_cast<std::size_t>(state.a)].contains(c);
  }

  // Adds a state, and all that it reaches without a character, to those that wait for text[at].
  void enter(std::size_t first, std::size_t at) {
    open_.assign(1, first);
    while (!open_.empty()) {
      const std::size_t index = open_.back();
      open_.pop_back();
      if (reached_at_[index] == at + 1) continue;
      reached_at_[index] = at + 1;
      const RegexState& state = states_[index];
      const auto to = [index](std::int32_t distance) {
        return index + static_cast<std::size_t>(static_cast<std::ptrdiff_t>(distance));
      };
      switch (state.kind) {
        case Kind::kJump: open_.push_back(to(state.a)); break;
        case Kind::kSplit:
          open_.push_back(to(state.b));
          open_.push_back(to(state.a));
          break;
        case Kind::kAssert:
          if (holds(state.a, text_, at)) open_.push_back(index + 1);
          break;
        default: waiting_.push_back(index);
      }
    }
  }

  std::span<const RegexState> states_;
  std::span<const CharSet> sets_;
  std::u32string_view text_;
  std::vector<std::size_t> reached_at_;  // 1 + the place in the text where it was last reached
  std::vector<std::size_t> current_;
  std::vector<std::size_t> waiting_;
  std::vector<std::size_t> open_;
};

Result<Regex> compiled(const Attributes& attributes) {
  auto regex = Regex::compile(attributes.get_string("pattern", ""));
  if (!regex) return tl::unexpected(in_context(std::move(regex).error(), "attribute 'pattern'"));
  return regex;
}

Status match_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* input, kernel_input(context, 0));
  TESSERA_ASSIGN(const Regex regex, compiled(context.attributes()));
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, DType::kBool, input->dims));
  const auto* texts = input->as<std::string>();
  context.parallel_for(input->numel(), 256, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) output.as<bool>()[i] = regex.full_match(texts[i]);
  });
  return {};
}

Status infer_match(InferContext& context) {
  TESSERA_TRY(require_dtype(context, 0, kStringType));
  TESSERA_TRY(compiled(context.attributes).map([](const Regex&) {}));
  set_output(context, 0, DType::kBool, context.inputs[0].type.shape);
  return {};
}

}  // namespace

bool Regex::full_match(std::string_view text) const {
  return Machine(states_, sets_, decode_utf8(text)).run();
}

std::vector<OpSchema> regex_ops() {
  OpSchema match;
  match.name = "RegexFullMatch";
  match.versions = {20};
  match.inputs = {required("X", "T1")};
  match.outputs = {required("Y", "T2")};
  match.attributes = {attr("pattern", AttrType::kString)};
  match.type_variables = {{"T1", kStringType}, {"T2", kBoolType}};
  match.structure = Structure::kElementwise;
  match.infer = infer_match;
  match.kernel = match_kernel;
  return {match};
}

}  // namespace tessera::ops
