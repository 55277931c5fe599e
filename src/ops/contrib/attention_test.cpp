// Attention of com.microsoft in its forms, against numbers of ONNX Runtime 1.32.

#include "ops/contrib/contrib_case_test.h"

namespace tessera::ops {
namespace {

using namespace contrib::testing;

Tensor lengths(const std::vector<std::int32_t>& values) {
  return tensor<std::int32_t>({static_cast<std::int64_t>(values.size())}, values);
}

TEST(ContribAttention, MasksByLengthAndOrder) {
  expect_reals(run("Attention", attributes({{"num_heads", 2}, {"unidirectional", 1}}),
                   {pattern({1, 3, 4}, 1), pattern({4, 12}, 2), pattern({12}, 3), lengths({2})}),
               0,
               {0.5F, 2.6875F, -2, 0.1875F, 0.501716F, 2.65318F, -0.2064224F, 0.2155247F, 0.500051F,
                2.68648F, 0.2798889F, 0.2231233F});
}

TEST(ContribAttention, GoesOnFromAPast) {
  const auto found = run("Attention", attributes({{"num_heads", 2}}),
                         {pattern({1, 2, 4}, 1), pattern({4, 12}, 2), pattern({12}, 3), Tensor(),
                          pattern({2, 1, 2, 1, 2}, 4)},
                         {true, true});
  expect_reals(found, 0,
               {0.6167243F, -0.8439658F, 0.5436424F, 0.230211F, 0.5016888F, 2.603285F, 0.4264105F,
                0.2305046F});
  expect_reals(found, 1, {-1,       0.75F,    2.0625F, -2.625F,  -1.9375F, 1.125F,  -0.25F, -1.25F,
                          -0.4375F, -0.3125F, -0.625F, -0.3125F, 0.5F,     -0.5F,   0.5F,   2.6875F,
                          0.6875F,  -1.0625F, 1.25F,   0.25F,    -2,       0.1875F, 2,      0.25F});
}

TEST(ContribAttention, RefusesWhatItDoesNotDo) {
  const std::vector<Tensor> inputs = {pattern({1, 3, 4}, 1), pattern({4, 12}, 2)};
  EXPECT_EQ(error_of("Attention", attributes({{"num_heads", 2}, {"do_rotary", 1}}), inputs),
            "attribute 'do_rotary': expected 0, found 1");
  EXPECT_EQ(error_of("Attention", attributes({{"num_heads", 2}, {"past_present_share_buffer", 1}}),
                     inputs),
            "attribute 'past_present_share_buffer': expected 0, found 1");
  EXPECT_EQ(error_of("Attention", attributes({{"num_heads", 0}}), inputs),
            "attribute 'num_heads': expected 1 or more, found 0");
  std::vector<Tensor> masked = inputs;
  masked.push_back(Tensor());
  masked.push_back(lengths({1, 2, 3, 1, 1}));
  EXPECT_EQ(error_of("Attention", attributes({{"num_heads", 2}}), masked),
            "input 'mask_index': expected [1] or [2 * 1] beside a rank of 1, found [5]");
  masked[3] = tensor<std::int32_t>({}, {1});
  EXPECT_EQ(error_of("Attention", attributes({{"num_heads", 2}}), masked),
            "input 'mask_index': expected a rank from 1 to 4, found 0");
  masked[3] = Tensor();
  masked.insert(masked.end(), {Tensor(), Tensor(), lengths({1})});
  EXPECT_EQ(error_of("Attention", attributes({{"num_heads", 2}}), masked),
            "input 'past_sequence_length': expected none without a shared buffer, found one");
}

TEST(MultiHeadAttention, MasksKeysAndAddsABias) {
  expect_reals(run("MultiHeadAttention", attributes({{"num_heads", 2}}),
                   {pattern({1, 2, 4}, 1), pattern({1, 3, 4}, 2), pattern({1, 3, 4}, 3),
                    pattern({12}, 4), tensor<std::int32_t>({1, 3}, {1, 0, 1})}),
               0,
               {0.3805207F, 1.130521F, -0.8968697F, -0.1468697F, 0.3832743F, 1.133274F, -0.8941822F,
                -0.1441822F});
}

TEST(MultiHeadAttention, RefusesWhatItDoesNotDo) {
  const Attributes heads = attributes({{"num_heads", 2}});
  const Tensor x = pattern({1, 2, 4}, 1);
  EXPECT_EQ(error_of("MultiHeadAttention", heads, {x}),
            "input 'query': expected rank 3 beside a key, or rank 5 alone, found rank 3 without a "
            "key");
  EXPECT_EQ(error_of("MultiHeadAttention", heads, {x, x}),
            "input 'key': expected rank 3 or 4 beside a value, or rank 5 alone, found rank 3");
  EXPECT_EQ(error_of("MultiHeadAttention", heads, {pattern({1, 2, 2, 3, 2}, 1), x}),
            "input 'key': expected none beside packed Q, K and V, found one");
  EXPECT_EQ(error_of("MultiHeadAttention", heads,
                     {x, pattern({1, 2, 2, 2, 2}, 1), Tensor(), pattern({12}, 1)}),
            "input 'bias': expected none beside packed K and V, found one");
  const Tensor past = pattern({1, 2, 3, 2}, 2);
  const Tensor apart = pattern({1, 2, 2, 2}, 2);
  std::vector<Tensor> inputs = {x, apart, apart, Tensor(), Tensor(), Tensor(), past, past};
  EXPECT_EQ(error_of("MultiHeadAttention", heads, inputs),
            "input 'past_key': expected none beside a key of rank 4, found one");
  inputs = {x, x, x, Tensor(), tensor<std::int32_t>({1, 2}, {1, 1}), Tensor(), past, past};
  EXPECT_EQ(error_of("MultiHeadAttention", heads, inputs),
            "input 'key_padding_mask': expected the past keys too beside 'past_key', found [1, 2]");
  inputs[4] = tensor<std::int32_t>({1, 1, 1, 5}, {1, 1, 1, 1, 1});
  EXPECT_EQ(error_of("MultiHeadAttention", heads, inputs),
            "input 'key_padding_mask': expected a rank from 1 to 3, found 4");
  inputs[4] = Tensor();
  inputs.push_back(lengths({1}));
  EXPECT_EQ(error_of("MultiHeadAttention", heads, inputs),
            "input 'past_sequence_length': expected none (buffers that past and present share are "
            "not supported), found one");
}

std::vector<Tensor> grouped_inputs() {
  return {pattern({1, 1, 16}, 1),       pattern({1, 1, 8}, 2),    pattern({1, 1, 8}, 3),
          pattern({1, 1, 3, 8}, 4),     pattern({1, 1, 3, 8}, 5), lengths({2}),
          tensor<std::int32_t>({}, {3})};
}

TEST(GroupQueryAttention, WritesIntoItsCache) {
  const auto found = run("GroupQueryAttention", attributes({{"num_heads", 2}, {"kv_num_heads", 1}}),
                         grouped_inputs(), {true, true, true});
  expect_reals(found, 0,
               {-0.006677401F, -1.006677F, 0.5944442F, -0.2566774F, -0.5877123F, 0.3444442F,
                -0.5066774F, 1.094444F, 0.1566305F, -0.8433696F, 0.3038318F, -0.09336952F,
                -0.4051101F, 0.05383183F, -0.3433696F, 0.8038319F});
  expect_reals(found, 1, {-1,     0.75F,  -0.25F, -1.25F, 0.5F,  -0.5F,  1.25F,  0.25F,
                          -0.75F, 1,      0,      -1,     0.75F, -0.25F, -1.25F, 0.5F,
                          0.25F,  -0.75F, 1,      0,      -1,    0.75F,  -0.25F, -1.25F});
}

TEST(GroupQueryAttention, RefusesWhatItDoesNotDo) {
  Attributes attrs = attributes({{"num_heads", 2}, {"kv_num_heads", 1}});
  std::vector<Tensor> inputs = grouped_inputs();
  for (const char* name : {"kv_cache_bit_width", "qk_output", "sliding_window_cache"}) {
    Attributes other = attrs;
    other.set(name, std::int64_t{1});
    EXPECT_EQ(error_of("GroupQueryAttention", other, inputs),
              "attribute '" + std::string(name) + "': expected 0, found 1");
  }
  Attributes quantised = attrs;
  quantised.set("k_quant_type", "PER_TENSOR");
  EXPECT_EQ(error_of("GroupQueryAttention", quantised, inputs),
            "attribute 'k_quant_type': expected NONE, found PER_TENSOR");
  Attributes rotary = attrs;
  rotary.set("do_rotary", std::int64_t{1});
  EXPECT_EQ(error_of("GroupQueryAttention", rotary, inputs),
            "input 'cos_cache': expected 'cos_cache' and 'sin_cache' beside the attribute "
            "'do_rotary', found one of them missing");
  inputs[4] = Tensor();
  EXPECT_EQ(error_of("GroupQueryAttention", attrs, inputs),
            "input 'past_key': expected it together with 'past_value', found one of them");
  inputs[4] = inputs[3];
  inputs[2] = Tensor();
  EXPECT_EQ(error_of("GroupQueryAttention", attrs, inputs),
            "input 'key': expected it together with 'value', found one of them");
  inputs[1] = Tensor();
  inputs[0] = pattern({1, 1, 15}, 1);
  EXPECT_EQ(error_of("GroupQueryAttention", attrs, inputs),
            "input 'query': expected a multiple of 4 heads of Q, K and V, found size 15");
  inputs = grouped_inputs();
  inputs.resize(12);
  inputs.push_back(number(1));
  EXPECT_EQ(error_of("GroupQueryAttention", attrs, inputs),
            "input 'k_scale': expected none (caches of 8 or 4 bits are not supported), found one");
  inputs[12] = Tensor();
  inputs.resize(14);
  inputs.push_back(pattern({8}, 1));
  EXPECT_EQ(error_of("GroupQueryAttention", attrs, inputs),
            "input 'q_norm_weight': expected it together with 'k_norm_weight', found one of them");
  inputs[14] = Tensor();
  inputs.resize(16);
  inputs.push_back(lengths({1}));
  EXPECT_EQ(error_of("GroupQueryAttention", attrs, inputs),
            "input 'query_seqlens': expected none, found one");
}

TEST(ContribRotary, TurnsFromAnOffset) {
  const auto offset = tensor<std::int64_t>({1}, {1});
  const std::vector<Tensor> inputs = {pattern({1, 2, 4}, 1), offset, pattern({4, 2}, 2),
                                      pattern({4, 2}, 3)};
  expect_reals(run("RotaryEmbedding", {}, inputs), 0,
               {-0.25F, 0.5625F, 0.75F, 0.9375F, -1.25F, 0.9375F, 0.75F, 0.5625F});
  EXPECT_EQ(error_of("RotaryEmbedding", attributes({{"scale", 2.0F}}), inputs),
            "attribute 'scale': expected 1, found 2");
  EXPECT_EQ(error_of("RotaryEmbedding", attributes({{"is_packed_batching", 1}}), inputs),
            "attribute 'is_packed_batching': expected 0, found 1");
  std::vector<Tensor> other = inputs;
  other[0] = pattern({1, 2, 6}, 1);
  EXPECT_EQ(error_of("RotaryEmbedding", {}, other),
            "input 'input': expected a multiple of heads of size 4, found size 6");
  other[1] = tensor<std::int64_t>({}, {1});
  other[0] = inputs[0];
  EXPECT_EQ(error_of("RotaryEmbedding", {}, other),
            "input 'position_ids': expected rank 1 or 2, found rank 0");
}

}  // namespace
}  // namespace tessera::ops
