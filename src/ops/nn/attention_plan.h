#pragma once

// Sizes of one Attention call, read from shapes: for inference, kernels and backends alike.

#include <span>

#include "base/error.h"
#include "base/shape.h"
#include "ops/attributes.h"

namespace tessera::ops::nn {

// Inputs of Attention.
enum AttentionInput : std::size_t {
  kAttentionQuery,
  kAttentionKey,
  kAttentionValue,
  kAttentionMask,
  kAttentionPastKey,
  kAttentionPastValue,
  kAttentionValidKeys,
};

// Of the attributes left_window_size and right_window_size: no bound on that side.
inline constexpr std::int64_t kUnboundedWindow = -1;

// Values of the attribute nan_rows, which is none of the standard's: what becomes of a query whose
// keys are all masked. Where attention is re-assembled, it says what the pieces did.
enum AttentionNanRows : std::int64_t {
  kMaskedRowsAreZero = 0,  // the standard's operator
  kNanRowsStay = 1,        // as softmax alone: NaN
  kNanIsZero = 2,          // as softmax, with zeros in the place of every NaN
};

struct AttentionSizes {
  bool flat = false;  // Q, K, V and Y are [batch, length, heads * size], else [batch, heads,
                      // length, size]
  Dim batch, query_heads, key_heads;
  Dim query_length, key_length, past_length, total_length;  // total: past and new keys
  Dim head_size, value_size;

  [[nodiscard]] Shape output() const;
  [[nodiscard]] Shape present_key() const;
  [[nodiscard]] Shape present_value() const;
  [[nodiscard]] Shape scores() const;
};

// `shapes` are those of the inputs that are there, null for the others; Q, K and V are there.
// Errors name the input or attribute, what was expected and what was found.
Result<AttentionSizes> attention_sizes(const Attributes& attributes,
                                       std::span<const Shape* const> shapes);

}  // namespace tessera::ops::nn
