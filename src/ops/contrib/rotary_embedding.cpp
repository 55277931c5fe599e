// RotaryEmbedding of com.microsoft: positions may be one offset for all.

#include <fmt/format.h>

#include "ops/contrib/attention_parts.h"
#include "ops/groups.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

using contrib::attributes_of;
using contrib::Expansion;

// [batch, length] of positions: as given, or those behind one offset.
Result<Operand> positions(Expansion& e, std::int64_t length_axis) {
  TESSERA_ASSIGN(const std::int64_t rank, e.rank(1));
  if (rank == 2) return e.in(1);
  if (rank != 1)
    return contrib::refuse_input("position_ids",
                                 fmt::format("expected rank 1 or 2, found rank {}", rank));
  const Operand length = e.sizes(e.in(0), length_axis, length_axis + 1);
  const Operand along = e.add("Add", {contrib::count_up(e, length), e.in(1)});
  return e.add("Expand", {along, e.concat({e.sizes(e.in(0), 0, 1), length}, 0)});
}

// How many heads lie side by side in an input of rank 3: without rotary_embedding_dim the caches
// say how large one is.
Result<std::int64_t> heads_of(Expansion& e) {
  if (e.int_of("rotary_embedding_dim", 0) > 0) return contrib::head_count(e, "num_heads");
  TESSERA_ASSIGN(const std::int64_t half, e.size(2, 1));
  TESSERA_ASSIGN(const std::int64_t hidden, e.size(0, 2));
  if (half == 0 || hidden % (2 * half) != 0)
    return contrib::refuse_input(
        "input",
        fmt::format("expected a multiple of heads of size {}, found size {}", 2 * half, hidden));
  return hidden / (2 * half);
}

Status rotate(Expansion& e) {
  if (const float scale = e.float_of("scale", 1); scale != 1.0F)
    return contrib::refuse_attribute("scale", fmt::format("expected 1, found {}", scale));
  if (const std::int64_t packed = e.int_of("is_packed_batching", 0); packed != 0)
    return contrib::refuse_attribute("is_packed_batching",
                                     fmt::format("expected 0, found {}", packed));
  TESSERA_ASSIGN(const std::int64_t rank, e.rank(0));
  Attributes attributes = e.keep({"interleaved", "rotary_embedding_dim"});
  if (rank == 3) {
    TESSERA_ASSIGN(const std::int64_t heads, heads_of(e));
    attributes.set("num_heads", heads);
  }
  TESSERA_ASSIGN(const Operand at, positions(e, rank == 3 ? 1 : 2));
  return e.replace(
      {e.add("RotaryEmbedding", {e.in(0), e.in(2), e.in(3), at}, std::move(attributes))});
}

}  // namespace

std::vector<OpSchema> contrib_rotary_embedding_ops() {
  return {contrib::expanded_op(
      "RotaryEmbedding",
      {required("input", "T"), required("position_ids", "M"), required("cos_cache", "T"),
       required("sin_cache", "T")},
      {required("output", "T")},
      {attr("interleaved", AttrType::kInt), attr("is_packed_batching", AttrType::kInt),
       attr("num_heads", AttrType::kInt), attr("rotary_embedding_dim", AttrType::kInt),
       attr("scale", AttrType::kFloat)},
      {{"T", kFloatTypes}, {"M", kInt64Type}}, contrib::expand<rotate>)};
}

}  // namespace tessera::ops
