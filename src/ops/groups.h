#pragma once

// The groups of the op table, one function for each source file that holds schemas. op_table.cpp
// lists them all.

#include <vector>

#include "ops/op.h"

namespace tessera::ops {

// elementwise/
std::vector<OpSchema> unary_ops();
std::vector<OpSchema> activation_ops();
std::vector<OpSchema> arithmetic_ops();
std::vector<OpSchema> variadic_ops();
std::vector<OpSchema> logic_ops();
std::vector<OpSchema> cast_ops();
std::vector<OpSchema> clip_ops();
std::vector<OpSchema> identity_ops();
std::vector<OpSchema> bit_cast_ops();

// movement/
std::vector<OpSchema> transpose_ops();
std::vector<OpSchema> concat_ops();
std::vector<OpSchema> slice_ops();
std::vector<OpSchema> pad_ops();
std::vector<OpSchema> gather_ops();
std::vector<OpSchema> scatter_ops();
std::vector<OpSchema> repeat_ops();
std::vector<OpSchema> rearrange_ops();
std::vector<OpSchema> generate_ops();
std::vector<OpSchema> select_ops();
std::vector<OpSchema> cumulative_ops();
std::vector<OpSchema> random_ops();
std::vector<OpSchema> crop_pad_ops();
std::vector<OpSchema> tensor_scatter_ops();

// shape/
std::vector<OpSchema> shape_ops();
std::vector<OpSchema> reshape_ops();

// reduce/
std::vector<OpSchema> reduce_ops();
std::vector<OpSchema> arg_reduce_ops();

// nn/
std::vector<OpSchema> conv_ops();
std::vector<OpSchema> pool_ops();
std::vector<OpSchema> normalization_ops();
std::vector<OpSchema> product_ops();
std::vector<OpSchema> resize_ops();
std::vector<OpSchema> softmax_ops();
std::vector<OpSchema> recurrent_ops();
std::vector<OpSchema> detection_ops();
std::vector<OpSchema> attention_ops();
std::vector<OpSchema> rotary_embedding_ops();
std::vector<OpSchema> linear_attention_ops();
std::vector<OpSchema> causal_conv_ops();
std::vector<OpSchema> deform_conv_ops();
std::vector<OpSchema> determinant_ops();
std::vector<OpSchema> grid_ops();
std::vector<OpSchema> loss_ops();
std::vector<OpSchema> roi_align_ops();
std::vector<OpSchema> unpool_ops();

// sequence/
std::vector<OpSchema> sequence_ops();
std::vector<OpSchema> sequence_split_ops();
std::vector<OpSchema> optional_ops();
std::vector<OpSchema> text_ops();
std::vector<OpSchema> regex_ops();
std::vector<OpSchema> tfidf_ops();

// signal/
std::vector<OpSchema> window_function_ops();
std::vector<OpSchema> fourier_ops();

// ml/
std::vector<OpSchema> label_encoder_ops();
std::vector<OpSchema> feature_ops();
std::vector<OpSchema> tree_ensemble_ops();

// training/
std::vector<OpSchema> optimizer_ops();

// contrib/
std::vector<OpSchema> contrib_activation_ops();
std::vector<OpSchema> contrib_attention_ops();
std::vector<OpSchema> contrib_fused_ops();
std::vector<OpSchema> contrib_movement_ops();
std::vector<OpSchema> contrib_normalization_ops();
std::vector<OpSchema> contrib_rotary_embedding_ops();
std::vector<OpSchema> block_quantized_ops();
std::vector<OpSchema> dynamic_quantize_lstm_ops();
std::vector<OpSchema> group_query_attention_ops();
std::vector<OpSchema> inverse_ops();
std::vector<OpSchema> multi_head_attention_ops();
std::vector<OpSchema> quantized_elementwise_ops();
std::vector<OpSchema> quantized_product_ops();

// control/
std::vector<OpSchema> control_ops();

}  // namespace tessera::ops
