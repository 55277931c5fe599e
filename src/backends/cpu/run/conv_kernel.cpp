// "onednn.conv": a convolution through oneDNN in pieces that threads take: batch items, output
// channels, or rows. What the library cannot put behind it runs as a program over each piece while
// it is in the cache.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "backends/cpu/run/anchor.h"
#include "backends/cpu/run/conv_plan.h"
#include "backends/cpu/run/kernels.h"
#include "backends/cpu/run/parallel_status.h"
#include "backends/cpu/run/physical.h"
#include "backends/cpu/run/primitive_cache.h"

namespace tessera::backends::cpu {
namespace {

// One chunk: its primitive, and where its operands begin (in elements).
struct Chunk {
  std::unique_ptr<OnednnCall> call;
  std::int64_t src = 0, weights = 0, bias = 0, dst = 0;
  std::int64_t dst_elements = 0;
  std::vector<std::int64_t> operands;  // of binary post-ops, beside the plan's
};

class ConvInstance final : public KernelInstance {
 public:
  ConvInstance(const Anchor<ConvPlan>& anchor, InstanceDims dims)
      : anchor_(anchor), dims_(std::move(dims)) {}

  Status build(int threads);
  [[nodiscard]] std::int64_t scratch_bytes() const override {
    return chunk_scratch_ * static_cast<std::int64_t>(chunks_.size());
  }
  Status execute(const ExecuteArgs& args) override;

 private:
  [[nodiscard]] std::vector<ConvPlan::Piece> cut(int threads) const;
  [[nodiscard]] bool channels_split() const;
  Result<std::shared_ptr<const OnednnPrimitive>> primitive(const ConvPlan::Piece& piece);
  Status add_chunk(const ConvPlan::Piece& piece, std::int64_t batch_begin,
                   std::int64_t channel_begin);
  [[nodiscard]] const Dims& src() const {
    return dims_.inputs[operand_ref(anchor_.spec, anchor_.plan.src_operand).index];
  }
  [[nodiscard]] const Dims& dst() const { return dims_.outputs[0]; }

  const Anchor<ConvPlan>& anchor_;
  InstanceDims dims_;
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>,
           std::shared_ptr<const OnednnPrimitive>>
      primitives_;
  std::vector<Chunk> chunks_;
  BoundProgram tail_;
  bool has_tail_ = false;
  bool pads_ = false;
  std::int64_t library_scratch_ = 0;
  std::int64_t chunk_scratch_ = 0;
};

// Output channels can be cut where weights and results lie in one piece for each block of them.
bool ConvInstance::channels_split() const {
  const ConvPlan& plan = anchor_.plan;
  const Layout& weights = operand_decl(anchor_.spec, plan.weights_operand)->layout;
  const std::size_t out_dim = plan.transposed ? 1 : 0;
  const std::size_t outermost = weights.order.empty() ? 0 : weights.order[0];
  if (is_channels_last(plan.dst_layout, dst().size()) || outermost != out_dim) return false;
  if (plan.group == 1) return true;
  return !plan.transposed && !is_channels_last(plan.src_layout, dst().size());
}

std::vector<ConvPlan::Piece> ConvInstance::cut(int threads) const {
  const ConvPlan& plan = anchor_.plan;
  const ConvPlan::Piece whole = plan.whole(dst());
  const std::int64_t batch = dst()[0];
  std::vector<ConvPlan::Piece> pieces;
  const std::int64_t wanted = threads <= 1 || numel(dst()) < 4096 ? 1 : std::int64_t{threads};
  if (wanted == 1) return {whole};
  if (batch >= threads) {
    const std::int64_t parts = std::min(batch, wanted);
    for (std::int64_t i = 0; i < parts; ++i) {
      const ChunkRange range = chunk_range(batch, parts, i);
      ConvPlan::Piece piece = whole;
      piece.batch = range.end - range.begin;
      pieces.push_back(piece);
    }
    return pieces;
  }
  const std::int64_t per_image = (wanted + batch - 1) / batch;
  for (std::int64_t n = 0; n < batch; ++n) {
    ConvPlan::Piece image = whole;
    image.batch = 1;
    if (channels_split()) {
      // A unit is a block, or for grouped ones as many groups as make whole blocks.
      const std::int64_t block = std::max(channel_block_of(plan.dst_layout), 1);
      const std::int64_t group_channels =
          plan.group == 1 || plan.depthwise() ? 1 : dst()[1] / plan.group;
      const std::int64_t unit = group_channels % block == 0   ? group_channels
                                : block % group_channels == 0 ? block
                                                              : whole.channels;
      const std::int64_t parts =
          std::clamp<std::int64_t>(whole.channels / std::max<std::int64_t>(unit, 1), 1, per_image);
      for (std::int64_t i = 0; i < parts; ++i) {
        const ChunkRange range = chunk_range(
            whole.channels, parts, i, plan.group == 1 ? std::max<std::int64_t>(unit, 8) : unit);
        image.channels = range.end - range.begin;
        if (image.channels > 0) pieces.push_back(image);
      }
    } else if (is_channels_last(plan.dst_layout, dst().size()) && !plan.transposed) {
      const std::int64_t parts = std::min(dst()[2], per_image);
      for (std::int64_t i = 0; i < parts; ++i) {
        const ChunkRange range = chunk_range(dst()[2], parts, i);
        image.row_begin = range.begin;
        image.row_end = range.end;
        if (range.begin < range.end) pieces.push_back(image);
      }
    } else {
      pieces.push_back(image);
    }
  }
  return pieces;
}

Result<std::shared_ptr<const OnednnPrimitive>> ConvInstance::primitive(
    const ConvPlan::Piece& piece) {
  const ConvPlan& plan = anchor_.plan;
  auto& made = primitives_[{piece.batch, piece.channels, piece.row_begin, piece.row_end}];
  if (made != nullptr) return made;
  const Layout& weights = operand_decl(anchor_.spec, plan.weights_operand)->layout;
  TESSERA_ASSIGN(ConvProblem problem, plan.problem(src(), dst(), piece, weights));
  TESSERA_TRY(
      set_post_op_operands(anchor_.spec, plan.epilogue, dims_, problem.dst.dims, problem.post_ops));
  TESSERA_ASSIGN(made, compiled_primitive(problem));
  return made;
}

Status ConvInstance::add_chunk(const ConvPlan::Piece& piece, std::int64_t batch_begin,
                               std::int64_t channel_begin) {
  const ConvPlan& plan = anchor_.plan;
  TESSERA_ASSIGN(const auto made, primitive(piece));
  Chunk chunk;
  TESSERA_ASSIGN(chunk.call, OnednnCall::make(made));
  const std::int64_t src_image =
      stored_elements(plan.src_layout, src()) / std::max<std::int64_t>(src()[0], 1);
  const std::int64_t dst_image =
      stored_elements(plan.dst_layout, dst()) / std::max<std::int64_t>(dst()[0], 1);
  const std::int64_t dst_channels = plan.stored_dst_channels(dst());
  const std::int64_t dst_spatial = dst_image / dst_channels;
  const std::int64_t src_spatial = src_image / plan.stored_src_channels(src());
  chunk.src = batch_begin * src_image;
  chunk.dst = batch_begin * dst_image + channel_begin * dst_spatial;
  if (plan.group > 1)
    chunk.src += channel_begin * plan.stored_src_channels(src()) / dst_channels * src_spatial;
  chunk.dst_elements = piece.batch * piece.channels * dst_spatial;
  if (piece.row_end - piece.row_begin != dst()[2]) {
    const ChunkRange rows = plan.source_rows(src(), dst(), piece);
    chunk.src += rows.begin * (src_image / src()[2]);
    chunk.dst += piece.row_begin * (dst_image / dst()[2]);
    chunk.dst_elements = (piece.row_end - piece.row_begin) * (dst_image / dst()[2]);
  }
  const Layout& weights = operand_decl(anchor_.spec, plan.weights_operand)->layout;
  chunk.weights = channel_begin == 0
                      ? 0
                      : stored_elements(weights, plan.weight_dims) / dst_channels * channel_begin;
  chunk.bias = channel_begin;
  for (const PlannedPostOp& planned : plan.epilogue.post_ops) {
    std::int64_t offset = 0;
    if (planned.op.binary) {
      const Dims own = operand_dims(anchor_.spec, dims_, planned.operand);
      const Dims stored = padded_dims(operand_decl(anchor_.spec, planned.operand)->layout, own);
      const std::int64_t image = numel(stored) / stored[0];
      if (own[0] != 1) offset += batch_begin * image;
      if (stored[1] == dst_channels) offset += channel_begin * (image / stored[1]);
      if (own[2] == dst()[2]) offset += piece.row_begin * (image / own[2]);
    }
    chunk.operands.push_back(offset);
  }
  library_scratch_ = std::max(library_scratch_, made->scratch_bytes());
  chunks_.push_back(std::move(chunk));
  return {};
}

Status ConvInstance::build(int threads) {
  if (numel(dst()) == 0) return {};
  std::int64_t batch = 0;
  std::int64_t channel = 0;
  for (const ConvPlan::Piece& piece : cut(threads)) {
    TESSERA_TRY(add_chunk(piece, batch, channel));
    channel += piece.channels;
    const bool image_done =
        channel == anchor_.plan.stored_dst_channels(dst()) && piece.row_end == dst()[2];
    if (image_done) batch += piece.batch;
    if (channel == anchor_.plan.stored_dst_channels(dst())) channel = 0;
  }
  has_tail_ = !anchor_.tail.empty();
  std::int64_t tail_scratch = 0;
  if (has_tail_) {
    TESSERA_ASSIGN(tail_, anchor_.tail.bind(dims_));
    tail_scratch = tail_.scratch_bytes();
  }
  const std::int64_t block = channel_block_of(anchor_.plan.dst_layout);
  pads_ = block > 1 && dst()[1] % block != 0;
  chunk_scratch_ = (std::max(library_scratch_, tail_scratch) + 63) / 64 * 64;
  return {};
}

Status ConvInstance::execute(const ExecuteArgs& args) {
  const ConvPlan& plan = anchor_.plan;
  const float* source = anchor_.operand(plan.src_operand, args);
  const float* weights = anchor_.operand(plan.weights_operand, args);
  const float* bias = plan.epilogue.bias ? anchor_.operand(*plan.epilogue.bias, args) : nullptr;
  float* result = floats(args.outputs[0]);
  return run_chunks(args.parallel, static_cast<std::int64_t>(chunks_.size()),
                    [&](std::int64_t i) -> Status {
                      Chunk& chunk = chunks_[static_cast<std::size_t>(i)];
                      std::byte* scratch = args.scratch + i * chunk_scratch_;
                      chunk.call->set(kSrc, source + chunk.src);
                      chunk.call->set(kWeights, weights + chunk.weights);
                      if (bias != nullptr) chunk.call->set(kBias, bias + chunk.bias);
                      chunk.call->set(kDst, result + chunk.dst);
                      chunk.call->set(kScratch, scratch);
                      for (std::size_t p = 0; p < chunk.operands.size(); ++p) {
                        const std::int32_t number = plan.epilogue.post_ops[p].operand;
                        if (number >= 0)
                          chunk.call->set(kPostOp + static_cast<int>(p),
                                          anchor_.operand(number, args) + chunk.operands[p]);
                      }
                      TESSERA_TRY(chunk.call->run());
                      if (has_tail_) {
                        tail_.run(args, chunk.dst, chunk.dst + chunk.dst_elements, floats(scratch));
                      } else if (pads_) {
                        zero_padded_lanes(plan.dst_layout, dst(), result, chunk.dst,
                                          chunk.dst + chunk.dst_elements);
                      }
                      return {};
                    });
}

}  // namespace

Result<std::unique_ptr<LoadedKernel>> load_conv(const artefact::KernelSpec& spec,
                                                Constants constants) {
  const auto option = spec.options.find("post_op_steps");
  const std::size_t steps =
      option == spec.options.end() ? 0 : static_cast<std::size_t>(option->second);
  TESSERA_ASSIGN(ConvPlan plan, plan_conv(spec, constants, steps));
  return load_anchor<ConvInstance>(spec, constants, std::move(plan), 1 + steps);
}

}  // namespace tessera::backends::cpu
