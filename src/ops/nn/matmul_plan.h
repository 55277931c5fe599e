#pragma once

// The sizes of a numpy matrix product: ranks of 1 promoted, leading dims broadcast.

#include <string_view>

#include "base/error.h"
#include "base/shape.h"

namespace tessera::ops::nn {

// The shape of the product. Errors: a scalar operand, inner sizes that differ, leading dims that do
// not broadcast.
Result<Shape> matmul_shape(std::string_view op, const Shape& a, const Shape& b);

// The product of concrete operands as a list of equal matrix products.
struct MatMulSizes {
  Dims output;
  std::int64_t rows = 1, depth = 1, columns = 1;
  Dims batch;                 // broadcast leading dims
  Dims a_strides, b_strides;  // in matrices, along `batch`; 0 where broadcast
  [[nodiscard]] std::int64_t a_matrix(std::int64_t index) const { return matrix(index, a_strides); }
  [[nodiscard]] std::int64_t b_matrix(std::int64_t index) const { return matrix(index, b_strides); }

 private:
  [[nodiscard]] std::int64_t matrix(std::int64_t index, const Dims& strides) const;
};
Result<MatMulSizes> matmul_sizes(std::string_view op, const Dims& a, const Dims& b);

}  // namespace tessera::ops::nn
