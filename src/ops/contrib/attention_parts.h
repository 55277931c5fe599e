#pragma once

// What the operators of com.microsoft around attention share: masks as what is added to scores, and
// heads side by side or apart.

#include <string_view>
#include <vector>

#include "ops/contrib/expansion.h"

namespace tessera::ops::contrib {

// ---- Heads: [batch, length, heads * size] and [batch, heads, length, size]
Operand heads_apart(Expansion& e, Operand flat, std::int64_t heads);
Operand heads_together(Expansion& e, Operand apart);

// Attribute `name`, at least 1.
Result<std::int64_t> head_count(const Expansion& e, std::string_view name);

// 0, 1, ..., count - 1; `count` is int64 of one element.
Operand count_up(Expansion& e, Operand count);

// ---- Masks
struct KeyMask {
  std::size_t input = 0;         // of the node
  std::string_view name;         // its formal name
  Operand keys = kNoOperand;     // how many there are, past ones too: int64 [1]
  Operand past = kNoOperand;     // how many of them are past; kNoOperand: none
  Operand queries = kNoOperand;  // int64 [1]
  DType dtype = DType::kFp32;    // of the scores
};

// What is added to scores [batch, heads, queries, keys]: `filter` where the mask hides a key. The
// mask is int32: lengths [batch], ends and starts [2 * batch], 0 and 1 of [batch, keys], [batch,
// queries, keys] or [batch, 1, places, places]. The batch is that of input 0. Errors: other shapes,
// or a rank of 1 whose size is neither.
Result<Operand> added_mask(Expansion& e, const KeyMask& mask, float filter);

// The sum of two masks, either of which may be kNoOperand.
Operand join_masks(Expansion& e, Operand a, Operand b);

}  // namespace tessera::ops::contrib
