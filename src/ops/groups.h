#pragma once

// The groups of the op table, one function for each source file that holds schemas, by folder. This
// is the one list: a new file of operators has a line here.

#include <vector>

#include "ops/op.h"

#define TESSERA_OP_GROUPS(GROUP)      \
  /* elementwise/ */                  \
  GROUP(unary_ops)                    \
  GROUP(activation_ops)               \
  GROUP(arithmetic_ops)               \
  GROUP(variadic_ops)                 \
  GROUP(logic_ops)                    \
  GROUP(cast_ops)                     \
  GROUP(clip_ops)                     \
  GROUP(identity_ops)                 \
  GROUP(bit_cast_ops)                 \
  /* movement/ */                     \
  GROUP(transpose_ops)                \
  GROUP(concat_ops)                   \
  GROUP(slice_ops)                    \
  GROUP(pad_ops)                      \
  GROUP(gather_ops)                   \
  GROUP(scatter_ops)                  \
  GROUP(repeat_ops)                   \
  GROUP(rearrange_ops)                \
  GROUP(generate_ops)                 \
  GROUP(select_ops)                   \
  GROUP(cumulative_ops)               \
  GROUP(random_ops)                   \
  GROUP(crop_pad_ops)                 \
  GROUP(tensor_scatter_ops)           \
  /* shape/ */                        \
  GROUP(shape_ops)                    \
  GROUP(reshape_ops)                  \
  /* reduce/ */                       \
  GROUP(reduce_ops)                   \
  GROUP(arg_reduce_ops)               \
  /* nn/ */                           \
  GROUP(conv_ops)                     \
  GROUP(pool_ops)                     \
  GROUP(normalization_ops)            \
  GROUP(product_ops)                  \
  GROUP(resize_ops)                   \
  GROUP(softmax_ops)                  \
  GROUP(recurrent_ops)                \
  GROUP(detection_ops)                \
  GROUP(attention_ops)                \
  GROUP(rotary_embedding_ops)         \
  GROUP(linear_attention_ops)         \
  GROUP(causal_conv_ops)              \
  GROUP(deform_conv_ops)              \
  GROUP(determinant_ops)              \
  GROUP(grid_ops)                     \
  GROUP(loss_ops)                     \
  GROUP(max_roi_pool_ops)             \
  GROUP(roi_align_ops)                \
  GROUP(unpool_ops)                   \
  /* sequence/ */                     \
  GROUP(sequence_ops)                 \
  GROUP(sequence_split_ops)           \
  GROUP(optional_ops)                 \
  GROUP(text_ops)                     \
  GROUP(regex_ops)                    \
  GROUP(tfidf_ops)                    \
  /* signal/ */                       \
  GROUP(window_function_ops)          \
  GROUP(fourier_ops)                  \
  /* image/ */                        \
  GROUP(image_decoder_ops)            \
  /* ml/ */                           \
  GROUP(label_encoder_ops)            \
  GROUP(category_mapper_ops)          \
  GROUP(feature_ops)                  \
  GROUP(tree_ensemble_ops)            \
  GROUP(tree_model_ops)               \
  GROUP(linear_model_ops)             \
  GROUP(support_vector_ops)           \
  GROUP(map_ops)                      \
  /* training/ */                     \
  GROUP(optimizer_ops)                \
  /* contrib/ */                      \
  GROUP(contrib_activation_ops)       \
  GROUP(contrib_attention_ops)        \
  GROUP(contrib_fused_ops)            \
  GROUP(contrib_movement_ops)         \
  GROUP(contrib_normalization_ops)    \
  GROUP(contrib_rotary_embedding_ops) \
  GROUP(block_quantized_ops)          \
  GROUP(dynamic_quantize_lstm_ops)    \
  GROUP(group_query_attention_ops)    \
  GROUP(inverse_ops)                  \
  GROUP(multi_head_attention_ops)     \
  GROUP(quantized_elementwise_ops)    \
  GROUP(quantized_product_ops)        \
  /* control/ */                      \
  GROUP(control_ops)

namespace tessera::ops {

#define TESSERA_DECLARE_GROUP(name) std::vector<OpSchema> name();
TESSERA_OP_GROUPS(TESSERA_DECLARE_GROUP)
#undef TESSERA_DECLARE_GROUP

}  // namespace tessera::ops
