#pragma once

// A pooling step read from a spec.

#include <vector>

#include "backends/cpu/run/onednn_shim.h"
#include "backends/cpu/run/spec_util.h"

namespace tessera::backends::cpu {

struct PoolPlan {
  bool average = false;
  bool include_pad = false;
  Dims kernel, strides, dilations;
  std::vector<std::int64_t> pads;  // begins, then ends, as ONNX has them
  std::string auto_pad;
  Layout layout;

  // First tap of each output along spatial dim `d` (may be negative): output * stride - begin.
  [[nodiscard]] std::int64_t begin_pad(std::size_t d, std::int64_t in, std::int64_t out) const;
  // Where the padded input ends along `d`: taps beyond count for nothing, whatever
  // count_include_pad says.
  [[nodiscard]] std::int64_t padded_end(std::size_t d, std::int64_t in, std::int64_t out) const;

  // The library's problem for `images` of the folded batch (see fold). Errors: windows that it
  // would average otherwise; MaxPool, whose NaN and minus infinity the library loses.
  [[nodiscard]] Result<PoolProblem> problem(const Dims& src, const Dims& dst,
                                            std::int64_t images) const;
  // How many images of one channel block (of one channel, of all channels) the tensor holds, one
  // after the other in memory.
  [[nodiscard]] std::int64_t folded_images(const Dims& dims) const;
};

// Errors: attributes and dtypes that it cannot take, with what it found.
Result<PoolPlan> plan_pool(const artefact::KernelSpec& spec);

}  // namespace tessera::backends::cpu
