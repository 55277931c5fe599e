#include "ops/contrib/attention_parts.h"

#include <fmt/format.h>

namespace tessera::ops::contrib {
namespace {

// The bool [batch, keys] of keys before each length and, where there are starts, from them on.
Result<Operand> within_lengths(Expansion& e, const KeyMask& mask) {
  TESSERA_TRY(e.rank(0).map([](std::int64_t) {}));
  const Dim& batch = e.shape(e.in(0))->front();
  const Dim& count = e.shape(e.in(mask.input))->front();
  const bool has_starts = count == batch * Dim(2);
  if (!has_starts && !(count == batch))
    return refuse_input(mask.name,
                        fmt::format("expected [{0}] or [2 * {0}] beside a rank of 1, found [{1}]",
                                    batch.to_string(), count.to_string()));
  const Operand key = count_up(e, mask.keys);
  const Operand all = e.cast(e.in(mask.input), DType::kInt64);
  if (!has_starts) return e.add("Less", {key, e.unsqueeze(all, {1})});
  const auto halves =
      e.add_many("Split", 2, {all},
                 attributes_of({{"axis", std::int64_t{0}}, {"num_outputs", std::int64_t{2}}}));
  const Operand before = e.add("Less", {key, e.unsqueeze(halves[0], {1})});
  const Operand from = e.add("GreaterOrEqual", {key, e.unsqueeze(halves[1], {1})});
  return e.add("And", {before, from});
}

// The rows of the queries and the columns of the keys of [batch, 1, places, places].
Operand cut_square(Expansion& e, const KeyMask& mask) {
  const Operand zero = e.ints({0});
  const Operand first = mask.past == kNoOperand ? zero : mask.past;
  const Operand rows = e.slice(e.in(mask.input), 2, first, e.add("Add", {first, mask.queries}));
  return e.slice(rows, 3, zero, mask.keys);
}

}  // namespace

Operand heads_apart(Expansion& e, Operand flat, std::int64_t heads) {
  return e.transpose(e.reshape(flat, {0, 0, heads, -1}), {0, 2, 1, 3});
}

Operand heads_together(Expansion& e, Operand apart) {
  return e.reshape(e.transpose(apart, {0, 2, 1, 3}), {0, 0, -1});
}

Result<std::int64_t> head_count(const Expansion& e, std::string_view name) {
  const std::int64_t heads = e.int_of(name, 0);
  if (heads > 0) return heads;
  return fail(ErrorCode::kInvalidArgument,
              fmt::format("attribute '{}': expected 1 or more, found {}", name, heads));
}

Operand count_up(Expansion& e, Operand count) {
  const Operand limit = e.add("Squeeze", {count, e.ints({0})});
  return e.add("Range", {e.scalar(0), limit, e.scalar(1)});
}

Result<Operand> added_mask(Expansion& e, const KeyMask& mask, float filter) {
  TESSERA_ASSIGN(const std::int64_t rank, e.rank(mask.input));
  if (rank < 1 || rank > 4)
    return refuse_input(mask.name, fmt::format("expected a rank from 1 to 4, found {}", rank));
  Operand seen = kNoOperand;
  if (rank == 1) {
    TESSERA_ASSIGN(seen, within_lengths(e, mask));
  } else {
    const Operand ones = rank == 4 ? cut_square(e, mask) : e.in(mask.input);
    seen = e.add("Greater", {ones, e.cast(e.scalar(0), DType::kInt32)});
  }
  if (rank <= 2) seen = e.unsqueeze(seen, {1, 2});
  if (rank == 3) seen = e.unsqueeze(seen, {1});
  return e.add("Where",
               {seen, e.number(mask.dtype, 0), e.number(mask.dtype, static_cast<double>(filter))});
}

Operand join_masks(Expansion& e, Operand a, Operand b) {
  if (a == kNoOperand) return b;
  return b == kNoOperand ? a : e.add("Add", {a, b});
}

}  // namespace tessera::ops::contrib
