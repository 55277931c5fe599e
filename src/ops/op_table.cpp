#include "ops/op_table.h"

#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "ops/groups.h"

namespace tessera::ops {
namespace {

using GroupFn = std::vector<OpSchema> (*)();

constexpr GroupFn kGroups[] = {
    // elementwise
    unary_ops,
    activation_ops,
    arithmetic_ops,
    variadic_ops,
    logic_ops,
    cast_ops,
    clip_ops,
    identity_ops,
    bit_cast_ops,
    // movement
    transpose_ops,
    concat_ops,
    slice_ops,
    pad_ops,
    gather_ops,
    scatter_ops,
    repeat_ops,
    rearrange_ops,
    generate_ops,
    select_ops,
    cumulative_ops,
    random_ops,
    crop_pad_ops,
    tensor_scatter_ops,
    // shape
    shape_ops,
    reshape_ops,
    // reduce
    reduce_ops,
    arg_reduce_ops,
    // nn
    conv_ops,
    pool_ops,
    normalization_ops,
    product_ops,
    resize_ops,
    softmax_ops,
    recurrent_ops,
    // sequence
    sequence_ops,
    sequence_split_ops,
    optional_ops,
    text_ops,
    regex_ops,
    tfidf_ops,
    detection_ops,
    attention_ops,
    rotary_embedding_ops,
    linear_attention_ops,
    causal_conv_ops,
    deform_conv_ops,
    determinant_ops,
    grid_ops,
    loss_ops,
    roi_align_ops,
    unpool_ops,
    // signal
    window_function_ops,
    fourier_ops,
    // ml
    label_encoder_ops,
    feature_ops,
    tree_ensemble_ops,
    // training
    optimizer_ops,
    // contrib
    contrib_activation_ops,
    contrib_attention_ops,
    contrib_fused_ops,
    contrib_movement_ops,
    contrib_normalization_ops,
    contrib_rotary_embedding_ops,
    block_quantized_ops,
    dynamic_quantize_lstm_ops,
    group_query_attention_ops,
    inverse_ops,
    multi_head_attention_ops,
    quantized_elementwise_ops,
    quantized_product_ops,
    // control
    control_ops,
};

std::pair<std::string_view, std::string_view> key(const OpSchema& op) {
  return {op.domain, op.name};
}

const std::vector<OpSchema>& table() {
  static const std::vector<OpSchema> ops = [] {
    std::vector<OpSchema> all;
    for (const GroupFn group : kGroups) {
      for (OpSchema& op : group()) all.push_back(std::move(op));
    }
    std::sort(all.begin(), all.end(),
              [](const OpSchema& a, const OpSchema& b) { return key(a) < key(b); });
    const auto twice =
        std::adjacent_find(all.begin(), all.end(),
                           [](const OpSchema& a, const OpSchema& b) { return key(a) == key(b); });
    TESSERA_CHECK(twice == all.end());
    return all;
  }();
  return ops;
}

}  // namespace

const OpSchema* find_op(std::string_view domain, std::string_view name) {
  if (domain == "ai.onnx") domain = "";
  const std::pair wanted{domain, name};
  const auto& ops = table();
  const auto found =
      std::lower_bound(ops.begin(), ops.end(), wanted,
                       [](const OpSchema& op, const auto& value) { return key(op) < value; });
  return found != ops.end() && key(*found) == wanted ? &*found : nullptr;
}

std::span<const OpSchema> all_ops() {
  return table();
}

}  // namespace tessera::ops
