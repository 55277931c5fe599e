#pragma once

// Pieces of scaled dot-product attention around one Softmax: what is multiplied, scaled, masked,
// shared between heads. Internal to attentions.cpp.

#include <optional>
#include <string>
#include <vector>

#include "passes/reassemble/assembler.h"

namespace tessera::passes::reassemble {

// What is added to the scores, or the scores that stay.
struct Mask {
  enum class Kind : std::uint8_t {
    kNone,
    kAdded,    // scores + value
    kKept,     // where(value, scores, low)
    kDropped,  // where(value, low, scores)
  };
  Kind kind = Kind::kNone;
  ir::ValueId value = ir::kNoValue;
  double low = 0;  // minus infinity, or so low that it absorbs every score
};

// One of Q, K, V as the operator wants it, behind what is looked through.
struct Operand {
  ir::ValueId source = ir::kNoValue;
  std::optional<std::vector<std::int64_t>> perm;  // a Transpose that the source still needs
};

struct AttentionParts {
  std::vector<const ir::Node*> nodes;
  ir::ValueId result = ir::kNoValue;
  const ir::Node* scores = nullptr;  // the product of Q and K
  bool scores_are_turned = false;    // it is K Q^T
  double scale = 1;
  Mask mask;
  std::int64_t nan_rows = 0;           // ops::nn::AttentionNanRows
  std::optional<DType> softmax_dtype;  // where it is another than the scores'
  Operand query, key, value;
  std::string reason;  // not empty: it looks like attention, and why it is none
};

// Nothing where the Softmax is not between two products.
std::optional<AttentionParts> read_attention(const Assembler& assembler, const ir::Node& softmax);

}  // namespace tessera::passes::reassemble
