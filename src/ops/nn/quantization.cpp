#include "ops/nn/quantization.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/float_convert.h"
#include "ops/infer_util.h"
#include "ops/nn/nn_util.h"

namespace tessera::ops::nn {
namespace {

bool is_single(const Shape& scale) {
  return std::all_of(scale.begin(), scale.end(),
                     [](const Dim& dim) { return dim.constant() == 1; });
}

bool is_unsigned(DType dtype) {
  return dtype == DType::kUInt8 || dtype == DType::kUInt16 || dtype == DType::kUInt32 ||
         dtype == DType::kUInt4 || dtype == DType::kUInt2;
}

Status check_blocks(std::string_view op, const Shape& x, const Shape& scale, std::size_t axis,
                    std::int64_t block_size) {
  if (scale.size() != x.size()) {
    return op_error(op, fmt::format("scale: expected rank {} for blocks of {}, found rank {}",
                                    x.size(), block_size, scale.size()));
  }
  for (std::size_t d = 0; d < x.size(); ++d) {
    const Dim expected = d == axis ? ceildiv(x[d], Dim(block_size)) : x[d];
    TESSERA_TRY(require_size(op, fmt::format("size {} of scale", d), expected,
                             fmt::format("for blocks of {}", block_size), scale[d]));
  }
  return {};
}

}  // namespace

double quantized(double real, double zero_point, DType dtype) {
  if (!is_integer(dtype)) return real + zero_point;
  const int bits = bits_of(dtype);
  const double low = is_unsigned(dtype) ? 0 : -std::ldexp(1.0, bits - 1);
  const double high = std::ldexp(1.0, is_unsigned(dtype) ? bits : bits - 1) - 1;
  if (real != real)
    return std::clamp(zero_point, low, high);  // NaN has no integer; 0 stands for it
  return std::clamp(std::nearbyint(real) + zero_point, low, high);
}

Status ScaleMap::check(std::string_view op, const Shape& x, const Shape& scale, std::int64_t axis,
                       std::int64_t block_size) {
  if (block_size < 0)
    return op_error(op, fmt::format("block_size: expected at least 0, found {}", block_size));
  if (block_size == 0 && is_single(scale)) return {};
  TESSERA_ASSIGN(const std::int64_t at, normalize_axis(axis, static_cast<std::int64_t>(x.size())));
  if (block_size > 0) return check_blocks(op, x, scale, static_cast<std::size_t>(at), block_size);
  if (scale.size() != 1)
    return op_error(op, fmt::format("scale: expected rank 0 or 1, found rank {}", scale.size()));
  return require_size(op, "elements of scale", x[static_cast<std::size_t>(at)],
                      fmt::format("one for each index of axis {}", at), scale[0]);
}

ScaleMap::ScaleMap(const Dims& x, const Dims& scale, std::int64_t axis, std::int64_t block_size) {
  single_ = block_size == 0 && numel(scale) == 1;
  if (single_) return;
  const auto at =
      static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(x.size()) : axis);
  size_ = x[at];
  inner_ = count_between(x, at + 1, x.size());
  block_ = block_size;
  blocks_ = block_size == 0 ? 1 : scale[at];
}

std::vector<double> doubles(const TensorView& view) {
  std::vector<double> values(static_cast<std::size_t>(view.numel()));
  cast_elements(view, {DType::kFp64, view.dims, values.data()}, true);
  return values;
}

std::vector<double> centred(const TensorView& x, const TensorView* zero_point,
                            const ScaleMap& map) {
  std::vector<double> values = doubles(x);
  if (zero_point == nullptr) return values;
  const std::vector<double> zeros = doubles(*zero_point);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] -= zeros[static_cast<std::size_t>(map.at(static_cast<std::int64_t>(i)))];
  return values;
}

void store_doubles(const std::vector<double>& values, const MutableTensorView& out, bool saturate) {
  cast_elements({DType::kFp64, out.dims, values.data()}, out, saturate);
}

}  // namespace tessera::ops::nn
