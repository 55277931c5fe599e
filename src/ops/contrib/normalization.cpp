// Normalisation of com.microsoft: of a sum with what skipped a layer, of embeddings, in groups.

#include <fmt/format.h>

#include "ops/contrib/attention_parts.h"
#include "ops/groups.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

using contrib::attributes_of;
using contrib::Expansion;

constexpr float kSkipEpsilon = 1e-12F;
constexpr auto kSingle = static_cast<std::int64_t>(DType::kFp32);

// Y, and 1 / sqrt(mean of squares + epsilon) where somebody asks for it.
Status simplified(Expansion& e) {
  const Operand y =
      e.add("RMSNormalization", {e.in(0), e.in(1)}, e.keep({"axis", "epsilon", "stash_type"}));
  if (!e.wants(1)) return e.replace({y, kNoOperand});
  TESSERA_ASSIGN(const std::int64_t rank, e.rank(0));
  std::vector<std::int64_t> axes;
  const std::int64_t axis = e.int_of("axis", -1);
  for (std::int64_t at = axis < 0 ? axis + rank : axis; at < rank; ++at) axes.push_back(at);
  const auto stash = static_cast<DType>(e.int_of("stash_type", kSingle));
  const Operand x = e.cast(e.in(0), stash);
  const Operand mean = e.add("ReduceMean", {e.add("Mul", {x, x}), e.ints(axes)});
  const Operand root = e.add(
      "Sqrt",
      {e.add("Add", {mean, e.number(stash, static_cast<double>(e.float_of("epsilon", 1e-5F)))})});
  return e.replace({y, e.add("Reciprocal", {root})});
}

// input + skip + bias.
Operand skip_sum(Expansion& e, std::size_t bias) {
  const Operand sum = e.add("Add", {e.in(0), e.in(1)});
  return e.has(bias) ? e.add("Add", {sum, e.in(bias)}) : sum;
}

Attributes over_last_axis(const Expansion& e) {
  return attributes_of(
      {{"axis", std::int64_t{-1}}, {"epsilon", e.float_of("epsilon", kSkipEpsilon)}});
}

Status skip_layer(Expansion& e) {
  const Operand sum = skip_sum(e, 4);
  const std::size_t outputs = e.wants(2) ? 3 : e.wants(1) ? 2 : 1;
  auto results =
      e.add_many("LayerNormalization", outputs, {sum, e.in(2), e.in(3)}, over_last_axis(e));
  results.resize(3, kNoOperand);
  results.push_back(sum);
  return e.replace(std::move(results));
}

Status skip_simplified(Expansion& e) {
  const Operand sum = skip_sum(e, 3);
  const Operand y = e.add("RMSNormalization", {sum, e.in(2)}, over_last_axis(e));
  return e.replace({y, kNoOperand, kNoOperand, sum});
}

// ---- Embeddings ---------------------------------------------------------------------------------

enum Embed : std::size_t {
  kIds,
  kSegments,
  kWords,
  kPositions,
  kSegmentTable,
  kGamma,
  kBeta,
  kMask,
  kPositionIds
};

// How many ones the mask has, for each sample; zeros without a mask.
Operand mask_index(Expansion& e) {
  if (!e.has(kMask))
    return e.add("Expand", {e.cast(e.scalar(0), DType::kInt32), e.sizes(e.in(kIds), 0, 1)});
  const Operand one = e.cast(e.scalar(1), DType::kInt32);
  const Operand ones = e.cast(e.add("Equal", {e.in(kMask), one}), DType::kInt32);
  return e.add("ReduceSum", {ones, e.ints({1})}, attributes_of({{"keepdims", std::int64_t{0}}}));
}

Status embed_layer(Expansion& e) {
  if (e.has(kSegments) != e.has(kSegmentTable))
    return contrib::refuse_input(
        "segment_ids", "expected it together with 'segment_embedding', found one of them");
  const Operand words = e.add("Gather", {e.in(kWords), e.in(kIds)});
  const Operand places =
      e.has(kPositionIds) ? e.in(kPositionIds) : contrib::count_up(e, e.sizes(e.in(kIds), 1, 2));
  const Operand positions = e.add("Gather", {e.in(kPositions), places});
  Operand sum = e.add("Add", {words, positions});
  if (e.has(kSegments))
    sum = e.add("Add", {sum, e.add("Gather", {e.in(kSegmentTable), e.in(kSegments)})});
  const Operand y =
      e.add("LayerNormalization", {sum, e.in(kGamma), e.in(kBeta)}, over_last_axis(e));
  return e.replace({y, e.wants(1) ? mask_index(e) : kNoOperand, sum});
}

// ---- Groups -------------------------------------------------------------------------------------

// gamma * (x - mean) / sqrt(variance + epsilon) + beta within groups of channels, computed in the
// dtype of gamma and beta.
Result<Operand> in_groups(Expansion& e, Operand x) {
  TESSERA_ASSIGN(const std::int64_t rank, e.rank(0));
  TESSERA_ASSIGN(const DType dtype, e.dtype(0));
  TESSERA_ASSIGN(const DType inner, e.dtype(1));
  const std::int64_t activation = e.int_of("activation", 0);
  if (activation != 0 && activation != 1)
    return contrib::refuse_attribute("activation",
                                     fmt::format("expected 0 or 1, found {}", activation));
  const bool channels_last = e.int_of("channels_last", 1) != 0;
  if (channels_last) x = e.to_channels_first(x, rank);
  if (inner != dtype) x = e.cast(x, inner);
  Operand y = e.add("GroupNormalization", {x, e.in(1), e.in(2)},
                    attributes_of({{"epsilon", e.float_of("epsilon", 1e-5F)},
                                   {"num_groups", e.int_of("groups", 1)}}));
  if (activation == 1) y = e.add("Swish", {y});
  if (inner != dtype) y = e.cast(y, dtype);
  return channels_last ? e.to_channels_last(y, rank) : y;
}

Status group_norm(Expansion& e) {
  TESSERA_ASSIGN(const Operand y, in_groups(e, e.in(0)));
  return e.replace({y});
}

// [n, c] or [c] beside the axes of x.
Result<Operand> along_channels(Expansion& e, std::size_t index, bool channels_last) {
  TESSERA_ASSIGN(const std::int64_t rank, e.rank(0));
  TESSERA_ASSIGN(const std::int64_t given, e.rank(index));
  if (given > 2 || (given == 1 && channels_last)) return e.in(index);
  std::vector<std::int64_t> axes;
  for (std::int64_t axis = 2; axis < rank; ++axis)
    axes.push_back(channels_last ? axis - 1 : given == 2 ? axis : axis - 1);
  return e.unsqueeze(e.in(index), axes);
}

Status skip_group_norm(Expansion& e) {
  const bool channels_last = e.int_of("channels_last", 1) != 0;
  TESSERA_ASSIGN(const Operand skip, along_channels(e, 3, channels_last));
  Operand sum = e.add("Add", {e.in(0), skip});
  if (e.has(4)) {
    TESSERA_ASSIGN(const Operand bias, along_channels(e, 4, channels_last));
    sum = e.add("Add", {sum, bias});
  }
  TESSERA_ASSIGN(const Operand y, in_groups(e, sum));
  return e.replace({y, sum});
}

// ---- Schemas ------------------------------------------------------------------------------------

// Files of ONNX Runtime name it in ai.onnx, where the standard has none of the name.
OpSchema simplified_schema(std::string_view domain) {
  OpSchema op = contrib::expanded_op(
      "SimplifiedLayerNormalization", {required("X", "T"), required("scale", "V")},
      {required("Y", "V"), optional("inv_std_var", "U")},
      {attr("axis", AttrType::kInt), attr("epsilon", AttrType::kFloat),
       attr("stash_type", AttrType::kInt)},
      {{"T", kFloatTypes}, {"V", kFloatTypes}, {"U", kFloatTypes}}, contrib::expand<simplified>);
  op.domain = domain;
  return op;
}

// mask_index_type says what shape inference may take mask_index for: a node has it or has not.
OpSchema embed_schema() {
  return contrib::expanded_op(
      "EmbedLayerNormalization",
      {required("input_ids", "T1"), optional("segment_ids", "T1"), required("word_embedding", "T"),
       required("position_embedding", "T"), optional("segment_embedding", "T"),
       required("gamma", "T"), required("beta", "T"), optional("mask", "T1"),
       optional("position_ids", "T1")},
      {required("output", "T"), optional("mask_index", "T1"), optional("embedding_sum", "T")},
      {attr("epsilon", AttrType::kFloat), attr("mask_index_type", AttrType::kInt)},
      {{"T1", dtype_bit(DType::kInt32)}, {"T", kFloatTypes}}, contrib::expand<embed_layer>);
}

std::vector<FormalAttr> group_attributes() {
  return {required_attr("activation", AttrType::kInt), attr("channels_last", AttrType::kInt),
          attr("epsilon", AttrType::kFloat), required_attr("groups", AttrType::kInt)};
}

}  // namespace

std::vector<OpSchema> contrib_normalization_ops() {
  const std::vector<FormalParam> normalized = {required("output", "T"), optional("mean", "U"),
                                               optional("inv_std_var", "U"),
                                               optional("input_skip_bias_sum", "T")};
  const std::vector<TypeVariable> floats = {{"T", kFloatTypes}, {"U", kFp32Type}};
  const std::vector<TypeVariable> groups = {{"T", kFloatTypes}, {"M", kFloatTypes}};
  const std::vector<FormalAttr> epsilon = {attr("epsilon", AttrType::kFloat)};
  return {
      simplified_schema(""),
      simplified_schema("com.microsoft"),
      contrib::expanded_op("SkipLayerNormalization",
                           {required("input", "T"), required("skip", "T"), required("gamma", "T"),
                            optional("beta", "T"), optional("bias", "T")},
                           normalized, epsilon, floats, contrib::expand<skip_layer>),
      contrib::expanded_op("SkipSimplifiedLayerNormalization",
                           {required("input", "T"), required("skip", "T"), required("gamma", "T"),
                            optional("bias", "T")},
                           normalized, epsilon, floats, contrib::expand<skip_simplified>),
      embed_schema(),
      contrib::expanded_op(
          "GroupNorm", {required("X", "T"), required("gamma", "M"), required("beta", "M")},
          {required("Y", "T")}, group_attributes(), groups, contrib::expand<group_norm>),
      contrib::expanded_op("SkipGroupNorm",
                           {required("X", "T"), required("gamma", "M"), required("beta", "M"),
                            required("skip", "T"), optional("bias", "T")},
                           {required("Y", "T"), optional("S", "T")}, group_attributes(), groups,
                           contrib::expand<skip_group_norm>),
  };
}

}  // namespace tessera::ops
