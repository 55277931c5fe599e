// MultiHeadAttention of com.microsoft: Q, K and V apart or packed, with bias, masks and a cache.

#include <fmt/format.h>

#include "ops/contrib/attention_parts.h"
#include "ops/groups.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

using contrib::attributes_of;
using contrib::Expansion;

constexpr float kMaskFilter = -10000;
constexpr std::int64_t kWeightsMode = 3;  // of qk_matmul_output_mode: after the softmax

enum Input : std::size_t {
  kQuery,
  kKey,
  kValue,
  kBias,
  kMask,
  kScoreBias,
  kPastKey,
  kPastValue,
  kPastLength,
  kIndirection
};

struct Operands {
  Operand q, k, v;
  bool apart = false;  // [batch, heads, length, size], else heads side by side
};

// [batch, length, heads, count, size] as `count` times [batch, length, heads * size].
std::vector<Operand> unpack(Expansion& e, Operand packed, std::int64_t count) {
  auto pieces = e.add_many("Split", static_cast<std::size_t>(count), {packed},
                           attributes_of({{"axis", std::int64_t{3}}, {"num_outputs", count}}));
  for (Operand& piece : pieces) piece = e.reshape(piece, {0, 0, -1});
  return pieces;
}

Status add_bias(Expansion& e, Operands& operands) {
  if (!e.has(kBias)) return {};
  TESSERA_ASSIGN(const std::int64_t rank, e.rank(kQuery));
  const bool packed = rank == 5;
  if (operands.apart) {
    TESSERA_ASSIGN(const std::int64_t hidden, e.size(kQuery, 2));
    operands.q = e.add("Add", {operands.q, e.slice(e.in(kBias), 0, e.ints({0}), e.ints({hidden}))});
    return {};
  }
  std::vector<Operand> parts;
  if (packed) {
    parts =
        e.add_many("Split", 3, {e.in(kBias)},
                   attributes_of({{"axis", std::int64_t{0}}, {"num_outputs", std::int64_t{3}}}));
  } else if (!e.has(kValue)) {
    return contrib::refuse_input("bias", "expected none beside packed K and V, found one");
  } else {
    TESSERA_ASSIGN(const std::int64_t hidden, e.size(kQuery, 2));
    TESSERA_ASSIGN(const std::int64_t value, e.size(kValue, 2));
    parts = e.split(e.in(kBias), 0, {hidden, hidden, value});
  }
  operands.q = e.add("Add", {operands.q, parts[0]});
  operands.k = e.add("Add", {operands.k, parts[1]});
  operands.v = e.add("Add", {operands.v, parts[2]});
  return {};
}

Result<Operands> read_operands(Expansion& e) {
  TESSERA_ASSIGN(const std::int64_t query_rank, e.rank(kQuery));
  Operands operands{e.in(kQuery), e.in(kKey), e.in(kValue)};
  if (query_rank == 5) {
    if (e.has(kKey) || e.has(kValue))
      return contrib::refuse_input("key", "expected none beside packed Q, K and V, found one");
    const auto parts = unpack(e, e.in(kQuery), 3);
    operands = {parts[0], parts[1], parts[2]};
  } else if (query_rank != 3 || !e.has(kKey)) {
    return contrib::refuse_input(
        "query", fmt::format("expected rank 3 beside a key, or rank 5 alone, found rank {}{}",
                             query_rank, e.has(kKey) ? "" : " without a key"));
  } else {
    TESSERA_ASSIGN(const std::int64_t key_rank, e.rank(kKey));
    const std::int64_t expected = e.has(kValue) ? (key_rank == 4 ? 4 : 3) : 5;
    if (key_rank != expected)
      return contrib::refuse_input(
          "key", fmt::format("expected rank 3 or 4 beside a value, or rank 5 alone, found rank {}",
                             key_rank));
    if (key_rank == 5) {
      const auto parts = unpack(e, e.in(kKey), 2);
      operands.k = parts[0];
      operands.v = parts[1];
    }
    operands.apart = key_rank == 4;
  }
  TESSERA_TRY(add_bias(e, operands));
  return operands;
}

Result<Operand> mask_of(Expansion& e, const Operands& operands) {
  Operand mask = kNoOperand;
  if (e.has(kMask)) {
    TESSERA_ASSIGN(const std::int64_t rank, e.rank(kMask));
    if (rank > 3)
      return contrib::refuse_input("key_padding_mask",
                                   fmt::format("expected a rank from 1 to 3, found {}", rank));
    const std::int64_t axis = operands.apart ? 2 : 1;
    TESSERA_ASSIGN(const DType dtype, e.dtype(kQuery));
    contrib::KeyMask inputs{
        kMask,      "key_padding_mask",        e.sizes(operands.k, axis, axis + 1),
        kNoOperand, e.sizes(operands.q, 1, 2), dtype};
    if (e.has(kPastKey)) {
      const Shape* keys = e.shape(operands.k);
      const Shape& shape = *e.shape(e.in(kMask));
      // As many as the new keys: which of them and the past ones it means is not defined.
      if (rank > 1 && keys != nullptr && shape.back() == (*keys)[static_cast<std::size_t>(axis)] &&
          !(e.shape(e.in(kPastKey)) != nullptr && (*e.shape(e.in(kPastKey)))[2] == Dim(0)))
        return contrib::refuse_input(
            "key_padding_mask",
            fmt::format("expected the past keys too beside 'past_key', found {}",
                        to_string(shape)));
      inputs.past = e.sizes(e.in(kPastKey), 2, 3);
      inputs.keys = e.add("Add", {inputs.keys, inputs.past});
    }
    TESSERA_ASSIGN(mask,
                   contrib::added_mask(e, inputs, e.float_of("mask_filter_value", kMaskFilter)));
  }
  return contrib::join_masks(e, mask, e.in(kScoreBias));
}

Status attend(Expansion& e) {
  for (const auto& [index, name] : {std::pair{kPastLength, "past_sequence_length"},
                                    std::pair{kIndirection, "cache_indirection"}}) {
    if (e.has(index))
      return contrib::refuse_input(name,
                                   "expected none (buffers that past and present share are "
                                   "not supported), found one");
  }
  TESSERA_ASSIGN(const std::int64_t heads, contrib::head_count(e, "num_heads"));
  TESSERA_ASSIGN(Operands operands, read_operands(e));
  if (operands.apart && e.has(kPastKey))
    return contrib::refuse_input("past_key", "expected none beside a key of rank 4, found one");
  TESSERA_ASSIGN(const Operand mask, mask_of(e, operands));
  if (operands.apart) operands.q = contrib::heads_apart(e, operands.q, heads);
  Attributes attributes = attributes_of({{"is_causal", e.int_of("unidirectional", 0)}});
  if (!operands.apart) {
    attributes.set("kv_num_heads", heads);
    attributes.set("q_num_heads", heads);
  }
  if (const float scale = e.float_of("scale", 0); scale != 0.0F) attributes.set("scale", scale);
  if (e.wants(3)) attributes.set("qk_matmul_output_mode", kWeightsMode);
  const std::size_t outputs = e.wants(3) ? 4 : e.wants(1) || e.wants(2) ? 3 : 1;
  auto results =
      e.add_many("Attention", outputs,
                 {operands.q, operands.k, operands.v, mask, e.in(kPastKey), e.in(kPastValue)},
                 std::move(attributes));
  if (operands.apart) results[0] = contrib::heads_together(e, results[0]);
  results.resize(4, kNoOperand);
  return e.replace(std::move(results));
}

}  // namespace

std::vector<OpSchema> multi_head_attention_ops() {
  return {contrib::expanded_op(
      "MultiHeadAttention",
      {required("query", "T"), optional("key", "T"), optional("value", "T"), optional("bias", "T"),
       optional("key_padding_mask", "M"), optional("attention_bias", "T"),
       optional("past_key", "T"), optional("past_value", "T"),
       optional("past_sequence_length", "M"), optional("cache_indirection", "M")},
      {required("output", "T"), optional("present_key", "T"), optional("present_value", "T"),
       optional("qk", "T")},
      {attr("mask_filter_value", AttrType::kFloat), required_attr("num_heads", AttrType::kInt),
       attr("scale", AttrType::kFloat), attr("unidirectional", AttrType::kInt)},
      {{"T", kFloatTypes}, {"M", dtype_bit(DType::kInt32)}}, contrib::expand<attend>)};
}

}  // namespace tessera::ops
