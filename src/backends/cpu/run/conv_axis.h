#pragma once

#include <cstdint>

namespace tessera::backends::cpu {

// One spatial dim of a convolution: result x is the sum over taps k < kernel of source x * stride -
// pad + k * dilation, as far as that lies in the source.
struct ConvAxis {
  std::int64_t src_size = 1, dst_size = 1;
  std::int64_t kernel = 1, stride = 1, dilation = 1, pad = 0;
};

}  // namespace tessera::backends::cpu
