// Inverse: of each square matrix, by elimination with pivots.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/nn/nn_util.h"
#include "ops/nn/reals.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

constexpr std::string_view kOp = "Inverse";

Status infer(InferContext& context) {
  TESSERA_TRY(require_rank_at_least(context, 0, 2));
  if (const auto& x = context.inputs[0].type.shape) {
    const std::size_t rank = x->size();
    TESSERA_TRY(
        merge_dim((*x)[rank - 2], (*x)[rank - 1], "rows and columns").map([](const Dim&) {}));
  }
  return infer_same_as_first(context);
}

// Turns `matrix` into the identity, and with the same steps the identity into `inverse`. False
// where the matrix has none.
bool invert(double* matrix, double* inverse, std::int64_t size) {
  std::fill_n(inverse, size * size, 0.0);
  for (std::int64_t i = 0; i < size; ++i) inverse[i * size + i] = 1;
  for (std::int64_t i = 0; i < size; ++i) {
    std::int64_t pivot = i;
    for (std::int64_t row = i + 1; row < size; ++row)
      if (std::fabs(matrix[row * size + i]) > std::fabs(matrix[pivot * size + i])) pivot = row;
    const double diagonal = matrix[pivot * size + i];
    if (diagonal == 0) return false;
    for (double* side : {matrix, inverse}) {
      if (pivot != i) std::swap_ranges(side + i * size, side + (i + 1) * size, side + pivot * size);
      for (std::int64_t column = 0; column < size; ++column) side[i * size + column] /= diagonal;
    }
    for (std::int64_t row = 0; row < size; ++row) {
      const double factor = matrix[row * size + i];
      if (row == i || factor == 0) continue;
      for (double* side : {matrix, inverse})
        for (std::int64_t column = 0; column < size; ++column)
          side[row * size + column] -= factor * side[i * size + column];
    }
  }
  return true;
}

Status kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* x, kernel_input(context, 0));
  const std::size_t rank = x->dims.size();
  if (rank < 2 || x->dims[rank - 1] != x->dims[rank - 2])
    return nn::op_error(kOp, fmt::format("expected square matrices, found {}", to_string(x->dims)));
  TESSERA_ASSIGN(const MutableTensorView output, context.output(0, x->dtype, x->dims));
  const std::int64_t size = x->dims[rank - 1];
  const std::int64_t count = size * size;
  const nn::Reals<double> matrices(*x);
  nn::RealResult<double> result(output);
  std::vector<double> matrix(static_cast<std::size_t>(count));
  for (std::int64_t at = 0; at < output.numel(); at += count) {
    std::copy_n(matrices.data() + at, count, matrix.data());
    if (!invert(matrix.data(), result.data() + at, size))
      return nn::op_error(kOp, fmt::format("expected matrices that have an inverse, found that "
                                           "matrix {} has none",
                                           at / count));
  }
  result.finish();
  return {};
}

Work inverse_work(const Attributes&, std::span<const TensorSpec> inputs,
                  std::span<const TensorSpec> outputs) {
  Work work = nn::operand_traffic(inputs, outputs);
  const Dims& dims = inputs[0].dims;
  work.flops = 4 * static_cast<double>(numel(dims)) * static_cast<double>(dims.back());
  return work;
}

}  // namespace

std::vector<OpSchema> inverse_ops() {
  OpSchema op;
  op.domain = "com.microsoft";
  op.name = kOp;
  op.unspecified = "a matrix without an inverse is an error";
  op.versions = {1};
  op.inputs = {required("X", "T")};
  op.outputs = {required("Y", "T")};
  op.type_variables = {{"T", kFloatTypes}};
  op.structure = Structure::kOther;
  op.infer = infer;
  op.kernel = kernel;
  op.work = inverse_work;
  return {op};
}

}  // namespace tessera::ops
