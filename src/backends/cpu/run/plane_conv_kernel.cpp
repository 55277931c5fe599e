// "simd.conv": a convolution by plane_conv_plan.h. Threads take pieces: images, a group, rows and
// columns. A piece writes out its planes, then computes one panel of output channels after the
// other.

#include <algorithm>
#include <array>
#include <cstring>

#include "backends/cpu/run/anchor.h"
#include "backends/cpu/run/kernels.h"
#include "backends/cpu/run/physical.h"
#include "backends/cpu/run/plane_conv_plan.h"

namespace tessera::backends::cpu {
namespace {

// Positions whose sums are computed before they are put in their places.
constexpr std::int64_t kStrip = 512;

// Elements between neighbours of an activation, for any of the three layouts.
struct ActivationStrides {
  std::int64_t image = 0, row = 0, column = 1;
  std::int64_t block = 1;         // channels that lie beside each other
  std::int64_t block_stride = 0;  // between such blocks

  ActivationStrides(const Layout& layout, const Dims& dims) {
    const bool last = is_channels_last(layout, dims.size());
    column = block = last ? dims[1] : channel_block_of(layout);
    row = column * dims.back();
    block_stride = row * (dims.size() == 4 ? dims[2] : 1);
    image = stored_elements(layout, dims) / std::max<std::int64_t>(dims[0], 1);
  }
  [[nodiscard]] std::int64_t channel(std::int64_t c) const {
    return c / block * block_stride + c % block;
  }
};

struct PieceRange {
  ChunkRange images, rows, columns;
  std::int64_t group = 0;
};

// Flat positions that are computed in one go: `count` runs, `stride` apart.
struct PositionRuns {
  std::int64_t count = 1, stride = 0, positions = 0;
};

// Output channels of one panel of weights.
std::int64_t conv_panel_rows(const ConvPlan& plan) {
  return panel_rows_for(plan.group,
                        plan.transposed ? plan.weight_dims[1] : plan.weight_dims[0] / plan.group);
}

class PlaneConvInstance final : public KernelInstance {
 public:
  PlaneConvInstance(const Anchor<ConvPlan>& anchor, const InstanceDims& dims)
      : anchor_(anchor),
        dims_(dims),
        panel_rows_(conv_panel_rows(anchor.plan)),
        geometry_(plane_geometry(anchor.plan, src(), dst())),
        src_(anchor.plan.src_layout, src()),
        dst_(anchor.plan.dst_layout, dst()) {}

  Status build(int threads);
  [[nodiscard]] std::int64_t scratch_bytes() const override { return chunk_scratch_ * chunks_; }
  Status execute(const ExecuteArgs& args) override;

 private:
  [[nodiscard]] const Dims& src() const {
    return dims_.inputs[operand_ref(anchor_.spec, anchor_.plan.src_operand).index];
  }
  [[nodiscard]] const Dims& dst() const { return dims_.outputs[0]; }
  [[nodiscard]] PieceRange piece(std::int64_t index) const;
  void run_piece(const ExecuteArgs& args, const PieceRange& piece, float* scratch) const;
  void fill_planes(const float* source, const PieceRange& piece, float* planes) const;
  void fill_row(const float* source, std::int64_t src_row, std::int64_t first, std::int64_t count,
                float* row) const;
  [[nodiscard]] PositionRuns position_runs(const PieceRange& piece) const;
  void run_panels(const ExecuteArgs& args, const PieceRange& piece, const float* planes,
                  float* sums) const;
  void place(const PieceRange& piece, std::size_t phase, ChunkRange strip, const float* sums,
             std::int64_t rows, std::int64_t first_channel, float* result) const;
  void finish(const ExecuteArgs& args, const PieceRange& piece, float* scratch) const;

  const Anchor<ConvPlan>& anchor_;
  InstanceDims dims_;
  std::int64_t panel_rows_;
  PlaneGeometry geometry_;
  ActivationStrides src_, dst_;
  PlaneCut cut_;
  std::vector<std::vector<PlaneTerm>> terms_;  // by row phase and column phase of the result
  std::int64_t chunks_ = 0;
  std::int64_t chunk_scratch_ = 0;
  BoundProgram tail_;
  bool has_tail_ = false;
  bool pads_ = false;
};

Status PlaneConvInstance::build(int threads) {
  if (numel(dst()) == 0) return {};
  cut_ = geometry_.cut(threads);
  chunks_ = std::min<std::int64_t>(cut_.pieces, std::max(threads, 1));
  for (std::int64_t r = 0; r < geometry_.rows.dst_step; ++r)
    for (std::int64_t c = 0; c < geometry_.columns.dst_step; ++c)
      terms_.push_back(geometry_.terms(cut_, r, c, panel_rows_));
  const std::int64_t sums = panel_rows_ * (kStrip + kPlaneSlack);
  std::int64_t bytes =
      (geometry_.piece_elements(cut_) + sums) * static_cast<std::int64_t>(sizeof(float));
  has_tail_ = !anchor_.tail.empty();
  if (has_tail_) {
    TESSERA_ASSIGN(tail_, anchor_.tail.bind(dims_));
    bytes = std::max(bytes, tail_.scratch_bytes());
  }
  chunk_scratch_ = (bytes + 63) / 64 * 64;
  const std::int64_t block = channel_block_of(anchor_.plan.dst_layout);
  pads_ = block > 1 && dst()[1] % block != 0;
  return {};
}

PieceRange PlaneConvInstance::piece(std::int64_t index) const {
  const auto take = [&](std::int64_t begin, std::int64_t end, std::int64_t each) {
    const std::int64_t parts = (end - begin + each - 1) / each;
    const std::int64_t first = begin + index % parts * each;
    index /= parts;
    return ChunkRange{first, std::min(end, first + each)};
  };
  PieceRange piece;
  piece.columns = take(geometry_.columns.grid_begin, geometry_.columns.grid_end, cut_.columns);
  piece.rows = take(geometry_.rows.grid_begin, geometry_.rows.grid_end, cut_.rows);
  piece.images = take(0, geometry_.images, cut_.images);
  piece.group = index;
  return piece;
}

// Elements `first`, `first` + step, ... of a row of the source, zeros outside of it.
void PlaneConvInstance::fill_row(const float* source, std::int64_t src_row, std::int64_t first,
                                 std::int64_t count, float* row) const {
  const PlaneAxis& axis = geometry_.columns;
  const std::int64_t step = axis.src_step;
  const bool inside = src_row >= 0 && src_row < geometry_.rows.src_size;
  const std::int64_t low =
      !inside ? count : std::clamp<std::int64_t>((step - 1 - first) / step, 0, count);
  const std::int64_t past = axis.src_size - first;
  const std::int64_t high =
      past <= 0 ? low : std::clamp<std::int64_t>((past + step - 1) / step, low, count);
  std::fill(row, row + low, 0.0F);
  if (low < high) {
    const float* from = source + src_row * src_.row + (first + low * step) * src_.column;
    const std::int64_t stride = step * src_.column;
    if (stride == 1) {
      std::memcpy(row + low, from, static_cast<std::size_t>(high - low) * sizeof(float));
    } else {
      for (std::int64_t i = low; i < high; ++i) row[i] = from[(i - low) * stride];
    }
  }
  std::fill(row + high, row + count, 0.0F);
}

void PlaneConvInstance::fill_planes(const float* source, const PieceRange& piece,
                                    float* planes) const {
  const PlaneAxis& rows = geometry_.rows;
  const PlaneAxis& columns = geometry_.columns;
  const std::int64_t width = cut_.columns + columns.reach;
  const std::int64_t height = piece.rows.end - piece.rows.begin + rows.reach;
  float* plane = planes;
  for (std::int64_t c = 0; c < geometry_.src_channels; ++c) {
    const float* channel = source + src_.channel(piece.group * geometry_.src_channels + c);
    for (const std::int64_t row_phase : rows.src_phases) {
      for (const std::int64_t column_phase : columns.src_phases) {
        const std::int64_t first_row = piece.rows.begin * rows.src_step + row_phase - rows.src_pad;
        const std::int64_t first =
            piece.columns.begin * columns.src_step + column_phase - columns.src_pad;
        for (std::int64_t n = piece.images.begin; n < piece.images.end; ++n) {
          float* at = plane + (n - piece.images.begin) * (cut_.rows + rows.reach) * width;
          for (std::int64_t r = 0; r < height; ++r)
            fill_row(channel + n * src_.image, first_row + r * rows.src_step, first, width,
                     at + r * width);
        }
        plane += geometry_.plane_elements(cut_);
      }
    }
  }
}

// Puts the sums of flat positions `strip` where they belong.
void PlaneConvInstance::place(const PieceRange& piece, std::size_t phase, ChunkRange strip,
                              const float* sums, std::int64_t rows, std::int64_t first_channel,
                              float* result) const {
  const PlaneAxis& row_axis = geometry_.rows;
  const PlaneAxis& column_axis = geometry_.columns;
  const std::int64_t width = cut_.columns + column_axis.reach;
  const std::int64_t height = cut_.rows + row_axis.reach;
  const std::int64_t row_phase = static_cast<std::int64_t>(phase) / column_axis.dst_step;
  const std::int64_t column_phase = static_cast<std::int64_t>(phase) % column_axis.dst_step;
  const std::int64_t columns = piece.columns.end - piece.columns.begin;
  const std::int64_t first_x =
      piece.columns.begin * column_axis.dst_step + column_phase - column_axis.dst_pad;
  const std::int64_t stride = column_axis.dst_step * dst_.column;
  for (std::int64_t line = strip.begin / width; line * width < strip.end; ++line) {
    const std::int64_t row = line % height;
    const std::int64_t y =
        (piece.rows.begin + row) * row_axis.dst_step + row_phase - row_axis.dst_pad;
    if (row >= piece.rows.end - piece.rows.begin || y < 0 || y >= row_axis.dst_size) continue;
    // Columns of this line that lie in the strip, and in the result.
    std::int64_t begin = std::max<std::int64_t>(strip.begin - line * width, 0);
    std::int64_t end = std::min(strip.end - line * width, columns);
    if (first_x < 0)
      begin = std::max(begin, (column_axis.dst_step - 1 - first_x) / column_axis.dst_step);
    end = std::min(
        end, (column_axis.dst_size - first_x + column_axis.dst_step - 1) / column_axis.dst_step);
    if (begin >= end) continue;
    const std::int64_t image = piece.images.begin + line / height;
    float* to = result + image * dst_.image + y * dst_.row +
                (first_x + begin * column_axis.dst_step) * dst_.column;
    const float* from = sums + line * width + begin - strip.begin;
    for (std::int64_t r = 0; r < rows; ++r, from += kStrip + kPlaneSlack) {
      float* at = to + dst_.channel(first_channel + r);
      if (stride == 1) {
        std::memcpy(at, from, static_cast<std::size_t>(end - begin) * sizeof(float));
      } else {
        for (std::int64_t i = 0; i < end - begin; ++i) at[i * stride] = from[i];
      }
    }
  }
}

// Lines of their own where whole vectors of each are fewer than the positions with all between
// them.
PositionRuns PlaneConvInstance::position_runs(const PieceRange& piece) const {
  constexpr std::int64_t kTile = 24;
  const std::int64_t width = cut_.columns + geometry_.columns.reach;
  const std::int64_t columns = piece.columns.end - piece.columns.begin;
  const std::int64_t lines =
      (piece.images.end - piece.images.begin - 1) * (cut_.rows + geometry_.rows.reach) +
      piece.rows.end - piece.rows.begin;
  const std::int64_t flat = (lines - 1) * width + columns;
  if (lines * ((columns + kTile - 1) / kTile * kTile) < flat) return {lines, width, columns};
  return {1, 0, flat};
}

void PlaneConvInstance::run_panels(const ExecuteArgs& args, const PieceRange& piece,
                                   const float* planes, float* sums) const {
  const ConvPlan& plan = anchor_.plan;
  const std::int64_t channels = geometry_.dst_channels;
  const std::int64_t depth = geometry_.src_channels * numel(plan.kernel) * panel_rows_;
  const float* weights = anchor_.operand(plan.weights_operand, args);
  const float* bias = plan.epilogue.bias ? anchor_.operand(*plan.epilogue.bias, args) : nullptr;
  const PositionRuns runs = position_runs(piece);
  const std::int64_t height = cut_.rows + geometry_.rows.reach;
  for (std::int64_t c = 0; c < channels; c += panel_rows_) {
    const std::int64_t first = piece.group * channels + c;
    const std::int64_t rows = std::min(panel_rows_, channels - c);
    std::array<float, kMaxPanelRows> start{};
    if (bias != nullptr) std::copy_n(bias + first, rows, start.begin());
    PlaneTerms terms{planes, nullptr, start.data(), nullptr, nullptr};
    terms.weights =
        weights + (geometry_.transposed ? (c / panel_rows_ * geometry_.group + piece.group) * depth
                                        : first / panel_rows_ * depth);
    for (std::size_t phase = 0; phase < terms_.size(); ++phase) {
      terms.begin = terms_[phase].data();
      terms.end = terms.begin + terms_[phase].size();
      for (std::int64_t run = 0; run < runs.count; ++run) {
        if (runs.count > 1 && run % height >= piece.rows.end - piece.rows.begin) continue;
        const std::int64_t end = run * runs.stride + runs.positions;
        for (std::int64_t at = run * runs.stride; at < end; at += kStrip) {
          const std::int64_t count = std::min(kStrip, end - at);
          terms.planes = planes + at;
          plane_sums(terms, static_cast<std::size_t>(panel_rows_), static_cast<std::size_t>(count),
                     sums, kStrip + kPlaneSlack);
          place(piece, phase, {at, at + count}, sums, rows, first, floats(args.outputs[0]));
        }
      }
    }
  }
}

// What stands behind the sums, over each run of stored elements of the piece.
void PlaneConvInstance::finish(const ExecuteArgs& args, const PieceRange& piece,
                               float* scratch) const {
  if (!has_tail_ && !pads_) return;
  const ChunkRange ys = geometry_.rows.results(piece.rows);
  const ChunkRange xs = geometry_.columns.results(piece.columns);
  const std::int64_t begin = piece.group * geometry_.dst_channels / dst_.block;
  const std::int64_t end =
      ((piece.group + 1) * geometry_.dst_channels + dst_.block - 1) / dst_.block;
  const bool whole_rows = xs.begin == 0 && xs.end == geometry_.columns.dst_size;
  const std::int64_t runs = whole_rows ? 1 : ys.end - ys.begin;
  const std::int64_t run_elements =
      whole_rows ? (ys.end - ys.begin) * dst_.row : (xs.end - xs.begin) * dst_.column;
  for (std::int64_t n = piece.images.begin; n < piece.images.end; ++n) {
    for (std::int64_t block = begin; block < end; ++block) {
      for (std::int64_t run = 0; run < runs; ++run) {
        const std::int64_t from = n * dst_.image + block * dst_.block_stride +
                                  (ys.begin + run) * dst_.row + xs.begin * dst_.column;
        if (has_tail_) {
          tail_.run(args, from, from + run_elements, scratch);
        } else {
          zero_padded_lanes(anchor_.plan.dst_layout, dst(), floats(args.outputs[0]), from,
                            from + run_elements);
        }
      }
    }
  }
}

void PlaneConvInstance::run_piece(const ExecuteArgs& args, const PieceRange& piece,
                                  float* scratch) const {
  float* sums = scratch + geometry_.piece_elements(cut_);
  fill_planes(anchor_.operand(anchor_.plan.src_operand, args), piece, scratch);
  run_panels(args, piece, scratch, sums);
  finish(args, piece, scratch);
}

Status PlaneConvInstance::execute(const ExecuteArgs& args) {
  const auto one = [&](std::int64_t i) {
    const ChunkRange range = chunk_range(cut_.pieces, chunks_, i);
    for (std::int64_t p = range.begin; p < range.end; ++p)
      run_piece(args, piece(p), floats(args.scratch + i * chunk_scratch_));
  };
  args.parallel->run(chunks_, one);
  return {};
}

}  // namespace

Result<std::unique_ptr<LoadedKernel>> load_plane_conv(const artefact::KernelSpec& spec,
                                                      Constants constants) {
  TESSERA_ASSIGN(ConvPlan plan, plan_conv(spec, constants, 0));
  TESSERA_TRY(check_plane_conv(spec, plan));
  const auto& weights = *operand_decl(spec, plan.weights_operand);
  const Layout wanted =
      plane_weights_layout(plan.transposed, plan.weight_dims.size(), conv_panel_rows(plan));
  if (weights.layout != wanted)
    return bad_spec(spec, "expected weights in " + wanted.to_string() + ", found " +
                              weights.layout.to_string());
  return load_anchor<PlaneConvInstance>(spec, constants, std::move(plan), 1);
}

}  // namespace tessera::backends::cpu
