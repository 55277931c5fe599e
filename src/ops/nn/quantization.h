#pragma once

// Affine quantisation: real = (quantised - zero_point) * scale, for a tensor, each index of an
// axis, or each block along one.

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/shape.h"
#include "ops/kernel_util.h"

namespace tessera::ops::nn {

// What a real value becomes before it is stored in `dtype`: rounded half to even, moved by the zero
// point and kept in range for integers; moved only for the small floats, which the cast rounds.
double quantized(double real, double zero_point, DType dtype);

// Which scale belongs to which element.
class ScaleMap {
 public:
  // Scales of shape `scale` for a tensor of shape `x`: one element for all; rank 1 along `axis`;
  // with block_size > 0 the rank of x, each scale for that many neighbours along `axis`. Errors
  // start with `op` and say what was expected and found; sizes that hold symbols pass.
  static Status check(std::string_view op, const Shape& x, const Shape& scale, std::int64_t axis,
                      std::int64_t block_size);
  // After check() of the same sizes.
  ScaleMap(const Dims& x, const Dims& scale, std::int64_t axis, std::int64_t block_size);
  [[nodiscard]] std::int64_t at(std::int64_t element) const {
    if (single_) return 0;
    const std::int64_t along = element / inner_ % size_;
    return block_ == 0
               ? along
               : (element / inner_ / size_ * blocks_ + along / block_) * inner_ + element % inner_;
  }

 private:
  bool single_ = false;
  std::int64_t size_ = 1, inner_ = 1, block_ = 0, blocks_ = 1;
};

// Elements of any numeric dtype (packed and small floats too) as double, less a zero point for each
// where there is one.
std::vector<double> centred(const TensorView& x, const TensorView* zero_point, const ScaleMap& map);

// All elements of a tensor as double.
std::vector<double> doubles(const TensorView& view);

// Rounds values that lie in the range of the output's dtype into it.
void store_doubles(const std::vector<double>& values, const MutableTensorView& out, bool saturate);

}  // namespace tessera::ops::nn
