#pragma once

// The geometry of "simd.gemm_conv": a convolution in channels-last layouts as products of rows of
// the source with packed weights. What a result reads of one row of the source lies in one piece
// there, so nothing is unfolded: a row of A is a pointer for each such segment.

#include "backends/cpu/run/panel_epilogue.h"

namespace tessera::backends::cpu {

struct GemmConvGeometry {
  ConvAxis rows, columns;
  std::int64_t images = 1, group = 1;
  std::int64_t src_channels = 1, dst_channels = 1;  // of one group

  // Taps of a row of the kernel that make one segment: all of them where they lie side by side.
  [[nodiscard]] std::int64_t taps_per_segment() const {
    return group == 1 && columns.dilation == 1 ? columns.kernel : 1;
  }
  [[nodiscard]] std::int64_t segments() const {
    return rows.kernel * columns.kernel / taps_per_segment();
  }
  [[nodiscard]] std::int64_t segment_depth() const { return taps_per_segment() * src_channels; }
  // Results of one channel; the first in memory is number 0.
  [[nodiscard]] std::int64_t positions() const { return images * rows.dst_size * columns.dst_size; }
  [[nodiscard]] std::int64_t src_column_stride() const { return group * src_channels; }
  [[nodiscard]] std::int64_t src_row_stride() const {
    return columns.src_size * src_column_stride();
  }
  // Columns of the result whose window of `taps` taps from tap `first` on lies inside of a row of
  // the source.
  [[nodiscard]] ChunkRange inside(std::int64_t first, std::int64_t taps) const;
};

// Errors: ranks, operands, layouts and groups that "simd.gemm_conv" cannot take, with what it
// found.
Result<PanelConvPlan> plan_gemm_conv(const artefact::KernelSpec& spec, Constants constants);

GemmConvGeometry gemm_conv_geometry(const ConvPlan& plan, const Dims& src, const Dims& dst);

// Panels over ONNX's dims: [O/16][k...][I][16].
Layout gemm_conv_weights_layout(std::size_t rank);

}  // namespace tessera::backends::cpu
