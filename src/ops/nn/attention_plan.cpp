#include "ops/nn/attention_plan.h"

#include <fmt/format.h>

#include "ops/infer_util.h"
#include "ops/nn/nn_util.h"

namespace tessera::ops::nn {
namespace {

constexpr std::string_view kOp = "Attention";

Result<Dim> agree(const Dim& a, const Dim& b, std::string_view what) {
  auto merged = merge_dim(a, b, what);
  if (!merged) return op_error(kOp, merged.error().to_string());
  return merged;
}

// The size of one head, where `heads` of them lie side by side.
Result<Dim> head_of(const Dim& hidden, const Dim& heads, std::string_view name) {
  if (const auto exact = hidden.exact_div(heads)) return *exact;
  if (hidden.is_constant()) {
    return op_error(kOp, fmt::format("input '{}': expected a multiple of {} heads, found size {}",
                                     name, heads.to_string(), hidden.to_string()));
  }
  return floordiv(hidden, heads);
}

Result<Dim> heads_attribute(const Attributes& attributes, const char* name) {
  const std::int64_t heads = attributes.get_int(name, 0);
  if (heads > 0) return Dim(heads);
  return op_error(
      kOp, fmt::format("attribute '{}': expected 1 or more beside inputs of rank 3, found {}", name,
                       attributes.has(name) ? std::to_string(heads) : "none"));
}

Result<AttentionSizes> flat_sizes(const Attributes& attributes, const Shape& q, const Shape& k,
                                  const Shape& v) {
  AttentionSizes sizes;
  sizes.flat = true;
  TESSERA_ASSIGN(sizes.query_heads, heads_attribute(attributes, "q_num_heads"));
  TESSERA_ASSIGN(sizes.key_heads, heads_attribute(attributes, "kv_num_heads"));
  TESSERA_ASSIGN(const Dim query_size, head_of(q[2], sizes.query_heads, "Q"));
  TESSERA_ASSIGN(const Dim key_size, head_of(k[2], sizes.key_heads, "K"));
  TESSERA_ASSIGN(sizes.head_size, agree(query_size, key_size, "size of one head of Q and K"));
  TESSERA_ASSIGN(sizes.value_size, head_of(v[2], sizes.key_heads, "V"));
  sizes.query_length = q[1];
  TESSERA_ASSIGN(sizes.key_length, agree(k[1], v[1], "length of K and V"));
  return sizes;
}

Result<AttentionSizes> head_sizes(const Shape& q, const Shape& k, const Shape& v) {
  AttentionSizes sizes;
  sizes.query_heads = q[1];
  TESSERA_ASSIGN(sizes.key_heads, agree(k[1], v[1], "heads of K and V"));
  TESSERA_ASSIGN(sizes.head_size, agree(q[3], k[3], "size of one head of Q and K"));
  sizes.value_size = v[3];
  sizes.query_length = q[2];
  TESSERA_ASSIGN(sizes.key_length, agree(k[2], v[2], "length of K and V"));
  return sizes;
}

// The mask broadcasts to the scores; only its last size may be smaller, and is then padded.
Status check_mask(const Shape& mask, const AttentionSizes& sizes) {
  const Shape scores = sizes.scores();
  bool fits = !mask.empty() && mask.size() <= scores.size();
  for (std::size_t i = 0; fits && i < mask.size(); ++i) {
    const auto have = mask[mask.size() - 1 - i].constant();
    const auto want = scores[scores.size() - 1 - i].constant();
    fits = !have || !want || *have == *want || (i == 0 ? *have < *want : *have == 1);
  }
  if (fits) return {};
  return op_error(kOp,
                  fmt::format("input 'attn_mask': expected a shape that broadcasts to {}, found {}",
                              to_string(scores), to_string(mask)));
}

Status add_past(AttentionSizes& sizes, std::span<const Shape* const> shapes) {
  const auto shape = [&](std::size_t index) {
    return index < shapes.size() ? shapes[index] : nullptr;
  };
  const Shape* key = shape(kAttentionPastKey);
  const Shape* value = shape(kAttentionPastValue);
  if ((key == nullptr) != (value == nullptr))
    return op_error(kOp, "expected past_key and past_value together, found one of them");
  if (key != nullptr && shape(kAttentionValidKeys) != nullptr)
    return op_error(kOp, "expected past_key or nonpad_kv_seqlen, found both");
  sizes.past_length = Dim(0);
  if (key != nullptr) {
    for (const auto& [past, name] : {std::pair{key, "past_key"}, std::pair{value, "past_value"}}) {
      if (past->size() != 4) {
        return op_error(
            kOp, fmt::format("input '{}': expected rank 4, found rank {}", name, past->size()));
      }
    }
    TESSERA_ASSIGN(sizes.past_length, agree((*key)[2], (*value)[2], "length of the past"));
    TESSERA_ASSIGN(sizes.batch, agree(sizes.batch, (*key)[0], "batch of the past"));
    TESSERA_ASSIGN(sizes.key_heads, agree(sizes.key_heads, (*key)[1], "heads of the past"));
    TESSERA_ASSIGN(sizes.head_size, agree(sizes.head_size, (*key)[3], "size of past_key"));
    TESSERA_ASSIGN(sizes.value_size, agree(sizes.value_size, (*value)[3], "size of past_value"));
  }
  sizes.total_length = sizes.past_length + sizes.key_length;
  return {};
}

}  // namespace

Shape AttentionSizes::output() const {
  return flat ? Shape{batch, query_length, query_heads * value_size}
              : Shape{batch, query_heads, query_length, value_size};
}
Shape AttentionSizes::present_key() const {
  return {batch, key_heads, total_length, head_size};
}
Shape AttentionSizes::present_value() const {
  return {batch, key_heads, total_length, value_size};
}
Shape AttentionSizes::scores() const {
  return {batch, query_heads, query_length, total_length};
}

Result<AttentionSizes> attention_sizes(const Attributes& attributes,
                                       std::span<const Shape* const> shapes) {
  const Shape& q = *shapes[kAttentionQuery];
  const Shape& k = *shapes[kAttentionKey];
  const Shape& v = *shapes[kAttentionValue];
  if ((q.size() != 3 && q.size() != 4) || k.size() != q.size() || v.size() != q.size()) {
    return op_error(kOp, fmt::format("expected Q, K and V all of rank 3 or all of rank 4, found "
                                     "ranks {}, {} and {}",
                                     q.size(), k.size(), v.size()));
  }
  TESSERA_ASSIGN(AttentionSizes sizes,
                 q.size() == 3 ? flat_sizes(attributes, q, k, v) : head_sizes(q, k, v));
  TESSERA_ASSIGN(sizes.batch, agree(q[0], k[0], "batch of Q and K"));
  TESSERA_ASSIGN(sizes.batch, agree(sizes.batch, v[0], "batch of Q and V"));
  const auto query_heads = sizes.query_heads.constant();
  const auto key_heads = sizes.key_heads.constant();
  if (query_heads && key_heads && (*key_heads == 0 || *query_heads % *key_heads != 0)) {
    return op_error(kOp, fmt::format("expected a number of heads of Q that the {} heads of K "
                                     "divide, found {}",
                                     *key_heads, *query_heads));
  }
  TESSERA_TRY(add_past(sizes, shapes));
  if (shapes.size() > kAttentionMask && shapes[kAttentionMask] != nullptr)
    TESSERA_TRY(check_mask(*shapes[kAttentionMask], sizes));
  return sizes;
}

}  // namespace tessera::ops::nn
