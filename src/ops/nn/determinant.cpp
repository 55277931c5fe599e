// Det: determinants of square matrices.

#include <fmt/format.h>

#include <cmath>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/nn/nn_util.h"
#include "ops/nn/reals.h"
#include "ops/schema_util.h"

namespace tessera::ops {
namespace {

Status infer(InferContext& context) {
  TESSERA_TRY(require_rank_at_least(context, 0, 2));
  const ValueType& x = context.inputs[0].type;
  std::optional<Shape> output = x.shape;
  if (output) {
    const std::size_t rank = output->size();
    TESSERA_TRY(
        merge_dim((*output)[rank - 2], (*output)[rank - 1], "rows and columns").map([](const Dim&) {
        }));
    output->resize(rank - 2);
  }
  set_output(context, 0, x.dtype, std::move(output));
  return {};
}

// By elimination with pivots; destroys the matrix.
double determinant(double* matrix, std::int64_t size) {
  double product = 1;
  for (std::int64_t i = 0; i < size; ++i) {
    std::int64_t pivot = i;
    for (std::int64_t row = i + 1; row < size; ++row)
      if (std::fabs(matrix[row * size + i]) > std::fabs(matrix[pivot * size + i])) pivot = row;
    if (pivot != i) {
      std::swap_ranges(matrix + i * size, matrix + (i + 1) * size, matrix + pivot * size);
      product = -product;
    }
    const double diagonal = matrix[i * size + i];
    product *= diagonal;
    if (diagonal == 0) return product;
    for (std::int64_t row = i + 1; row < size; ++row) {
      const double factor = matrix[row * size + i] / diagonal;
      for (std::int64_t column = i; column < size; ++column)
        matrix[row * size + column] -= factor * matrix[i * size + column];
    }
  }
  return product;
}

Status kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* x, kernel_input(context, 0));
  const std::size_t rank = x->dims.size();
  if (rank < 2 || x->dims[rank - 1] != x->dims[rank - 2])
    return nn::op_error("Det",
                        fmt::format("expected square matrices, found {}", to_string(x->dims)));
  TESSERA_ASSIGN(const MutableTensorView output,
                 context.output(0, x->dtype, Dims(x->dims.begin(), x->dims.end() - 2)));
  const std::int64_t size = x->dims[rank - 1];
  const nn::Reals<double> matrices(*x);
  nn::RealResult<double> result(output);
  std::vector<double> matrix(static_cast<std::size_t>(size * size));
  for (std::int64_t i = 0; i < output.numel(); ++i) {
    std::copy_n(matrices.data() + i * size * size, size * size, matrix.data());
    result.data()[i] = determinant(matrix.data(), size);
  }
  result.finish();
  return {};
}

}  // namespace

std::vector<OpSchema> determinant_ops() {
  OpSchema op;
  op.name = "Det";
  op.versions = {11, 22};
  op.inputs = {required("X", "T")};
  op.outputs = {required("Y", "T")};
  op.type_variables = {{"T", kFloatTypes}};
  op.structure = Structure::kOther;
  op.infer = infer;
  op.kernel = kernel;
  return {op};
}

}  // namespace tessera::ops
