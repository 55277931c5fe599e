// "simd.quant_conv": a convolution of 8-bit tensors, channels-last. Rows of the source that a few
// output positions read are gathered as 16-bit numbers less the zero point, so that padding is
// zero; then panel by panel of packed weights. "simd.quant_depthwise": one filter for each channel,
// tap by tap.

#include <algorithm>
#include <array>
#include <cstring>

#include "backends/cpu/run/chunked_instance.h"
#include "backends/cpu/run/kernels.h"
#include "backends/cpu/run/quant_conv_plan.h"
#include "backends/cpu/run/quant_finish.h"

namespace tessera::backends::cpu {
namespace {

constexpr std::int64_t kGatherBytes = 192 << 10;  // gathered rows stay in the second-level cache
constexpr std::int64_t kMaxRows = 96;

// Sizes with spatial dims filled up to three, in front.
struct Geometry {
  std::int64_t in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  std::int64_t stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1}, pad[3] = {0, 0, 0};
  std::int64_t batch = 1, channels = 1, columns = 1, group = 1;

  [[nodiscard]] std::int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  [[nodiscard]] std::int64_t positions() const { return batch * out[0] * out[1] * out[2]; }
};

Geometry geometry_of(const ConvPlan& plan, const Dims& src, const Dims& dst) {
  Geometry g;
  const ConvPlan::Pads pads = plan.pads_for(src, dst);
  const std::size_t spatial = plan.kernel.size();
  for (std::size_t i = 0; i < spatial; ++i) {
    const std::size_t at = 3 - spatial + i;
    g.in[at] = src[i + 2];
    g.out[at] = dst[i + 2];
    g.kernel[at] = plan.kernel[i];
    g.stride[at] = plan.strides[i];
    g.dilation[at] = plan.dilations[i];
    g.pad[at] = pads.begin[i];
  }
  g.batch = src[0];
  g.channels = src[1];
  g.columns = dst[1];
  g.group = plan.group;
  return g;
}

// An output position, counted up.
struct Position {
  std::int64_t image = 0;
  std::int64_t at[3] = {0, 0, 0};

  Position(const Geometry& g, std::int64_t index) {
    for (int d = 2; d >= 0; --d) {
      at[d] = index % g.out[d];
      index /= g.out[d];
    }
    image = index;
  }
  void advance(const Geometry& g) {
    for (int d = 2; d >= 0; --d) {
      if (++at[d] < g.out[d]) return;
      at[d] = 0;
    }
    ++image;
  }
};

// Where the taps of a position read the source, without divisions.
class TapTable {
 public:
  explicit TapTable(const Geometry& g) : g_(g) {
    for (std::int64_t tap = 0; tap < g.taps(); ++tap) {
      const std::array<std::int64_t, 3> at = {tap / (g.kernel[1] * g.kernel[2]) * g.dilation[0],
                                              tap / g.kernel[2] % g.kernel[1] * g.dilation[1],
                                              tap % g.kernel[2] * g.dilation[2]};
      offsets_.push_back(at);
      pixels_.push_back((at[0] * g.in[1] + at[1]) * g.in[2] + at[2]);
    }
  }

  // The pixel of one tap; -1 where it lies in the padding.
  [[nodiscard]] std::int64_t pixel(const Position& p, std::int64_t tap) const {
    const auto& offset = offsets_[static_cast<std::size_t>(tap)];
    std::int64_t result = p.image;
    for (std::size_t d = 0; d < 3; ++d) {
      const std::int64_t at = p.at[d] * g_.stride[d] + offset[d] - g_.pad[d];
      if (at < 0 || at >= g_.in[d]) return -1;
      result = result * g_.in[d] + at;
    }
    return result;
  }

  // f(tap, pixel) for every tap.
  template <typename F>
  void for_each(const Position& p, const F& f) const {
    bool inside = true;
    std::int64_t first = p.image;
    for (std::size_t d = 0; d < 3; ++d) {
      const std::int64_t at = p.at[d] * g_.stride[d] - g_.pad[d];
      inside = inside && at >= 0 && at + offsets_.back()[d] < g_.in[d];
      first = first * g_.in[d] + at;
    }
    const std::int64_t taps = g_.taps();
    for (std::int64_t tap = 0; tap < taps; ++tap)
      f(tap, inside ? first + pixels_[static_cast<std::size_t>(tap)] : pixel(p, tap));
  }

 private:
  Geometry g_;
  std::vector<std::array<std::int64_t, 3>> offsets_;  // of each tap from the first, dilated
  std::vector<std::int64_t> pixels_;                  // the same, in pixels
};

void widen_few(DType dtype, const std::byte* x, std::int32_t zero, std::int16_t* y,
               std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const int element = dtype == DType::kInt8 ? reinterpret_cast<const std::int8_t*>(x)[i]
                                              : reinterpret_cast<const std::uint8_t*>(x)[i];
    y[i] = static_cast<std::int16_t>(element - zero);
  }
}

class Gatherer {
 public:
  Gatherer(const Geometry& g, DType dtype) : g_(g), taps_(g), dtype_(dtype) {
    depth_ = g.channels / g.group;
    padded_ = (depth_ + 1) / 2 * 2;
    plain_ = g.taps() == 1 && g.group == 1 && depth_ == padded_ && g.stride[0] == 1 &&
             g.stride[1] == 1 && g.stride[2] == 1 && g.in[0] == g.out[0] && g.in[1] == g.out[1] &&
             g.in[2] == g.out[2] && g.pad[0] == 0 && g.pad[1] == 0 && g.pad[2] == 0;
    joined_ = g.group == 1 && depth_ == padded_ && g.dilation[2] == 1;
  }

  // 16-bit numbers of one row: all taps, each with an even number of channels.
  [[nodiscard]] std::int64_t row_words() const { return g_.taps() * padded_; }

  void run(const std::byte* source, std::int32_t zero, std::int64_t group, std::int64_t first,
           std::int64_t rows, std::int16_t* words) const {
    if (plain_) {
      widen_centred(dtype_, source + first * depth_, zero, words,
                    static_cast<std::size_t>(rows * depth_));
      return;
    }
    Position position(g_, first);
    for (std::int64_t r = 0; r < rows; ++r, position.advance(g_), words += row_words()) {
      if (joined_) {
        gather_joined(source, zero, position, words);
      } else {
        gather_taps(source + group * depth_, zero, position, words);
      }
    }
  }

 private:
  void gather_taps(const std::byte* source, std::int32_t zero, const Position& position,
                   std::int16_t* words) const {
    taps_.for_each(position, [&](std::int64_t, std::int64_t pixel) {
      words[padded_ - 1] = 0;
      if (pixel < 0) {
        std::memset(words, 0, static_cast<std::size_t>(padded_) * sizeof *words);
      } else if (depth_ < 16) {
        widen_few(dtype_, source + pixel * g_.channels, zero, words, depth_);
      } else {
        widen_centred(dtype_, source + pixel * g_.channels, zero, words,
                      static_cast<std::size_t>(depth_));
      }
      words += padded_;
    });
  }

  // Neighbouring taps of a row read one run of the source.
  void gather_joined(const std::byte* source, std::int32_t zero, const Position& position,
                     std::int16_t* words) const {
    const std::int64_t begin = position.at[2] * g_.stride[2] - g_.pad[2];
    const std::int64_t low = std::clamp<std::int64_t>(-begin, 0, g_.kernel[2]);
    const std::int64_t high = std::clamp<std::int64_t>(g_.in[2] - begin, low, g_.kernel[2]);
    const auto run_words = static_cast<std::size_t>(g_.kernel[2] * depth_);
    for (std::int64_t line = 0; line < g_.kernel[0] * g_.kernel[1]; ++line) {
      const std::int64_t pixel =
          low == high ? -1 : taps_.pixel(position, line * g_.kernel[2] + low);
      if (pixel < 0) {
        std::memset(words, 0, run_words * sizeof *words);
      } else {
        std::memset(words, 0, static_cast<std::size_t>(low * depth_) * sizeof *words);
        widen_centred(dtype_, source + pixel * depth_, zero, words + low * depth_,
                      static_cast<std::size_t>((high - low) * depth_));
        std::memset(words + high * depth_, 0,
                    static_cast<std::size_t>((g_.kernel[2] - high) * depth_) * sizeof *words);
      }
      words += run_words;
    }
  }

  Geometry g_;
  TapTable taps_;
  DType dtype_;
  std::int64_t depth_ = 1;   // channels of a group
  std::int64_t padded_ = 2;  // to an even number
  bool plain_ = false;       // one position reads one row of the source, in order
  bool joined_ = false;
};

// Positions and panels of weights that one chunk takes.
struct Share {
  std::int64_t row_parts = 1;
  std::int64_t panel_parts = 1;
};

Share share_out(std::int64_t rows, std::int64_t panels, std::int64_t work, int threads) {
  if (threads <= 1 || work < 200000) return {};
  const std::int64_t wanted = threads;
  Share share;
  share.row_parts = std::clamp<std::int64_t>(rows / 6, 1, wanted);
  if (share.row_parts < wanted)
    share.panel_parts = std::clamp<std::int64_t>(wanted / share.row_parts, 1, panels);
  return share;
}

class QuantConvKernel final : public LoadedKernel {
 public:
  QuantConvKernel(artefact::KernelSpec spec, Constants constants, QuantConvPlan plan)
      : plan_(std::move(plan)) {
    const OperandRef weights = operand_ref(spec, plan_.quant.weights);
    weights_ = constants[weights.index].data();
    wide_ = spec.constants[weights.index].dtype == DType::kInt16;
  }

  Result<std::unique_ptr<KernelInstance>> instantiate(const InstanceDims& dims,
                                                      int threads) const override {
    const auto src = static_cast<std::size_t>(plan_.quant.src.operand);
    const Geometry g = geometry_of(plan_.conv, dims.inputs[src], dims.outputs[0]);
    return plan_.depthwise ? depthwise(g, threads) : dense(g, threads);
  }

 private:
  [[nodiscard]] Result<std::unique_ptr<KernelInstance>> dense(const Geometry& g, int threads) const;
  [[nodiscard]] Result<std::unique_ptr<KernelInstance>> depthwise(const Geometry& g,
                                                                  int threads) const;

  QuantConvPlan plan_;
  const std::byte* weights_ = nullptr;
  bool wide_ = false;
};

Result<std::unique_ptr<KernelInstance>> QuantConvKernel::dense(const Geometry& g,
                                                               int threads) const {
  const Gatherer gather(g, plan_.quant.src.params.dtype);
  const std::int64_t rows = g.positions();
  const std::int64_t group_columns = g.columns / g.group;
  const std::int64_t group_panels = (group_columns + kPanelColumns - 1) / kPanelColumns;
  const std::int64_t words = gather.row_words();
  const std::int64_t block = std::clamp<std::int64_t>(
      kGatherBytes / (words * static_cast<std::int64_t>(sizeof(std::int16_t))) / 6 * 6, 6,
      std::min<std::int64_t>(kMaxRows, std::max<std::int64_t>(rows, 6)));
  TESSERA_ASSIGN(QuantFinish finish, QuantFinish::make(plan_.quant, g.columns, block));
  const std::int64_t finish_bytes = finish.scratch_bytes();
  const Share share = share_out(rows, group_panels, rows * g.columns * words, threads);
  const std::int64_t panel_bytes = words * kPanelColumns * (wide_ ? 2 : 1);
  const std::int64_t words_bytes = (block * words * 2 + 63) / 64 * 64;
  const std::int64_t sums_bytes = block * kPanelColumns * 4;
  auto body = [=, this, finish = std::move(finish)](const ExecuteArgs& args, std::int64_t chunk,
                                                    std::int64_t, std::byte* scratch) {
    const QuantTensor& src = plan_.quant.src;
    const std::byte* source = args.inputs[static_cast<std::size_t>(src.operand)];
    const std::int32_t zero = zero_of(src.params, args.inputs);
    auto* gathered = reinterpret_cast<std::int16_t*>(scratch);
    auto* sums = reinterpret_cast<std::int32_t*>(scratch + words_bytes);
    const ChunkRange mine = chunk_range(rows, share.row_parts, chunk / share.panel_parts);
    const ChunkRange columns =
        chunk_range(group_panels, share.panel_parts, chunk % share.panel_parts);
    for (std::int64_t first = mine.begin; first < mine.end; first += block) {
      const std::int64_t count = std::min(block, mine.end - first);
      for (std::int64_t group = 0; group < g.group; ++group) {
        gather.run(source, zero, group, first, count, gathered);
        for (std::int64_t p = columns.begin; p < columns.end; ++p) {
          const std::int64_t panel = group * group_panels + p;
          panel_product(gathered, words, static_cast<std::size_t>(count),
                        weights_ + panel * panel_bytes, wide_, static_cast<std::size_t>(words / 2),
                        sums);
          const std::int64_t column = p * kPanelColumns;
          finish.run(args,
                     {first, count, group * group_columns + column,
                      std::min(kPanelColumns, group_columns - column)},
                     sums, scratch + words_bytes + sums_bytes);
        }
      }
    }
  };
  const std::int64_t scratch = words_bytes + sums_bytes + finish_bytes;
  return chunked(rows == 0 ? 0 : share.row_parts * share.panel_parts, std::move(body), scratch);
}

Result<std::unique_ptr<KernelInstance>> QuantConvKernel::depthwise(const Geometry& g,
                                                                   int threads) const {
  const std::int64_t width = (g.columns + kPanelColumns - 1) / kPanelColumns * kPanelColumns;
  TESSERA_ASSIGN(QuantFinish finish, QuantFinish::make(plan_.quant, g.columns, 1, width));
  const std::int64_t finish_bytes = finish.scratch_bytes();
  const std::int64_t rows = g.positions();
  const std::int64_t taps = (g.taps() + 1) / 2 * 2;
  const std::int64_t zeros_bytes = (g.channels + 63) / 64 * 64;
  const std::int64_t sums_bytes = width * 4;
  const std::int64_t list_bytes = (taps * static_cast<std::int64_t>(sizeof(void*)) + 63) / 64 * 64;
  auto body = [=, this, finish = std::move(finish), table = TapTable(g)](
                  const ExecuteArgs& args, std::int64_t chunk, std::int64_t chunks,
                  std::byte* scratch) {
    const QuantTensor& src = plan_.quant.src;
    const std::byte* source = args.inputs[static_cast<std::size_t>(src.operand)];
    const std::int32_t zero = zero_of(src.params, args.inputs);
    std::byte* zeros = scratch;
    auto* sums = reinterpret_cast<std::int32_t*>(scratch + zeros_bytes);
    auto* list = reinterpret_cast<const std::byte**>(scratch + zeros_bytes + sums_bytes);
    std::memset(zeros, zero, static_cast<std::size_t>(g.channels));
    const ChunkRange mine = chunk_range(rows, chunks, chunk);
    Position position(g, mine.begin);
    for (std::int64_t row = mine.begin; row < mine.end; ++row, position.advance(g)) {
      list[taps - 1] = zeros;
      table.for_each(position, [&](std::int64_t tap, std::int64_t pixel) {
        list[tap] = pixel < 0 ? zeros : source + pixel * g.channels;
      });
      depthwise_sums(src.params.dtype, list, static_cast<std::size_t>(taps), zero,
                     reinterpret_cast<const std::int16_t*>(weights_),
                     static_cast<std::size_t>(g.channels), sums);
      finish.run(args, {row, 1, 0, g.columns}, sums,
                 scratch + zeros_bytes + sums_bytes + list_bytes);
    }
  };
  const std::int64_t scratch = zeros_bytes + sums_bytes + list_bytes + finish_bytes;
  const std::int64_t grain =
      std::max<std::int64_t>(20000 / std::max<std::int64_t>(g.taps() * g.channels, 1), 1);
  return chunked(rows == 0 ? 0 : chunk_count(rows, grain, threads), std::move(body), scratch);
}

}  // namespace

Result<std::unique_ptr<LoadedKernel>> load_quant_conv(const artefact::KernelSpec& spec,
                                                      Constants constants) {
  TESSERA_ASSIGN(QuantConvPlan plan, plan_quant_conv(spec, constants));
  return std::unique_ptr<LoadedKernel>(new QuantConvKernel(spec, constants, std::move(plan)));
}

}  // namespace tessera::backends::cpu
