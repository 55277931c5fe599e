#pragma once

// "simd.winograd_conv": a convolution of a 3 x 3 window in channels-last layouts by Winograd's
// algorithm (winograd.h). Its option "tile" is the width and height of a tile, 2 or 4; its weights
// are planes of panels, as pack_winograd_weights writes them.

#include "backends/cpu/run/panel_epilogue.h"

namespace tessera::backends::cpu {

struct WinogradConvGeometry {
  ConvAxis rows, columns;
  std::int64_t images = 1, src_channels = 1, dst_channels = 1;
  std::int64_t tile = 2;

  [[nodiscard]] std::int64_t tiles_down() const { return (rows.dst_size + tile - 1) / tile; }
  [[nodiscard]] std::int64_t tiles_across() const { return (columns.dst_size + tile - 1) / tile; }
  [[nodiscard]] std::int64_t tiles() const { return images * tiles_down() * tiles_across(); }
};

// Of a spec whose weights lie as ONNX has them. Errors: ranks, operands, layouts and windows that
// "simd.winograd_conv" cannot take, with what it found.
Result<PanelConvPlan> plan_winograd_conv(const artefact::KernelSpec& spec, Constants constants);

WinogradConvGeometry winograd_conv_geometry(const ConvPlan& plan, const Dims& src, const Dims& dst,
                                            std::int64_t tile);

// Packed weights over the dims [planes, O, I].
Layout winograd_weights_layout();
Dims winograd_weights_dims(const Dims& onnx, std::int64_t tile);

}  // namespace tessera::backends::cpu
