#pragma once

// The geometry of "simd.conv": a convolution as sums of products of weights and shifted planes.
//
// A plane is one input channel with its padding written out, split by the stride: element i of the
// plane of phase p is the source's element i * stride + p, so that every tap reads a plane in steps
// of one. Planes lie flat, images behind each other, and one run over flat positions computes all
// rows: what falls between rows is computed and dropped. A transposed convolution has one plane for
// each channel and splits the result by its stride instead.

#include <vector>

#include "backends/cpu/run/conv_plan.h"
#include "backends/cpu/run/plane_simd.h"

namespace tessera::backends::cpu {

// One spatial dim. The grid counts results (transposed: groups of `dst_step` results).
struct PlaneAxis {
  struct Tap {
    std::int64_t src_phase = 0;  // index into src_phases
    std::int64_t shift = 0;
    std::int64_t dst_phase = 0;
  };
  std::int64_t src_size = 1, dst_size = 1;
  std::int64_t src_step = 1, src_pad = 0;  // plane element i: source i * src_step + phase - src_pad
  std::int64_t dst_step = 1, dst_pad = 0;  // grid point q: result q * dst_step + phase - dst_pad
  std::int64_t grid_begin = 0, grid_end = 1;
  std::int64_t reach = 0;  // largest shift
  std::vector<std::int64_t> src_phases = {0};
  std::vector<Tap> taps = {{}};

  [[nodiscard]] std::int64_t grid() const { return grid_end - grid_begin; }
  // Results of grid points [begin, end), all phases.
  [[nodiscard]] ChunkRange results(ChunkRange grid_range) const;
};

// Sizes of the largest piece of the work; the others are what is left over at the ends.
struct PlaneCut {
  std::int64_t images = 1, rows = 1, columns = 1;  // of the grid
  std::int64_t pieces = 1;
};

struct PlaneGeometry {
  PlaneAxis rows, columns;
  std::int64_t images = 1, group = 1;
  std::int64_t src_channels = 1, dst_channels = 1;  // of one group
  bool transposed = false;

  [[nodiscard]] std::int64_t planes_per_channel() const {
    return static_cast<std::int64_t>(rows.src_phases.size() * columns.src_phases.size());
  }
  // Elements of one plane of a piece, and of all its planes with slack.
  [[nodiscard]] std::int64_t plane_elements(const PlaneCut& cut) const;
  [[nodiscard]] std::int64_t piece_elements(const PlaneCut& cut) const;
  // Pieces whose planes fit into a core's cache, and enough of them for the threads.
  [[nodiscard]] PlaneCut cut(int threads) const;
  // The products of one phase of the result: planes as piece_elements lays them out.
  [[nodiscard]] std::vector<PlaneTerm> terms(const PlaneCut& cut, std::int64_t row_phase,
                                             std::int64_t column_phase,
                                             std::int64_t panel_rows) const;
};

// Errors: ranks, operands and layouts that "simd.conv" cannot take, with what it found.
Status check_plane_conv(const artefact::KernelSpec& spec, const ConvPlan& plan);

PlaneGeometry plane_geometry(const ConvPlan& plan, const Dims& src, const Dims& dst);

// How many output channels a panel of weights holds: a divisor of a group's channels where there
// are several groups, else whatever fills panels best.
std::int64_t panel_rows_for(std::int64_t group, std::int64_t dst_channels);
// Panels over ONNX's dims: [O/rows][I][k...][rows].
Layout plane_weights_layout(bool transposed, std::size_t rank, std::int64_t panel_rows);

}  // namespace tessera::backends::cpu
