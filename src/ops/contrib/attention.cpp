// Attention and QAttention of com.microsoft: the projection of Q, K and V in one product, then the
// standard's Attention.

#include <fmt/format.h>

#include "ops/contrib/attention_parts.h"
#include "ops/groups.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

using contrib::attributes_of;
using contrib::Expansion;

constexpr float kMaskFilter = -10000;
constexpr DTypeSet kBytes = dtype_set({DType::kInt8, DType::kUInt8});
constexpr DTypeSet kInt32 = dtype_bit(DType::kInt32);

constexpr std::size_t kNone = SIZE_MAX;
struct Places {
  std::size_t mask, past, bias;  // inputs; kNone where the operator has none
  DType dtype;                   // of Q, K and V
};

Status refuse_unsupported(const Expansion& e) {
  for (const char* name : {"do_rotary", "past_present_share_buffer"}) {
    if (const std::int64_t value = e.int_of(name, 0); value != 0)
      return contrib::refuse_attribute(name, fmt::format("expected 0, found {}", value));
  }
  return {};
}

// Q, K and V, one behind the other along the last axis.
std::vector<Operand> split_projection(Expansion& e, Operand all) {
  const auto sizes = e.attributes().get_ints("qkv_hidden_sizes");
  if (!sizes.empty()) return e.split(all, -1, sizes);
  return e.add_many("Split", 3, {all},
                    attributes_of({{"axis", std::int64_t{-1}}, {"num_outputs", std::int64_t{3}}}));
}

// The past of keys (0) or values (1): [2, batch, heads, length, size] has both.
Operand past_of(Expansion& e, const Places& places, std::int64_t which) {
  return e.has(places.past) ? e.add("Gather", {e.in(places.past), e.scalar(which)}) : kNoOperand;
}

Result<Operand> mask_of(Expansion& e, const Places& places, Operand key, Operand past_key) {
  Operand mask = kNoOperand;
  if (e.has(places.mask)) {
    contrib::KeyMask inputs{places.mask, "mask_index",           e.sizes(key, 1, 2),
                            kNoOperand,  e.sizes(e.in(0), 1, 2), places.dtype};
    if (past_key != kNoOperand) {
      inputs.past = e.sizes(past_key, 2, 3);
      inputs.keys = e.add("Add", {inputs.keys, inputs.past});
    }
    TESSERA_ASSIGN(mask,
                   contrib::added_mask(e, inputs, e.float_of("mask_filter_value", kMaskFilter)));
  }
  const bool has_bias = places.bias != kNone && e.has(places.bias);
  return contrib::join_masks(e, mask, has_bias ? e.in(places.bias) : kNoOperand);
}

Status attend(Expansion& e, Operand projected, const Places& places) {
  TESSERA_ASSIGN(const std::int64_t heads, contrib::head_count(e, "num_heads"));
  const auto qkv = split_projection(e, projected);
  const Operand past_key = past_of(e, places, 0);
  const Operand past_value = past_of(e, places, 1);
  TESSERA_ASSIGN(const Operand mask, mask_of(e, places, qkv[1], past_key));
  Attributes attributes = attributes_of({{"is_causal", e.int_of("unidirectional", 0)},
                                         {"kv_num_heads", heads},
                                         {"q_num_heads", heads}});
  if (const float scale = e.float_of("scale", 0); scale != 0.0F) attributes.set("scale", scale);
  const auto results =
      e.add_many("Attention", e.wants(1) ? 3 : 1,
                 {qkv[0], qkv[1], qkv[2], mask, past_key, past_value}, std::move(attributes));
  if (!e.wants(1)) return e.replace({results[0], kNoOperand});
  const Operand present = e.concat({e.unsqueeze(results[1], {0}), e.unsqueeze(results[2], {0})}, 0);
  return e.replace({results[0], present});
}

Status attention(Expansion& e) {
  TESSERA_TRY(refuse_unsupported(e));
  if (e.has(6))
    return contrib::refuse_input("past_sequence_length",
                                 "expected none without a shared buffer, found one");
  TESSERA_ASSIGN(const DType dtype, e.dtype(0));
  Operand projected = e.add("MatMul", {e.in(0), e.in(1)});
  if (e.has(2)) projected = e.add("Add", {projected, e.in(2)});
  return attend(e, projected, {3, 4, 5, dtype});
}

enum Quantised : std::size_t {
  kInput,
  kWeight,
  kBias,
  kInputScale,
  kWeightScale,
  kMask,
  kInputZero,
  kWeightZero,
  kPast
};

Status quantised_attention(Expansion& e) {
  TESSERA_TRY(refuse_unsupported(e));
  TESSERA_ASSIGN(const DType dtype, e.dtype(kBias));
  const Operand sums =
      e.add("MatMulInteger", {e.in(kInput), e.in(kWeight), e.in(kInputZero), e.in(kWeightZero)});
  const Operand scale = e.add("Mul", {e.in(kInputScale), e.in(kWeightScale)});
  const Operand scaled = e.add("Mul", {e.cast(sums, dtype), scale});
  return attend(e, e.add("Add", {scaled, e.in(kBias)}), {kMask, kPast, kNone, dtype});
}

std::vector<FormalAttr> shared_attributes() {
  return {attr("do_rotary", AttrType::kInt),
          attr("mask_filter_value", AttrType::kFloat),
          required_attr("num_heads", AttrType::kInt),
          attr("past_present_share_buffer", AttrType::kInt),
          attr("scale", AttrType::kFloat),
          attr("unidirectional", AttrType::kInt)};
}

}  // namespace

std::vector<OpSchema> contrib_attention_ops() {
  std::vector<FormalAttr> attributes = shared_attributes();
  attributes.push_back(attr("qkv_hidden_sizes", AttrType::kInts));
  attributes.push_back(attr("rotary_embedding_dim", AttrType::kInt));
  return {
      contrib::expanded_op("Attention",
                           {required("input", "T"), required("weights", "T"), optional("bias", "T"),
                            optional("mask_index", "M"), optional("past", "T"),
                            optional("attention_bias", "T"), optional("past_sequence_length", "M")},
                           {required("output", "T"), optional("present", "T")},
                           std::move(attributes), {{"T", kFloatTypes}, {"M", kInt32}},
                           contrib::expand<attention>),
      contrib::expanded_op(
          "QAttention",
          {required("input", "T1"), required("weight", "T2"), required("bias", "T3"),
           required("input_scale", "T3"), required("weight_scale", "T3"),
           optional("mask_index", "T4"), optional("input_zero_point", "T1"),
           optional("weight_zero_point", "T2"), optional("past", "T3")},
          {required("output", "T3"), optional("present", "T3")}, shared_attributes(),
          {{"T1", kBytes}, {"T2", kBytes}, {"T3", kFloatTypes}, {"T4", kInt32}},
          contrib::expand<quantised_attention>),
  };
}

}  // namespace tessera::ops
