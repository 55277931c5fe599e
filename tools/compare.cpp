#include "compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/float_convert.h"

namespace tessera::tools {
namespace {

Result<Tensor> as_fp64(const Tensor& tensor) {
  TESSERA_ASSIGN(Tensor wide, Tensor::zeros(DType::kFp64, tensor.dims()));
  cast_elements(tensor.view(), wide.mutable_view(), false);
  return wide;
}

}  // namespace

Difference compare(const Tensor& expected, const Tensor& found, double rtol, double atol) {
  Difference result;
  if (expected.dtype() != found.dtype() || expected.dims() != found.dims()) {
    result.problem =
        fmt::format("expected {}[{}], found {}[{}]", to_string(expected.dtype()),
                    to_string(expected.dims()), to_string(found.dtype()), to_string(found.dims()));
    return result;
  }
  if (expected.dtype() == DType::kString) {
    result.outside = expected.equals(found) ? 0 : 1;
    return result;
  }
  const auto a = as_fp64(expected);
  const auto b = as_fp64(found);
  if (!a || !b) {
    result.problem = (!a ? a.error() : b.error()).to_string();
    return result;
  }
  const auto left = a->span<double>();
  const auto right = b->span<double>();
  for (const double value : left)
    if (std::isfinite(value)) result.max_expected = std::max(result.max_expected, std::abs(value));
  const bool exact = !is_float(expected.dtype());
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (left[i] == right[i] || (std::isnan(left[i]) && std::isnan(right[i]))) continue;
    const double difference = std::abs(left[i] - right[i]);
    if (std::isfinite(difference)) result.max_abs = std::max(result.max_abs, difference);
    if (exact || !(difference <= atol * result.max_expected + rtol * std::abs(left[i])))
      ++result.outside;
  }
  return result;
}

}  // namespace tessera::tools
