// "simd.winograd_conv": a convolution by winograd_conv_plan.h. Some tiles at a time are
// transformed, multiplied plane by plane and transformed back, so that they stay in a core's
// caches. Threads take tiles; or, where the weights are the larger part of what is read, output
// channels, of tiles that they transformed together before.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "backends/cpu/run/anchor.h"
#include "backends/cpu/run/kernels.h"
#include "backends/cpu/run/winograd.h"
#include "backends/cpu/run/winograd_conv_plan.h"
#include "backends/cpu/run/winograd_simd.h"

namespace tessera::backends::cpu {
namespace {

// Transformed elements of a block of tiles, and tiles of a block: enough of them that the weights
// are worth reading.
constexpr std::int64_t kBlockElements = 64 * 1024;
constexpr std::int64_t kFewestTiles = 24, kMostTiles = 96;
constexpr std::int64_t kGroupColumns = 4 * kProductColumns;  // multiplied before they go back
constexpr std::int64_t kPartDepth = 512;
constexpr double kTooSmallToCut = 2e5;  // flops
// Between planes: those of a power of two would meet in the same sets of a cache.
constexpr std::int64_t kPlaneGap = 16;

constexpr std::int64_t kMostPoints = winograd_points(4);
using Pixels = std::array<const float*, static_cast<std::size_t>(kMostPoints* kMostPoints)>;

// Planes of transformed tiles: [plane][tile][channel].
struct Planes {
  float* data = nullptr;
  std::int64_t stride = 0;
};

struct TilePlace {
  std::int64_t image = 0, y = 0, x = 0;  // of its first result
};

class WinogradConvInstance final : public KernelInstance {
 public:
  WinogradConvInstance(const Anchor<PanelConvPlan>& anchor, InstanceDims dims)
      : anchor_(anchor),
        dims_(std::move(dims)),
        geometry_(winograd_conv_geometry(
            anchor.plan.conv,
            dims_.inputs[operand_ref(anchor.spec, anchor.plan.conv.src_operand).index],
            dims_.outputs[0], anchor.spec.options.at("tile"))) {}

  Status build(int threads);
  [[nodiscard]] std::int64_t scratch_bytes() const override {
    return shared_bytes_ + chunk_scratch_ * chunks_;
  }
  Status execute(const ExecuteArgs& args) override;

 private:
  void choose_cut(int threads);
  [[nodiscard]] TilePlace place(std::int64_t tile) const;
  // What the tile reads, by rows of `points` pixels.
  [[nodiscard]] Pixels pixels(const float* source, const TilePlace& at) const;
  void transform(const ExecuteArgs& args, ChunkRange tiles, const Planes& planes,
                 std::int64_t first) const;
  void multiply(const ExecuteArgs& args, const Planes& planes, ChunkRange rows, ChunkRange channels,
                const Planes& sums) const;
  void transform_back(const ExecuteArgs& args, ChunkRange tiles, ChunkRange channels,
                      const Planes& sums) const;
  void write_exactly(const ExecuteArgs& args, const TilePlace& at, const WinogradResult& result,
                     std::int64_t channel) const;
  void run_block(const ExecuteArgs& args, const Planes& planes, std::int64_t first,
                 ChunkRange tiles, ChunkRange channels, float* scratch) const;
  void finish(const ExecuteArgs& args, ChunkRange tiles, ChunkRange channels, float* scratch) const;
  void run_tiles(const ExecuteArgs& args, std::int64_t index) const;
  void run_channels(const ExecuteArgs& args, std::int64_t index) const;

  [[nodiscard]] Planes shared(const ExecuteArgs& args) const {
    return {floats(args.scratch), plane_stride(geometry_.tiles())};
  }
  [[nodiscard]] std::int64_t plane_stride(std::int64_t tiles) const {
    return tiles * geometry_.src_channels + kPlaneGap;
  }
  [[nodiscard]] float* chunk(const ExecuteArgs& args, std::int64_t index) const {
    return floats(args.scratch + shared_bytes_ + index * chunk_scratch_);
  }

  const Anchor<PanelConvPlan>& anchor_;
  InstanceDims dims_;
  WinogradConvGeometry geometry_;
  std::vector<float> zeros_;  // a pixel that lies outside of the source
  bool cuts_channels_ = false;
  std::int64_t chunks_ = 0;
  std::int64_t block_tiles_ = 0;
  std::int64_t planes_floats_ = 0, sums_floats_ = 0;  // of a chunk's scratch
  std::int64_t shared_bytes_ = 0, chunk_scratch_ = 0;
  BoundProgram tail_;
  bool has_tail_ = false;
};

void WinogradConvInstance::choose_cut(int threads) {
  const WinogradConvGeometry& g = geometry_;
  const double flops = 2.0 * static_cast<double>(winograd_planes(g.tile) * g.tiles()) *
                       static_cast<double>(g.src_channels * g.dst_channels);
  const std::int64_t wanted = flops < kTooSmallToCut ? 1 : std::max(threads, 1);
  const std::int64_t panels = (g.dst_channels + kProductColumns - 1) / kProductColumns;
  const bool weights_larger = g.dst_channels > g.tiles();
  const bool even = panels % wanted == 0 || panels >= 8 * wanted;
  cuts_channels_ =
      wanted > 1 && panels >= wanted && (g.tiles() < wanted || (weights_larger && even));
  chunks_ = std::min(wanted, cuts_channels_ ? panels : g.tiles());
}

Status WinogradConvInstance::build(int threads) {
  if (numel(dims_.outputs[0]) == 0) return {};
  const WinogradConvGeometry& g = geometry_;
  choose_cut(threads);
  const std::int64_t planes = winograd_planes(g.tile);
  block_tiles_ = std::clamp(kBlockElements / (planes * std::max<std::int64_t>(g.src_channels, 1)),
                            kFewestTiles, kMostTiles);
  block_tiles_ = std::min(block_tiles_, g.tiles());
  zeros_.assign(static_cast<std::size_t>(g.src_channels), 0.0F);
  const auto whole_lines = [](std::int64_t count) { return (count + 15) / 16 * 16; };
  constexpr auto kFloat = static_cast<std::int64_t>(sizeof(float));
  if (cuts_channels_) {
    shared_bytes_ = whole_lines(planes * plane_stride(g.tiles())) * kFloat;
  } else {
    planes_floats_ = whole_lines(planes * plane_stride(block_tiles_));
  }
  sums_floats_ = planes * (block_tiles_ * kGroupColumns + kPlaneGap);
  chunk_scratch_ = (planes_floats_ + sums_floats_) * kFloat;
  has_tail_ = !anchor_.tail.empty();
  if (has_tail_) {
    TESSERA_ASSIGN(tail_, anchor_.tail.bind(dims_));
    chunk_scratch_ += (tail_.scratch_bytes() + 63) / 64 * 64;
  }
  return {};
}

TilePlace WinogradConvInstance::place(std::int64_t tile) const {
  const std::int64_t across = geometry_.tiles_across();
  const std::int64_t line = tile / across;
  return {line / geometry_.tiles_down(), line % geometry_.tiles_down() * geometry_.tile,
          tile % across * geometry_.tile};
}

Pixels WinogradConvInstance::pixels(const float* source, const TilePlace& at) const {
  const WinogradConvGeometry& g = geometry_;
  const std::int64_t points = winograd_points(g.tile);
  const std::int64_t height = g.rows.src_size;
  const std::int64_t width = g.columns.src_size;
  Pixels result{};
  std::size_t next = 0;
  for (std::int64_t y = at.y - g.rows.pad; y < at.y - g.rows.pad + points; ++y) {
    for (std::int64_t x = at.x - g.columns.pad; x < at.x - g.columns.pad + points; ++x) {
      const bool inside = y >= 0 && y < height && x >= 0 && x < width;
      result[next++] =
          inside ? source + ((at.image * height + y) * width + x) * g.src_channels : zeros_.data();
    }
  }
  return result;
}

// Of `tiles`, of which `first` lies first in the planes.
void WinogradConvInstance::transform(const ExecuteArgs& args, ChunkRange tiles,
                                     const Planes& planes, std::int64_t first) const {
  const float* source = anchor_.operand(anchor_.plan.conv.src_operand, args);
  for (std::int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
    winograd_source(geometry_.tile, pixels(source, place(tile)).data(), geometry_.src_channels,
                    planes.data + (tile - first) * geometry_.src_channels, planes.stride);
  }
}

// Rows of the planes with the weights of some channels, the first of a panel.
void WinogradConvInstance::multiply(const ExecuteArgs& args, const Planes& planes, ChunkRange rows,
                                    ChunkRange channels, const Planes& sums) const {
  const std::int64_t depth = geometry_.src_channels;
  const std::int64_t parts = std::max<std::int64_t>(1, (depth + kPartDepth - 1) / kPartDepth);
  const std::int64_t weights_stride = panel_elements(depth, geometry_.dst_channels);
  const float* weights =
      anchor_.operand(anchor_.plan.conv.weights_operand, args) + channels.begin * depth;
  std::array<const float*, kMostTiles> a{};
  PanelProduct product;
  product.a = a.data();
  product.rows = rows.end - rows.begin;
  product.panel_stride = depth * kProductColumns;
  product.columns = panel_elements(1, channels.end - channels.begin);
  product.c_stride = kGroupColumns;
  for (std::int64_t plane = 0; plane < winograd_planes(geometry_.tile); ++plane) {
    product.start = nullptr;
    product.start_stride = kGroupColumns;
    product.c = sums.data + plane * sums.stride;
    for (std::int64_t part = 0; part < parts; ++part) {
      const ChunkRange range = chunk_range(depth, parts, part);
      const float* row = planes.data + plane * planes.stride + rows.begin * depth + range.begin;
      for (std::int64_t r = 0; r < product.rows; ++r, row += depth)
        a[static_cast<std::size_t>(r)] = row;
      product.panels = weights + plane * weights_stride + range.begin * kProductColumns;
      product.depth = range.end - range.begin;
      panel_rows_product(product);
      product.start = product.c;
    }
  }
}

// A tile's part of one panel as sums of products of the taps themselves.
void WinogradConvInstance::write_exactly(const ExecuteArgs& args, const TilePlace& at,
                                         const WinogradResult& result, std::int64_t channel) const {
  const WinogradConvGeometry& g = geometry_;
  const std::int64_t points = winograd_points(g.tile);
  const std::int64_t weights_stride = panel_elements(g.src_channels, g.dst_channels);
  const Pixels source = pixels(anchor_.operand(anchor_.plan.conv.src_operand, args), at);
  std::array<float, kProductColumns * 16> sums{};
  std::array<const float*, 16> a{};
  PanelProduct product;
  product.a = a.data();
  product.rows = g.tile * g.tile;
  product.depth = g.src_channels;
  product.panels = anchor_.operand(anchor_.plan.conv.weights_operand, args) +
                   winograd_planes(g.tile) * weights_stride + channel * g.src_channels;
  product.columns = kProductColumns;
  product.start = product.c = sums.data();
  product.start_stride = product.c_stride = kProductColumns;
  for (std::int64_t tap = 0; tap < kWinogradTaps * kWinogradTaps; ++tap) {
    for (std::int64_t r = 0; r < product.rows; ++r) {
      const std::int64_t pixel =
          (r / g.tile + tap / kWinogradTaps) * points + r % g.tile + tap % kWinogradTaps;
      a[static_cast<std::size_t>(r)] = source[static_cast<std::size_t>(pixel)];
    }
    panel_rows_product(product);
    product.panels += weights_stride;
  }
  for (std::int64_t y = 0; y < result.rows; ++y) {
    for (std::int64_t x = 0; x < result.columns; ++x) {
      const std::int64_t first = y * result.row_stride + x * result.column_stride;
      for (std::int64_t c = 0; c < result.channels; ++c) {
        float value = sums[static_cast<std::size_t>((y * g.tile + x) * kProductColumns + c)];
        if (result.bias != nullptr) value += result.bias[c];
        if (result.addend != nullptr) value += result.addend[first + c];
        if (result.range != nullptr && value < result.range->low) value = result.range->low;
        if (result.range != nullptr && value > result.range->high) value = result.range->high;
        result.dst[first + c] = value;
      }
    }
  }
}

void WinogradConvInstance::transform_back(const ExecuteArgs& args, ChunkRange tiles,
                                          ChunkRange channels, const Planes& sums) const {
  const WinogradConvGeometry& g = geometry_;
  const auto& epilogue = anchor_.plan.epilogue;
  const auto& bias = anchor_.plan.conv.epilogue.bias;
  WinogradResult result;
  result.plane_stride = sums.stride;
  if (epilogue.range) result.range = &*epilogue.range;
  result.column_stride = g.dst_channels;
  result.row_stride = g.columns.dst_size * g.dst_channels;
  for (std::int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
    const TilePlace at = place(tile);
    result.rows = std::min(g.tile, g.rows.dst_size - at.y);
    result.columns = std::min(g.tile, g.columns.dst_size - at.x);
    const std::int64_t pixel = (at.image * g.rows.dst_size + at.y) * g.columns.dst_size + at.x;
    for (std::int64_t c = channels.begin; c < channels.end; c += kProductColumns) {
      const std::int64_t first = pixel * g.dst_channels + c;
      result.channels = std::min(kProductColumns, channels.end - c);
      result.sums = sums.data + (tile - tiles.begin) * kGroupColumns + c - channels.begin;
      result.dst = floats(args.outputs[0]) + first;
      if (bias) result.bias = anchor_.operand(*bias, args) + c;
      if (epilogue.addend) result.addend = anchor_.operand(*epilogue.addend, args) + first;
      if (!winograd_result(g.tile, result)) write_exactly(args, at, result, c);
    }
  }
}

// The steps behind the sums, over each run of results of the tiles in a row of the result.
void WinogradConvInstance::finish(const ExecuteArgs& args, ChunkRange tiles, ChunkRange channels,
                                  float* scratch) const {
  const WinogradConvGeometry& g = geometry_;
  const bool all_channels = channels.end - channels.begin == g.dst_channels;
  for (std::int64_t tile = tiles.begin; tile < tiles.end;) {
    const TilePlace at = place(tile);
    const std::int64_t count =
        std::min(tiles.end - tile, g.tiles_across() - at.x / g.tile);  // in a row of tiles
    const std::int64_t end = std::min(g.columns.dst_size, at.x + count * g.tile);
    for (std::int64_t y = at.y; y < std::min(at.y + g.tile, g.rows.dst_size); ++y) {
      const std::int64_t line = (at.image * g.rows.dst_size + y) * g.columns.dst_size;
      if (all_channels) {
        tail_.run(args, (line + at.x) * g.dst_channels, (line + end) * g.dst_channels, scratch);
        continue;
      }
      for (std::int64_t pixel = line + at.x; pixel < line + end; ++pixel)
        tail_.run(args, pixel * g.dst_channels + channels.begin,
                  pixel * g.dst_channels + channels.end, scratch);
    }
    tile += count;
  }
}

// Some channels of `tiles`, whose transformed ones begin in row `first` of the planes.
void WinogradConvInstance::run_block(const ExecuteArgs& args, const Planes& planes,
                                     std::int64_t first, ChunkRange tiles, ChunkRange channels,
                                     float* scratch) const {
  const Planes sums{scratch, block_tiles_ * kGroupColumns + kPlaneGap};
  const ChunkRange rows{first, first + tiles.end - tiles.begin};
  for (std::int64_t c = channels.begin; c < channels.end; c += kGroupColumns) {
    const ChunkRange group{c, std::min(channels.end, c + kGroupColumns)};
    multiply(args, planes, rows, group, sums);
    transform_back(args, tiles, group, sums);
  }
  if (has_tail_) finish(args, tiles, channels, scratch + sums_floats_);
}

void WinogradConvInstance::run_tiles(const ExecuteArgs& args, std::int64_t index) const {
  float* scratch = chunk(args, index);
  const Planes planes{scratch, plane_stride(block_tiles_)};
  const ChunkRange tiles = chunk_range(geometry_.tiles(), chunks_, index);
  for (std::int64_t at = tiles.begin; at < tiles.end; at += block_tiles_) {
    const ChunkRange block{at, std::min(tiles.end, at + block_tiles_)};
    transform(args, block, planes, at);
    run_block(args, planes, 0, block, {0, geometry_.dst_channels}, scratch + planes_floats_);
  }
}

void WinogradConvInstance::run_channels(const ExecuteArgs& args, std::int64_t index) const {
  const ChunkRange channels = chunk_range(geometry_.dst_channels, chunks_, index, kProductColumns);
  for (std::int64_t at = 0; at < geometry_.tiles(); at += block_tiles_)
    run_block(args, shared(args), at, {at, std::min(geometry_.tiles(), at + block_tiles_)},
              channels, chunk(args, index));
}

Status WinogradConvInstance::execute(const ExecuteArgs& args) {
  if (!cuts_channels_) {
    const auto one = [&](std::int64_t i) { run_tiles(args, i); };
    args.parallel->run(chunks_, one);
    return {};
  }
  const auto prepare = [&](std::int64_t i) {
    transform(args, chunk_range(geometry_.tiles(), chunks_, i), shared(args), 0);
  };
  args.parallel->run(chunks_, prepare);
  const auto one = [&](std::int64_t i) { run_channels(args, i); };
  args.parallel->run(chunks_, one);
  return {};
}

}  // namespace

Result<std::unique_ptr<LoadedKernel>> load_winograd_conv(const artefact::KernelSpec& spec,
                                                         Constants constants) {
  const auto refuse_weights = [&](const artefact::TensorDecl& found) {
    return bad_spec(spec, fmt::format("expected weights of 3 sizes in {}, found {} in {}",
                                      winograd_weights_layout().to_string(), to_string(found.shape),
                                      found.layout.to_string()));
  };
  const auto tile = spec.options.find("tile");
  if (tile == spec.options.end() || (tile->second != 2 && tile->second != 4))
    return bad_spec(spec, "option 'tile': expected 2 or 4");
  // The plan is of the weights that ONNX has.
  artefact::KernelSpec meant = spec;
  const OperandRef weights =
      spec.steps.empty() ? OperandRef{} : operand_ref(spec, step_input(spec.steps[0], 1));
  if (weights.kind != OperandRef::Kind::kConstant)
    return bad_spec(spec, "expected constant weights");
  artefact::TensorDecl& decl = meant.constants[weights.index];
  const auto packed = constant_dims(decl.shape);
  if (!packed || packed->size() != 3 || decl.layout != winograd_weights_layout())
    return refuse_weights(decl);
  const Dims onnx = {(*packed)[1], (*packed)[2], kWinogradTaps, kWinogradTaps};
  if (*packed != winograd_weights_dims(onnx, tile->second)) return refuse_weights(decl);
  decl.shape = to_shape(onnx);
  decl.layout = {};
  TESSERA_ASSIGN(PanelConvPlan plan, plan_winograd_conv(meant, constants));
  const std::size_t first_tail_step = 1 + plan.conv.epilogue.steps;
  return load_anchor<WinogradConvInstance>(spec, constants, std::move(plan), first_tail_step);
}

}  // namespace tessera::backends::cpu
