#pragma once

// The convolution itself, for float and for quantised operands.

#include "ops/nn/contraction.h"
#include "ops/nn/conv_plan.h"

namespace tessera::ops::nn {

// A convolution as products: for each batch and group, weights [out_channels, in_channels * taps]
// by the windows [in_channels * taps, positions]. `T` is what operands are read as; store() is left
// to the user.
template <typename T>
class ConvContraction : public Contraction {
 public:
  // x: [batch, group * in_channels, spatial...]. w as Conv lays it out, or as ConvTranspose does
  // with `transposed`.
  ConvContraction(const ConvSizes& sizes, const T* x, const T* w, bool transposed);
  [[nodiscard]] std::unique_ptr<Scratch> make_scratch() const override;
  void load_left(std::int64_t index, std::int64_t row, std::int64_t k_begin, std::int64_t k_end,
                 double* out) const override;
  void load_right(Scratch& scratch, std::int64_t index, std::int64_t k_begin, std::int64_t k_end,
                  std::int64_t first, std::int64_t last, double* out,
                  std::int64_t pitch) const override;
  // The same sums of the taps that meet the source alone: to contract(), the others are zeros, and
  // NaN with a weight that is not finite.
  void contract_met_taps(KernelContext& context) const;

 protected:
  // The channel of the result (over all groups) of a row, and where its plane starts in the result.
  [[nodiscard]] std::int64_t channel(std::int64_t index, std::int64_t row) const;
  [[nodiscard]] std::int64_t plane(std::int64_t index, std::int64_t row) const;

 private:
  ConvSizes sizes_;
  const T* x_;
  const T* w_;
  bool transposed_;
  std::int64_t taps_;
  std::int64_t input_plane_;
};

extern template class ConvContraction<float>;
extern template class ConvContraction<double>;

Status conv_kernel(KernelContext& context);
Status conv_transpose_kernel(KernelContext& context);

}  // namespace tessera::ops::nn
