#include "ops/sequence/regex_builder.h"

#include <fmt/format.h>

namespace tessera::ops {
namespace {

using Kind = RegexState::Kind;

std::int32_t distance(std::size_t states) {
  return static_cast<std::int32_t>(states);
}

RegexPiece star(const RegexPiece& piece) {
  RegexPiece out{{Kind::kSplit, 1, distance(piece.size()) + 2}};
  out.insert(out.end(), piece.begin(), piece.end());
  out.push_back({Kind::kJump, -distance(piece.size()) - 1, 0});
  return out;
}

RegexPiece at_most_once(const RegexPiece& piece) {
  RegexPiece out{{Kind::kSplit, 1, distance(piece.size()) + 1}};
  out.insert(out.end(), piece.begin(), piece.end());
  return out;
}

}  // namespace

Status append(RegexPiece& to, const RegexPiece& piece) {
  if (to.size() + piece.size() > kMaxRegexStates) {
    return fail(
        ErrorCode::kOutOfRange,
        fmt::format("expected a pattern of at most {} states, found more", kMaxRegexStates));
  }
  to.insert(to.end(), piece.begin(), piece.end());
  return {};
}

Result<RegexPiece> alternatives(const std::vector<RegexPiece>& branches) {
  std::size_t total = 0;
  for (const RegexPiece& branch : branches) total += branch.size() + 2;
  RegexPiece out;
  for (std::size_t i = 0; i + 1 < branches.size(); ++i) {
    const std::size_t size = branches[i].size();
    TESSERA_TRY(append(out, {{Kind::kSplit, 1, distance(size) + 2}}));
    TESSERA_TRY(append(out, branches[i]));
    // The last branch stands without a split and a jump.
    TESSERA_TRY(append(out, {{Kind::kJump, distance(total - 2 - out.size()), 0}}));
  }
  TESSERA_TRY(append(out, branches.back()));
  return out;
}

Result<RegexPiece> repeated(const RegexPiece& piece, int least, int most) {
  if (most < 0 && least == 0) return star(piece);
  RegexPiece out;
  for (int i = 0; i < least; ++i) TESSERA_TRY(append(out, piece));
  if (most < 0) {
    TESSERA_TRY(append(out, {{Kind::kSplit, -distance(piece.size()), 1}}));
    return out;
  }
  const RegexPiece maybe = at_most_once(piece);
  for (int i = least; i < most; ++i) TESSERA_TRY(append(out, maybe));
  return out;
}

}  // namespace tessera::ops
