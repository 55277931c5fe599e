// GroupQueryAttention of com.microsoft: causal attention over a cache whose filled part each sample
// has its own length of, with rotary embedding, a window, and sinks.

#include <fmt/format.h>

#include <limits>

#include "ops/contrib/attention_parts.h"
#include "ops/groups.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

using contrib::attributes_of;
using contrib::Expansion;

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();
constexpr float kNormEpsilon = 1e-6F;

enum Input : std::size_t {
  kQuery,
  kKey,
  kValue,
  kPastKey,
  kPastValue,
  kLastPlaces,  // seqlens_k: of each sample, the place of its last key
  kTotal,
  kCosine,
  kSine,
  kPositionIds,
  kScoreBias,
  kSink,
  kKeyScale,
  kValueScale,
  kQueryNorm,
  kKeyNorm,
  kQueryLengths
};

Status refuse_unsupported(const Expansion& e) {
  for (const char* name : {"kv_cache_bit_width", "qk_output", "sliding_window_cache"}) {
    if (const std::int64_t value = e.int_of(name, 0); value != 0)
      return contrib::refuse_attribute(name, fmt::format("expected 0, found {}", value));
  }
  for (const char* name : {"k_quant_type", "v_quant_type"}) {
    const std::string type = e.attributes().get_string(name, "NONE");
    if (type != "NONE")
      return contrib::refuse_attribute(name, fmt::format("expected NONE, found {}", type));
  }
  for (const auto& [index, name] : {std::pair{kKeyScale, "k_scale"}, {kValueScale, "v_scale"}}) {
    if (e.has(index))
      return contrib::refuse_input(name,
                                   "expected none (caches of 8 or 4 bits are not "
                                   "supported), found one");
  }
  if (e.has(kQueryLengths))
    return contrib::refuse_input("query_seqlens", "expected none, found one");
  if (e.has(kPastKey) != e.has(kPastValue))
    return contrib::refuse_input("past_key",
                                 "expected it together with 'past_value', found one of them");
  if (e.has(kQueryNorm) != e.has(kKeyNorm))
    return contrib::refuse_input("q_norm_weight",
                                 "expected it together with 'k_norm_weight', found one of them");
  return {};
}

// What is known of a call while its nodes are built. Q, K and V are [batch, length, heads * size]
// until they are turned into heads.
struct Call {
  std::int64_t heads = 0, key_heads = 0;
  DType dtype = DType::kFp32;
  Operand q = kNoOperand, k = kNoOperand, v = kNoOperand;
  Operand length = kNoOperand;  // of the queries: int64 [1]
  Operand total = kNoOperand;   // keys, past and new: int64 [1]
  Operand before = kNoOperand;  // past keys of each sample: int64 [batch]
  Operand places = kNoOperand;  // of the queries among all: int64 [batch, length]
};

Status read_projections(Expansion& e, Call& call) {
  call.q = e.in(kQuery);
  call.k = e.in(kKey);
  call.v = e.in(kValue);
  if (e.has(kKey) && e.has(kValue)) return {};
  if (e.has(kKey) || e.has(kValue))
    return contrib::refuse_input("key", "expected it together with 'value', found one of them");
  TESSERA_ASSIGN(const std::int64_t hidden, e.size(kQuery, 2));
  const std::int64_t all = call.heads + 2 * call.key_heads;
  if (hidden % all != 0)
    return contrib::refuse_input("query", fmt::format("expected a multiple of {} heads of Q, K "
                                                      "and V, found size {}",
                                                      all, hidden));
  const std::int64_t size = hidden / all;
  const auto parts =
      e.split(e.in(kQuery), 2, {call.heads * size, call.key_heads * size, call.key_heads * size});
  call.q = parts[0];
  call.k = parts[1];
  call.v = parts[2];
  return {};
}

// Each head on its own, scaled by the weight.
Operand normalize_heads(Expansion& e, Operand x, std::int64_t heads, Operand weight,
                        const char* epsilon) {
  const float shared = e.float_of("qk_norm_epsilon", kNormEpsilon);
  const Operand y = e.add("RMSNormalization", {e.reshape(x, {0, 0, heads, -1}), weight},
                          attributes_of({{"epsilon", e.float_of(epsilon, shared)}}));
  return e.reshape(y, {0, 0, -1});
}

void read_lengths(Expansion& e, Call& call) {
  call.length = e.sizes(call.q, 1, 2);
  const Operand steps = e.unsqueeze(contrib::count_up(e, call.length), {0});
  if (!e.has(kPastKey)) {
    call.total = call.length;
    call.places = e.add("Expand", {steps, e.sizes(call.q, 0, 2)});
    return;
  }
  call.total = e.reshape(e.cast(e.in(kTotal), DType::kInt64), {1});
  // A first prompt may be padded on the right, and then has more queries than keys that count.
  const Operand counted = e.add("Add", {e.cast(e.in(kLastPlaces), DType::kInt64), e.scalar(1)});
  call.before = e.add("Max", {e.add("Sub", {counted, call.length}), e.scalar(0)});
  call.places = e.add("Add", {e.unsqueeze(call.before, {1}), steps});
}

// Positions of the rotary embedding. Of a first prompt only the first of those given counts.
Operand rotary_positions(Expansion& e, const Call& call) {
  if (!e.has(kPositionIds)) return call.places;
  const Operand first = e.slice(e.slice(e.in(kPositionIds), 0, e.ints({0}), e.ints({1})), 1,
                                e.ints({0}), e.ints({1}));
  const Operand steps = contrib::count_up(e, call.length);
  const Operand of_prompt = e.add("Add", {first, e.unsqueeze(steps, {0})});
  const Operand total = e.reshape(e.cast(e.in(kTotal), DType::kInt64), {1});
  const Operand is_prompt = e.add("Equal", {total, call.length});
  const Operand positions = e.add("Where", {is_prompt, of_prompt, e.in(kPositionIds)});
  return e.add("Expand", {positions, e.sizes(call.q, 0, 2)});
}

Status rotate(Expansion& e, Call& call) {
  if (e.int_of("do_rotary", 0) == 0) return {};
  if (!e.has(kCosine) || !e.has(kSine))
    return contrib::refuse_input(
        "cos_cache",
        "expected 'cos_cache' and 'sin_cache' beside the attribute 'do_rotary', "
        "found one of them missing");
  TESSERA_ASSIGN(const std::int64_t half, e.size(kCosine, 1));
  const Operand positions = rotary_positions(e, call);
  const auto turn = [&](Operand x, std::int64_t heads) {
    return e.add("RotaryEmbedding", {x, e.in(kCosine), e.in(kSine), positions},
                 attributes_of({{"interleaved", e.int_of("rotary_interleaved", 0)},
                                {"num_heads", heads},
                                {"rotary_embedding_dim", 2 * half}}));
  };
  call.q = turn(call.q, call.heads);
  call.k = turn(call.k, call.key_heads);
  return {};
}

// The cache with the new heads written behind those that each sample has; it grows where it is not
// long enough for the total.
Operand write_cache(Expansion& e, const Call& call, Operand past, Operand heads) {
  const Operand missing =
      e.add("Max", {e.add("Sub", {call.total, e.sizes(past, 2, 3)}), e.ints({0})});
  const Operand pads = e.concat({e.ints({0, 0, 0, 0, 0, 0}), missing, e.ints({0})}, 0);
  return e.add("TensorScatter", {e.add("Pad", {past, pads}), heads, call.before});
}

// Which keys a query sees: bool [batch, 1, length, total].
Operand seen_keys(Expansion& e, const Call& call) {
  const Operand key = contrib::count_up(e, call.total);
  const Operand own = e.unsqueeze(call.places, {2});
  const bool causal = e.int_of("causal", 1) != 0;
  const Operand last = causal ? own : e.unsqueeze(e.cast(e.in(kLastPlaces), DType::kInt64), {1, 2});
  Operand seen = e.add("LessOrEqual", {key, last});
  const std::int64_t window = e.int_of("local_window_size", -1);
  if (window > 0)
    seen = e.add("And", {seen, e.add("Greater", {key, e.add("Sub", {own, e.scalar(window)})})});
  return e.unsqueeze(seen, {1});
}

// One more key of zeros, and one more value of zeros: what is added to its score is the sink.
void add_sink(Expansion& e, const Call& call, Operand& k, Operand& v, Operand& mask) {
  const auto longer = [&](Operand x) {
    const Operand shape = e.concat({e.sizes(x, 0, 2), e.ints({1}), e.sizes(x, 3, 4)}, 0);
    return e.concat({x, e.add("Expand", {e.number(call.dtype, 0), shape})}, 2);
  };
  const Operand sizes = e.concat({e.sizes(call.q, 0, 1), e.ints({call.heads}), call.length}, 0);
  const Operand sink =
      e.has(kSink) ? e.reshape(e.in(kSink), {1, call.heads, 1, 1}) : e.number(call.dtype, 0);
  const Operand column = e.add("Expand", {sink, e.concat({sizes, e.ints({1})}, 0)});
  mask = e.concat({e.add("Expand", {mask, e.concat({sizes, call.total}, 0)}), column}, 3);
  k = longer(k);
  v = longer(v);
}

bool has_sink(const Expansion& e) {
  return e.has(kSink) || e.int_of("smooth_softmax", -1) > 0;
}

// What Attention is told to hide: nothing but what follows a query where that is all there is.
Operand mask_of(Expansion& e, const Call& call, bool& is_causal) {
  const bool plain = !e.has(kPastKey) && !e.has(kScoreBias) && !has_sink(e) &&
                     e.int_of("local_window_size", -1) <= 0 && e.int_of("causal", 1) != 0;
  is_causal = plain;
  if (plain) return kNoOperand;
  const Operand seen = seen_keys(e, call);
  if (!e.has(kScoreBias) && !has_sink(e)) return seen;
  const Operand bias = e.has(kScoreBias) ? e.in(kScoreBias) : e.number(call.dtype, 0);
  return e.add("Where", {seen, bias, e.number(call.dtype, kMinusInfinity)});
}

Status attend(Expansion& e) {
  TESSERA_TRY(refuse_unsupported(e));
  Call call;
  TESSERA_ASSIGN(call.heads, contrib::head_count(e, "num_heads"));
  TESSERA_ASSIGN(call.key_heads, contrib::head_count(e, "kv_num_heads"));
  TESSERA_ASSIGN(call.dtype, e.dtype(kQuery));
  TESSERA_TRY(read_projections(e, call));
  if (e.has(kQueryNorm)) {
    call.q = normalize_heads(e, call.q, call.heads, e.in(kQueryNorm), "q_norm_epsilon");
    call.k = normalize_heads(e, call.k, call.key_heads, e.in(kKeyNorm), "k_norm_epsilon");
  }
  read_lengths(e, call);
  TESSERA_TRY(rotate(e, call));
  Operand k = contrib::heads_apart(e, call.k, call.key_heads);
  Operand v = contrib::heads_apart(e, call.v, call.key_heads);
  std::vector<Operand> present = {k, v};
  if (e.has(kPastKey)) {
    present = {write_cache(e, call, e.in(kPastKey), k), write_cache(e, call, e.in(kPastValue), v)};
    k = e.slice(present[0], 2, e.ints({0}), call.total);
    v = e.slice(present[1], 2, e.ints({0}), call.total);
  }
  bool is_causal = false;
  Operand mask = mask_of(e, call, is_causal);
  if (has_sink(e)) add_sink(e, call, k, v, mask);
  Attributes attributes = e.keep({"softcap"});
  attributes.set("is_causal", std::int64_t{is_causal ? 1 : 0});
  if (const float scale = e.float_of("scale", 0); scale != 0.0F) attributes.set("scale", scale);
  const Operand y = e.add("Attention", {contrib::heads_apart(e, call.q, call.heads), k, v, mask},
                          std::move(attributes));
  return e.replace({contrib::heads_together(e, y), present[0], present[1], kNoOperand});
}

}  // namespace

std::vector<OpSchema> group_query_attention_ops() {
  return {contrib::expanded_op(
      "GroupQueryAttention",
      {required("query", "T"), optional("key", "T"), optional("value", "T"),
       optional("past_key", "T"), optional("past_value", "T"), required("seqlens_k", "M"),
       required("total_sequence_length", "M"), optional("cos_cache", "T"),
       optional("sin_cache", "T"), optional("position_ids", "I"), optional("attention_bias", "T"),
       optional("head_sink", "T"), optional("k_scale", "S"), optional("v_scale", "S"),
       optional("q_norm_weight", "T"), optional("k_norm_weight", "T"),
       optional("query_seqlens", "M")},
      {required("output", "T"), optional("present_key", "T"), optional("present_value", "T"),
       optional("output_qk", "T")},
      {attr("causal", AttrType::kInt), attr("do_rotary", AttrType::kInt),
       attr("k_norm_epsilon", AttrType::kFloat), attr("k_quant_type", AttrType::kString),
       attr("kv_cache_bit_width", AttrType::kInt), required_attr("kv_num_heads", AttrType::kInt),
       attr("local_window_size", AttrType::kInt), required_attr("num_heads", AttrType::kInt),
       attr("q_norm_epsilon", AttrType::kFloat), attr("qk_norm_epsilon", AttrType::kFloat),
       attr("qk_output", AttrType::kInt), attr("rotary_interleaved", AttrType::kInt),
       attr("scale", AttrType::kFloat), attr("sliding_window_cache", AttrType::kInt),
       attr("smooth_softmax", AttrType::kInt), attr("softcap", AttrType::kFloat),
       attr("v_quant_type", AttrType::kString)},
      {{"T", kFloatTypes}, {"M", dtype_bit(DType::kInt32)}, {"I", kInt64Type}, {"S", kFp32Type}},
      contrib::expand<attend>)};
}

}  // namespace tessera::ops
