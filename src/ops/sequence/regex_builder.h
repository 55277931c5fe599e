#pragma once

// Pieces of a machine and how they are put together. A piece runs from its first state to the one
// after its last.

#include <cstddef>
#include <vector>

#include "base/error.h"
#include "ops/sequence/regex.h"

namespace tessera::ops {

// A machine of more states is refused: matching takes time in proportion to them.
inline constexpr std::size_t kMaxRegexStates = 1 << 16;

using RegexPiece = std::vector<RegexState>;

Status append(RegexPiece& to, const RegexPiece& piece);
Result<RegexPiece> alternatives(const std::vector<RegexPiece>& branches);
// At least `least` times, at most `most`; any number of times where `most` is negative.
Result<RegexPiece> repeated(const RegexPiece& piece, int least, int most);

}  // namespace tessera::ops
