// "simd.depthwise_conv": depthwise_simd.h over rows of the result, and what stands behind them
// while they are in the cache. Threads take rows of all images; where those are few, columns or
// channels.

#include <fmt/format.h>

#include <algorithm>

#include "backends/cpu/run/anchor.h"
#include "backends/cpu/run/depthwise_conv_plan.h"
#include "backends/cpu/run/depthwise_simd.h"
#include "backends/cpu/run/kernels.h"
#include "backends/cpu/run/physical.h"

namespace tessera::backends::cpu {
namespace {

// Products below which a second thread costs more than it saves.
constexpr std::int64_t kFewestProducts = 200'000;
// Results that stay in a core's second cache until the tail reads them.
constexpr std::int64_t kBlockElements = 32 * 1024;
constexpr std::int64_t kFewestRows = 4;  // of a block: they share what they read
constexpr std::int64_t kFewestColumns = 16;

class DepthwiseConvInstance final : public KernelInstance {
 public:
  DepthwiseConvInstance(const Anchor<ConvPlan>& anchor, InstanceDims dims)
      : anchor_(anchor), dims_(std::move(dims)) {}

  Status build(int threads);
  [[nodiscard]] std::int64_t scratch_bytes() const override { return chunk_scratch_ * chunks_; }
  Status execute(const ExecuteArgs& args) override;

 private:
  enum class Cut : std::uint8_t { kRows, kColumns, kChannels };
  struct Piece {
    ChunkRange rows;  // of all images, one behind the other
    ChunkRange columns, channels;
  };
  void choose_cut(int threads);
  [[nodiscard]] Piece piece(std::int64_t index) const;
  void run_piece(const ExecuteArgs& args, const Piece& piece, float* scratch) const;
  void finish(const ExecuteArgs& args, const Piece& piece, float* scratch) const;

  const Anchor<ConvPlan>& anchor_;
  InstanceDims dims_;
  std::int64_t images_ = 0;
  DepthwisePart image_;  // the whole first one, without its operands
  Cut cut_ = Cut::kRows;
  std::int64_t chunks_ = 0;
  std::int64_t chunk_scratch_ = 0;
  BoundProgram tail_;
  bool has_tail_ = false;
};

// What divides most evenly among the threads; rows where that is a matter of little.
void DepthwiseConvInstance::choose_cut(int threads) {
  constexpr double kUneven = 1.1;
  const std::int64_t products =
      numel(dims_.outputs[0]) * image_.rows.kernel * image_.columns.kernel;
  const std::int64_t wanted = products < kFewestProducts ? 1 : std::max<std::int64_t>(threads, 1);
  // By how much the longest share is longer than an even one.
  const auto uneven = [&](std::int64_t count) {
    const std::int64_t longest = (count + wanted - 1) / wanted;
    return static_cast<double>(longest * wanted) / static_cast<double>(count);
  };
  const std::int64_t rows = images_ * image_.rows.dst_size;
  const std::int64_t columns = image_.columns.dst_size / kFewestColumns;
  const std::int64_t channels = image_.channels / kDepthwiseChannels;
  double least = uneven(rows) / kUneven;
  std::int64_t count = rows;
  const auto consider = [&](Cut cut, std::int64_t parts) {
    if (parts < wanted || uneven(parts) >= least) return;
    cut_ = cut;
    count = parts;
    least = uneven(parts);
  };
  consider(Cut::kColumns, columns);
  consider(Cut::kChannels, channels);
  chunks_ = std::min(wanted, count);
}

DepthwiseConvInstance::Piece DepthwiseConvInstance::piece(std::int64_t index) const {
  Piece piece{
      {0, images_ * image_.rows.dst_size}, {0, image_.columns.dst_size}, {0, image_.channels}};
  // Parts of whole units; the last one takes what is left over.
  const auto take = [&](ChunkRange& range, std::int64_t unit) {
    const ChunkRange units = chunk_range(range.end / unit, chunks_, index);
    range = {units.begin * unit, index + 1 == chunks_ ? range.end : units.end * unit};
  };
  switch (cut_) {
    case Cut::kRows: take(piece.rows, 1); break;
    case Cut::kColumns: take(piece.columns, kFewestColumns); break;
    case Cut::kChannels: take(piece.channels, kDepthwiseChannels); break;
  }
  return piece;
}

Status DepthwiseConvInstance::build(int threads) {
  const ConvPlan& plan = anchor_.plan;
  const Dims& dst = dims_.outputs[0];
  if (numel(dst) == 0) return {};
  const Dims& src = dims_.inputs[operand_ref(anchor_.spec, plan.src_operand).index];
  images_ = dst[0];
  image_.channels = dst[1];
  if (dst.size() == 4) image_.rows = plan.axis(src, dst, 0);
  image_.columns = plan.axis(src, dst, dst.size() - 3);
  choose_cut(threads);
  has_tail_ = !anchor_.tail.empty();
  if (!has_tail_) return {};
  TESSERA_ASSIGN(tail_, anchor_.tail.bind(dims_));
  chunk_scratch_ = (tail_.scratch_bytes() + 63) / 64 * 64;
  return {};
}

// The steps behind the sums, over each run of elements of some rows.
void DepthwiseConvInstance::finish(const ExecuteArgs& args, const Piece& piece,
                                   float* scratch) const {
  const std::int64_t row = image_.columns.dst_size * image_.channels;
  if (cut_ == Cut::kRows)
    return tail_.run(args, piece.rows.begin * row, piece.rows.end * row, scratch);
  for (std::int64_t y = piece.rows.begin; y < piece.rows.end; ++y) {
    if (cut_ == Cut::kColumns) {
      tail_.run(args, y * row + piece.columns.begin * image_.channels,
                y * row + piece.columns.end * image_.channels, scratch);
      continue;
    }
    for (std::int64_t x = 0; x < image_.columns.dst_size; ++x) {
      const std::int64_t at = y * row + x * image_.channels;
      tail_.run(args, at + piece.channels.begin, at + piece.channels.end, scratch);
    }
  }
}

void DepthwiseConvInstance::run_piece(const ExecuteArgs& args, const Piece& piece,
                                      float* scratch) const {
  const ConvPlan& plan = anchor_.plan;
  const float* src = anchor_.operand(plan.src_operand, args);
  const std::int64_t height = image_.rows.dst_size;
  const std::int64_t src_row = image_.columns.src_size * image_.channels;
  const std::int64_t dst_row = image_.columns.dst_size * image_.channels;
  DepthwisePart part = image_;
  part.weights = anchor_.operand(plan.weights_operand, args);
  if (plan.epilogue.bias) part.bias = anchor_.operand(*plan.epilogue.bias, args);
  part.column_begin = piece.columns.begin;
  part.column_end = piece.columns.end;
  part.channel_begin = piece.channels.begin;
  part.channel_end = piece.channels.end;
  const std::int64_t block = std::max(kFewestRows, kBlockElements / dst_row);
  for (std::int64_t at = piece.rows.begin; at < piece.rows.end;
       at += part.row_end - part.row_begin) {
    const std::int64_t image = at / height;
    part.src = src + image * image_.rows.src_size * src_row;
    part.dst = floats(args.outputs[0]) + image * height * dst_row;
    part.row_begin = at % height;
    part.row_end = std::min({height, part.row_begin + block, piece.rows.end - image * height});
    depthwise_sums(part);
    if (has_tail_)
      finish(args, {{at, at + part.row_end - part.row_begin}, piece.columns, piece.channels},
             scratch);
  }
}

Status DepthwiseConvInstance::execute(const ExecuteArgs& args) {
  const auto one = [&](std::int64_t i) {
    run_piece(args, piece(i), floats(args.scratch + i * chunk_scratch_));
  };
  args.parallel->run(chunks_, one);
  return {};
}

}  // namespace

Layout depthwise_weights_layout(std::size_t rank) {
  return rank == 3 ? Layout{{2, 1, 0}, {}} : Layout{{2, 3, 1, 0}, {}};
}

Status check_depthwise_conv(const artefact::KernelSpec& spec, const ConvPlan& plan) {
  if (plan.depthwise()) return check_own_conv(spec, plan);
  return fail(ErrorCode::kUnimplemented,
              fmt::format("{}: expected one channel in each group, found weights {} in {} groups",
                          spec.steps[0].op_type, to_string(plan.weight_dims), plan.group));
}

Result<std::unique_ptr<LoadedKernel>> load_depthwise_conv(const artefact::KernelSpec& spec,
                                                          Constants constants) {
  TESSERA_ASSIGN(ConvPlan plan, plan_conv(spec, constants, 0));
  TESSERA_TRY(check_depthwise_conv(spec, plan));
  const Shape& src = spec.inputs[static_cast<std::size_t>(plan.src_operand)].shape;
  const Shape& dst = spec.outputs[0].shape;
  const std::size_t rank = plan.weight_dims.size();
  if (dst.size() != rank || src[1] != plan.group || dst[1] != plan.group)
    return bad_spec(spec, fmt::format("expected {} channels, found {} and {}", plan.group,
                                      to_string(src), to_string(dst)));
  if (!is_channels_last(plan.src_layout, rank) || !is_channels_last(plan.dst_layout, rank))
    return bad_spec(spec, fmt::format("expected channels-last operands, found {} and {}",
                                      plan.src_layout.to_string(), plan.dst_layout.to_string()));
  const Layout& weights = operand_decl(spec, plan.weights_operand)->layout;
  if (weights != depthwise_weights_layout(rank))
    return bad_spec(spec,
                    fmt::format("expected weights in {}, found {}",
                                depthwise_weights_layout(rank).to_string(), weights.to_string()));
  return load_anchor<DepthwiseConvInstance>(spec, constants, std::move(plan), 1);
}

}  // namespace tessera::backends::cpu
