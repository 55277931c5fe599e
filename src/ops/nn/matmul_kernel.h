#pragma once

// Matrix products as contractions: of floats, and of integers that wrap around.

#include "ops/nn/contraction.h"
#include "ops/nn/matmul_plan.h"

namespace tessera::ops::nn {

// Where element (row, column) of a matrix lies: row * row_stride + column * column_stride.
struct MatrixStrides {
  std::int64_t row = 0;
  std::int64_t column = 1;
};

// The products of MatMulSizes over operands read as T; store() is left to the user.
template <typename T>
class MatMulContraction : public Contraction {
 public:
  MatMulContraction(const MatMulSizes& sizes, const T* a, MatrixStrides a_strides, const T* b,
                    MatrixStrides b_strides)
      : sizes_(sizes), a_(a), b_(b), a_strides_(a_strides), b_strides_(b_strides) {
    count = tessera::numel(sizes.batch);
    rows = sizes.rows;
    depth = sizes.depth;
    columns = sizes.columns;
  }

  void load_left(std::int64_t index, std::int64_t row, std::int64_t k_begin, std::int64_t k_end,
                 double* out) const override {
    const T* from = a_ + sizes_.a_matrix(index) * rows * depth + row * a_strides_.row;
    for (std::int64_t k = k_begin; k < k_end; ++k)
      out[k - k_begin] = static_cast<double>(from[k * a_strides_.column]);
  }

  void load_right(Scratch&, std::int64_t index, std::int64_t k_begin, std::int64_t k_end,
                  std::int64_t first, std::int64_t last, double* out,
                  std::int64_t pitch) const override {
    const T* matrix = b_ + sizes_.b_matrix(index) * depth * columns;
    for (std::int64_t k = k_begin; k < k_end; ++k) {
      const T* from = matrix + k * b_strides_.row + first * b_strides_.column;
      double* row = out + (k - k_begin) * pitch;
      for (std::int64_t j = 0; j < last - first; ++j)
        row[j] = static_cast<double>(from[j * b_strides_.column]);
    }
  }

 private:
  MatMulSizes sizes_;
  const T* a_;
  const T* b_;
  MatrixStrides a_strides_, b_strides_;
};

// out[row][column] = sum of a * b modulo 2^bits of T, row-major, for integer T.
template <typename T>
void matmul_integers(KernelContext& context, const MatMulSizes& sizes, const T* a,
                     MatrixStrides a_strides, const T* b, MatrixStrides b_strides, T* out) {
  const std::int64_t all_rows = tessera::numel(sizes.batch) * sizes.rows;
  context.parallel_for(all_rows, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t r = begin; r < end; ++r) {
      const std::int64_t index = r / sizes.rows;
      const T* left =
          a + sizes.a_matrix(index) * sizes.rows * sizes.depth + r % sizes.rows * a_strides.row;
      const T* right = b + sizes.b_matrix(index) * sizes.depth * sizes.columns;
      for (std::int64_t j = 0; j < sizes.columns; ++j) {
        std::uint64_t sum = 0;
        for (std::int64_t k = 0; k < sizes.depth; ++k) {
          sum += static_cast<std::uint64_t>(left[k * a_strides.column]) *
                 static_cast<std::uint64_t>(right[k * b_strides.row + j * b_strides.column]);
        }
        out[r * sizes.columns + j] = static_cast<T>(sum);
      }
    }
  });
}

}  // namespace tessera::ops::nn
