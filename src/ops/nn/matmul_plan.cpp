#include "ops/nn/matmul_plan.h"

#include <fmt/format.h>

#include "ops/kernel_util.h"
#include "ops/nn/nn_util.h"

namespace tessera::ops::nn {

Result<Shape> matmul_shape(std::string_view op, const Shape& a, const Shape& b) {
  if (a.empty() || b.empty()) {
    return op_error(op, fmt::format("input '{}': expected rank 1 or more, found rank 0",
                                    a.empty() ? "A" : "B"));
  }
  const Dim& inner_a = a.back();
  const Dim& inner_b = b.size() == 1 ? b[0] : b[b.size() - 2];
  TESSERA_TRY(require_size(op, "inner size of input 'B'", inner_a,
                           fmt::format("as 'A' of shape {} has", to_string(a)), inner_b));
  const Shape lead_a(a.begin(),
                     a.end() - std::min<std::ptrdiff_t>(2, static_cast<std::ptrdiff_t>(a.size())));
  const Shape lead_b(b.begin(),
                     b.end() - std::min<std::ptrdiff_t>(2, static_cast<std::ptrdiff_t>(b.size())));
  auto lead = broadcast_shapes(lead_a, lead_b);
  if (!lead) return tl::unexpected(in_context(std::move(lead).error(), std::string(op)));
  Shape shape = *std::move(lead);
  if (a.size() > 1) shape.push_back(a[a.size() - 2]);
  if (b.size() > 1) shape.push_back(b.back());
  return shape;
}

std::int64_t MatMulSizes::matrix(std::int64_t index, const Dims& strides) const {
  std::int64_t at = 0;
  for (std::size_t d = batch.size(); d-- > 0;) {
    at += index % batch[d] * strides[d];
    index /= batch[d];
  }
  return at;
}

Result<MatMulSizes> matmul_sizes(std::string_view op, const Dims& a, const Dims& b) {
  TESSERA_ASSIGN(const Shape shape, matmul_shape(op, to_shape(a), to_shape(b)));
  MatMulSizes sizes;
  sizes.output = constant_dims(shape).value();
  sizes.rows = a.size() > 1 ? a[a.size() - 2] : 1;
  sizes.depth = a.back();
  sizes.columns = b.size() > 1 ? b.back() : 1;
  const std::size_t matrix_dims = (a.size() > 1 ? 1 : 0) + (b.size() > 1 ? 1 : 0);
  sizes.batch.assign(sizes.output.begin(),
                     sizes.output.end() - static_cast<std::ptrdiff_t>(matrix_dims));
  sizes.a_strides = broadcast_strides(
      Dims(a.begin(), a.end() - std::min<std::ptrdiff_t>(2, static_cast<std::ptrdiff_t>(a.size()))),
      sizes.batch);
  sizes.b_strides = broadcast_strides(
      Dims(b.begin(), b.end() - std::min<std::ptrdiff_t>(2, static_cast<std::ptrdiff_t>(b.size()))),
      sizes.batch);
  return sizes;
}

}  // namespace tessera::ops::nn
