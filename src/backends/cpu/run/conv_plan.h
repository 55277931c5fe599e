#pragma once

// A convolution with its epilogue, read from a spec: what both halves ask oneDNN for. Sizes come
// later, with each instance.

#include <optional>
#include <vector>

#include "backends/cpu/run/conv_axis.h"
#include "backends/cpu/run/onednn_shim.h"
#include "backends/cpu/run/spec_util.h"

namespace tessera::backends::cpu {

// A post-op and the operand number of its second operand (-1: eltwise).
struct PlannedPostOp {
  PostOp op;
  std::int32_t operand = -1;
};

// The part of an epilogue that oneDNN computes. `steps` of the spec after the anchor are covered.
struct EpiloguePlan {
  std::optional<std::int32_t> bias;  // operand number of a per-channel constant
  std::vector<PlannedPostOp> post_ops;
  std::size_t steps = 0;
};

// Every way to cut the epilogue after step 0, longest first; the last one covers nothing.
// `accepts_bias`: the anchor has no bias of its own yet. An operand is taken where it is a constant
// or an input of full rank, or broadcast along all but dim `channel`.
std::vector<EpiloguePlan> plan_epilogue(const artefact::KernelSpec& spec, Constants constants,
                                        bool accepts_bias, std::size_t channel);

struct ConvPlan {
  bool transposed = false;
  std::int64_t group = 1;
  Dims kernel, strides, dilations;
  std::vector<std::int64_t> pads;  // begins, then ends
  std::string auto_pad;
  Dims output_padding;          // ConvTranspose
  bool pads_from_size = false;  // ConvTranspose with output_shape: pads follow from the sizes
  Layout src_layout, dst_layout;
  Dims weight_dims;  // as ONNX has them
  std::int32_t src_operand = 0;
  std::int32_t weights_operand = -1;
  EpiloguePlan epilogue;

  // One piece of the work: batch items, output channels (padded, in whole blocks or groups), output
  // rows.
  struct Piece {
    std::int64_t batch = 1;
    std::int64_t channels = 0;                // of dst, in stored channels
    std::int64_t row_begin = 0, row_end = 0;  // of the first spatial dim
  };

  // Pads at the begin and end of each spatial dim for those sizes (the end one may be negative or
  // more than ONNX says: it makes the sizes agree exactly).
  struct Pads {
    Dims begin, end;
  };
  [[nodiscard]] Pads pads_for(const Dims& src, const Dims& dst) const;

  // Spatial dim `dim` of one that is not transposed.
  [[nodiscard]] ConvAxis axis(const Dims& src, const Dims& dst, std::size_t dim) const;

  [[nodiscard]] std::int64_t stored_src_channels(const Dims& src) const;
  [[nodiscard]] std::int64_t stored_dst_channels(const Dims& dst) const;
  // Rows of the source that a piece reads.
  [[nodiscard]] ChunkRange source_rows(const Dims& src, const Dims& dst, const Piece& piece) const;
  // The problem for a piece; weights in `weights_layout` over ONNX's dims, or any.
  [[nodiscard]] Result<ConvProblem> problem(const Dims& src, const Dims& dst, const Piece& piece,
                                            const std::optional<Layout>& weights_layout) const;
  [[nodiscard]] Piece whole(const Dims& dst) const;

  // The library's order of weights over its own dims as a layout over ONNX's dims. Errors: no
  // layout expresses it.
  [[nodiscard]] Result<Layout> to_onnx_layout(const Layout& library, const Dims& src,
                                              const Dims& dst) const;
  [[nodiscard]] bool depthwise() const;
};

// The formats of the post-ops' operands: for each dim the size of `piece` (dims of the dst that
// oneDNN sees) or 1 where the operand is broadcast into the whole result `dst`. Errors: an operand
// whose channel is broadcast from inside of a block.
Status set_post_op_operands(const artefact::KernelSpec& spec, const EpiloguePlan& epilogue,
                            const InstanceDims& dims, const Dims& piece,
                            std::vector<PostOp>& post_ops);

// Dims of an operand that is an input or a constant.
Dims operand_dims(const artefact::KernelSpec& spec, const InstanceDims& dims, std::int32_t number);

// Errors: attributes or operands that it cannot take, with what it found. `epilogue_steps`: how
// many steps oneDNN covers.
Result<ConvPlan> plan_conv(const artefact::KernelSpec& spec, Constants constants,
                           std::size_t epilogue_steps);

// What every kernel of own code asks of a convolution. Errors: a rank that is not 3 or 4, weights
// computed at run time, a source that is a constant.
Status check_own_conv(const artefact::KernelSpec& spec, const ConvPlan& plan);

}  // namespace tessera::backends::cpu
