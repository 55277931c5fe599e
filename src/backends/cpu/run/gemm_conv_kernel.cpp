// "simd.gemm_conv": a convolution by gemm_conv_plan.h. Threads take positions of the result, or
// output channels. Of some positions a part of the depth is multiplied at a time, so that what is
// read of the source and of a panel stays in the caches.

#include <algorithm>

#include "backends/cpu/run/anchor.h"
#include "backends/cpu/run/gemm_conv_plan.h"
#include "backends/cpu/run/kernels.h"
#include "backends/cpu/run/product_simd.h"

namespace tessera::backends::cpu {
namespace {

// Positions whose part of the source stays in a core's second cache while all panels pass.
constexpr std::int64_t kBlockPositions = 144;
constexpr std::int64_t kPartDepth = 512;
constexpr std::int64_t kMaxPartSegments = 32;
constexpr double kTooSmallToCut = 2e5;  // flops

// Segments that are multiplied in one go, whole or (one of them) from `begin` to `end`.
struct DepthPart {
  std::int64_t first = 0, segments = 1;
  std::int64_t begin = 0, end = 0;

  [[nodiscard]] std::int64_t depth() const { return end - begin; }
};

std::vector<DepthPart> depth_parts(const GemmConvGeometry& geometry) {
  std::vector<DepthPart> parts;
  const std::int64_t depth = geometry.segment_depth();
  if (depth > kPartDepth + kPartDepth / 4) {
    const std::int64_t pieces = (depth + kPartDepth - 1) / kPartDepth;
    for (std::int64_t s = 0; s < geometry.segments(); ++s) {
      for (std::int64_t i = 0; i < pieces; ++i) {
        const ChunkRange range = chunk_range(depth, pieces, i);
        parts.push_back({s, 1, range.begin, range.end});
      }
    }
    return parts;
  }
  const std::int64_t fitting =
      std::clamp<std::int64_t>((kPartDepth + depth / 2) / depth, 1, kMaxPartSegments);
  for (std::int64_t s = 0; s < geometry.segments(); s += fitting)
    parts.push_back({s, std::min(fitting, geometry.segments() - s), 0, depth});
  return parts;
}

// What a thread uses while it computes.
struct Workspace {
  const float** rows = nullptr;  // of A
  float* windows = nullptr;      // segments that cross a border, with their zeros
  float* tail = nullptr;
};

class GemmConvInstance final : public KernelInstance {
 public:
  GemmConvInstance(const Anchor<PanelConvPlan>& anchor, const InstanceDims& dims)
      : anchor_(anchor),
        dims_(dims),
        geometry_(gemm_conv_geometry(
            anchor.plan.conv,
            dims.inputs[operand_ref(anchor.spec, anchor.plan.conv.src_operand).index],
            dims.outputs[0])) {}

  Status build(int threads);
  [[nodiscard]] std::int64_t scratch_bytes() const override { return chunk_scratch_ * chunks_; }
  Status execute(const ExecuteArgs& args) override;

 private:
  void choose_cut(int threads);
  void run_chunk(const ExecuteArgs& args, std::int64_t index) const;
  void run_block(const ExecuteArgs& args, ChunkRange positions, ChunkRange channels,
                 std::int64_t group, const Workspace& work) const;
  void find_rows(const float* source, ChunkRange positions, const DepthPart& part,
                 const Workspace& work) const;
  void find_line(const float* row, ChunkRange columns, std::int64_t tap, const DepthPart& part,
                 const float** rows, float*& window) const;
  [[nodiscard]] const float* border(const float* row, std::int64_t column, const DepthPart& part,
                                    float*& window) const;
  void finish(const ExecuteArgs& args, ChunkRange positions, ChunkRange channels,
              float* scratch) const;

  const Anchor<PanelConvPlan>& anchor_;
  InstanceDims dims_;
  GemmConvGeometry geometry_;
  std::vector<DepthPart> parts_;
  std::vector<ChunkRange> inside_;  // by segment of a row of the kernel
  std::vector<float> zeros_;        // a segment that lies outside of the source
  bool cuts_channels_ = false;
  std::int64_t chunks_ = 0;
  std::int64_t rows_bytes_ = 0, windows_bytes_ = 0;  // of a chunk's scratch
  std::int64_t chunk_scratch_ = 0;
  BoundProgram tail_;
  bool has_tail_ = false;
};

// Channels where the weights are the larger part of what is read, and share out evenly.
void GemmConvInstance::choose_cut(int threads) {
  const GemmConvGeometry& g = geometry_;
  const std::int64_t positions = g.positions();
  const std::int64_t panels = (g.group * g.dst_channels + kProductColumns - 1) / kProductColumns;
  const std::int64_t depth = g.segments() * g.segment_depth();
  const double flops =
      2.0 * static_cast<double>(positions * g.group * g.dst_channels) * static_cast<double>(depth);
  const std::int64_t wanted = flops < kTooSmallToCut ? 1 : std::max(threads, 1);
  const std::int64_t source =
      g.images * g.rows.src_size * g.columns.src_size * g.group * g.src_channels;
  const bool weights_larger = g.group * g.dst_channels * depth > source;
  const bool even = panels % wanted == 0 || panels >= 8 * wanted;
  cuts_channels_ = panels >= wanted && (positions < 4 * wanted || (weights_larger && even));
  chunks_ = std::min(wanted, cuts_channels_ ? panels : positions);
}

Status GemmConvInstance::build(int threads) {
  if (numel(dims_.outputs[0]) == 0) return {};
  choose_cut(threads);
  parts_ = depth_parts(geometry_);
  const std::int64_t taps = geometry_.taps_per_segment();
  std::int64_t borders = 0;  // windows of a line that cross its ends
  for (std::int64_t tap = 0; tap < geometry_.columns.kernel; tap += taps) {
    inside_.push_back(geometry_.inside(tap, taps));
    if (taps > 1) borders = geometry_.columns.dst_size - (inside_[0].end - inside_[0].begin);
  }
  zeros_.assign(static_cast<std::size_t>(geometry_.segment_depth()), 0.0F);
  std::int64_t segments = 0;
  std::int64_t elements = 0;
  for (const DepthPart& part : parts_) {
    segments = std::max(segments, part.segments);
    elements = std::max(elements, part.segments * part.depth());
  }
  const auto bytes = [](std::int64_t count, std::size_t size) {
    return (count * static_cast<std::int64_t>(size) + 63) / 64 * 64;
  };
  const std::int64_t lines = kBlockPositions / geometry_.columns.dst_size + 2;
  rows_bytes_ = bytes(kBlockPositions * segments, sizeof(const float*));
  windows_bytes_ = bytes(std::min(kBlockPositions, lines * borders) * elements, sizeof(float));
  chunk_scratch_ = rows_bytes_ + windows_bytes_;
  has_tail_ = !anchor_.tail.empty();
  if (has_tail_) {
    TESSERA_ASSIGN(tail_, anchor_.tail.bind(dims_));
    chunk_scratch_ += bytes(tail_.scratch_bytes(), 1);
  }
  return {};
}

// A segment of column `column` that crosses an end of the source's row.
const float* GemmConvInstance::border(const float* row, std::int64_t column, const DepthPart& part,
                                      float*& window) const {
  const ConvAxis& axis = geometry_.columns;
  if (geometry_.taps_per_segment() == 1) return zeros_.data();
  const std::int64_t stride = geometry_.src_column_stride();
  const std::int64_t first = column * axis.stride - axis.pad;
  const std::int64_t low = std::clamp(-first * stride, part.begin, part.end);
  const std::int64_t high = std::clamp((axis.src_size - first) * stride, low, part.end);
  if (low == high) return zeros_.data();
  float* result = window;
  window = std::fill_n(window, low - part.begin, 0.0F);
  window = std::copy(row + first * stride + low, row + first * stride + high, window);
  window = std::fill_n(window, part.end - high, 0.0F);
  return result;
}

void GemmConvInstance::find_line(const float* row, ChunkRange columns, std::int64_t tap,
                                 const DepthPart& part, const float** rows, float*& window) const {
  const ConvAxis& axis = geometry_.columns;
  const ChunkRange& inside = inside_[static_cast<std::size_t>(tap)];
  const std::int64_t begin = std::clamp(inside.begin, columns.begin, columns.end);
  const std::int64_t end = std::clamp(inside.end, begin, columns.end);
  for (std::int64_t x = columns.begin; x < begin; ++x) *rows++ = border(row, x, part, window);
  if (begin < end) {
    const std::int64_t first = begin * axis.stride - axis.pad + tap * axis.dilation;
    const std::int64_t step = axis.stride * geometry_.src_column_stride();
    const float* at = row + first * geometry_.src_column_stride() + part.begin;
    for (std::int64_t x = begin; x < end; ++x, at += step) *rows++ = at;
  }
  for (std::int64_t x = end; x < columns.end; ++x) *rows++ = border(row, x, part, window);
}

// `source`: the first channel of the group.
void GemmConvInstance::find_rows(const float* source, ChunkRange positions, const DepthPart& part,
                                 const Workspace& work) const {
  const GemmConvGeometry& g = geometry_;
  const std::int64_t count = positions.end - positions.begin;
  const auto segments_of_row = static_cast<std::int64_t>(inside_.size());
  float* window = work.windows;
  for (std::int64_t at = positions.begin; at < positions.end;) {
    const std::int64_t line = at / g.columns.dst_size;
    const std::int64_t first = at % g.columns.dst_size;
    const std::int64_t end = std::min(g.columns.dst_size, first + positions.end - at);
    const std::int64_t y = line % g.rows.dst_size * g.rows.stride - g.rows.pad;
    const float* image = source + line / g.rows.dst_size * g.rows.src_size * g.src_row_stride();
    for (std::int64_t s = 0; s < part.segments; ++s) {
      const float** rows = work.rows + s * count + at - positions.begin;
      const std::int64_t segment = part.first + s;
      const std::int64_t src_y = y + segment / segments_of_row * g.rows.dilation;
      if (src_y < 0 || src_y >= g.rows.src_size) {
        std::fill_n(rows, end - first, zeros_.data());
      } else {
        find_line(image + src_y * g.src_row_stride(), {first, end}, segment % segments_of_row, part,
                  rows, window);
      }
    }
    at += end - first;
  }
}

// Some positions of some channels of one group.
void GemmConvInstance::run_block(const ExecuteArgs& args, ChunkRange positions, ChunkRange channels,
                                 std::int64_t group, const Workspace& work) const {
  const ConvPlan& plan = anchor_.plan.conv;
  const float* bias = plan.epilogue.bias ? anchor_.operand(*plan.epilogue.bias, args) : nullptr;
  const std::int64_t depth = geometry_.segments() * geometry_.segment_depth();
  PanelProduct product;
  product.a = work.rows;
  product.rows = positions.end - positions.begin;
  product.panel_stride = depth * kProductColumns;
  product.columns = channels.end - channels.begin;
  product.c_stride = geometry_.group * geometry_.dst_channels;
  product.c = floats(args.outputs[0]) + positions.begin * product.c_stride + channels.begin;
  if (bias != nullptr) product.start = bias + channels.begin;
  const PanelEpilogue& epilogue = anchor_.plan.epilogue;
  const float* source = anchor_.operand(plan.src_operand, args) + group * geometry_.src_channels;
  product.skipped = channels.begin % kProductColumns;  // of the group before
  const float* panels =
      anchor_.operand(plan.weights_operand, args) + (channels.begin - product.skipped) * depth;
  for (const DepthPart& part : parts_) {
    find_rows(source, positions, part, work);
    product.segments = part.segments;
    product.depth = part.depth();
    product.panels =
        panels + (part.first * geometry_.segment_depth() + part.begin) * kProductColumns;
    if (&part == &parts_.back()) {
      if (epilogue.addend)
        product.addend =
            anchor_.operand(*epilogue.addend, args) + (product.c - floats(args.outputs[0]));
      if (epilogue.range) product.range = &*epilogue.range;
    }
    panel_rows_product(product);
    product.start = product.c;
    product.start_stride = product.c_stride;
  }
}

void GemmConvInstance::finish(const ExecuteArgs& args, ChunkRange positions, ChunkRange channels,
                              float* scratch) const {
  if (!has_tail_) return;
  const std::int64_t all = geometry_.group * geometry_.dst_channels;
  if (channels.end - channels.begin == all)
    return tail_.run(args, positions.begin * all, positions.end * all, scratch);
  for (std::int64_t p = positions.begin; p < positions.end; ++p)
    tail_.run(args, p * all + channels.begin, p * all + channels.end, scratch);
}

void GemmConvInstance::run_chunk(const ExecuteArgs& args, std::int64_t index) const {
  std::byte* scratch = args.scratch + index * chunk_scratch_;
  const Workspace work{reinterpret_cast<const float**>(scratch), floats(scratch + rows_bytes_),
                       floats(scratch + rows_bytes_ + windows_bytes_)};
  const std::int64_t width = geometry_.dst_channels;
  ChunkRange positions{0, geometry_.positions()};
  ChunkRange channels{0, geometry_.group * width};
  if (cuts_channels_) {
    channels = chunk_range(channels.end, chunks_, index, kProductColumns);
  } else {
    positions = chunk_range(positions.end, chunks_, index);
  }
  for (std::int64_t at = positions.begin; at < positions.end; at += kBlockPositions) {
    const ChunkRange block{at, std::min(positions.end, at + kBlockPositions)};
    for (std::int64_t group = channels.begin / width; group * width < channels.end; ++group) {
      run_block(
          args, block,
          {std::max(channels.begin, group * width), std::min(channels.end, (group + 1) * width)},
          group, work);
    }
    finish(args, block, channels, work.tail);
  }
}

Status GemmConvInstance::execute(const ExecuteArgs& args) {
  const auto one = [&](std::int64_t i) { run_chunk(args, i); };
  args.parallel->run(chunks_, one);
  return {};
}

}  // namespace

Result<std::unique_ptr<LoadedKernel>> load_gemm_conv(const artefact::KernelSpec& spec,
                                                     Constants constants) {
  TESSERA_ASSIGN(PanelConvPlan plan, plan_gemm_conv(spec, constants));
  const Layout wanted = gemm_conv_weights_layout(plan.conv.weight_dims.size());
  if (const auto& weights = *operand_decl(spec, plan.conv.weights_operand);
      weights.layout != wanted)
    return bad_spec(spec, "expected weights in " + wanted.to_string() + ", found " +
                              weights.layout.to_string());
  const std::size_t first_tail_step = 1 + plan.conv.epilogue.steps;
  return load_anchor<GemmConvInstance>(spec, constants, std::move(plan), first_tail_step);
}

}  // namespace tessera::backends::cpu
