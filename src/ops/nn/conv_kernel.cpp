#include "ops/nn/conv_kernel.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/nn/reals.h"

namespace tessera::ops::nn {
namespace {

struct TapScratch : Contraction::Scratch {
  explicit TapScratch(TapTable t) : table(std::move(t)) {}
  TapTable table;
};

std::int64_t product(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
}

template <typename T>
class FloatConv final : public ConvContraction<T> {
 public:
  FloatConv(const ConvSizes& sizes, const T* x, const T* w, const T* bias, bool transposed, T* out)
      : ConvContraction<T>(sizes, x, w, transposed), bias_(bias), out_(out) {}

  void store(std::int64_t index, std::int64_t row, std::int64_t first, std::int64_t last,
             const double* sums) const override {
    T* out = out_ + this->plane(index, row) + first;
    const double bias =
        bias_ == nullptr ? 0.0 : static_cast<double>(bias_[this->channel(index, row)]);
    for (std::int64_t j = 0; j < last - first; ++j) out[j] = static_cast<T>(sums[j] + bias);
  }

 private:
  const T* bias_;
  T* out_;
};

Status run_conv(KernelContext& context, bool transposed) {
  TESSERA_ASSIGN(const TensorView* x, kernel_input(context, 0));
  TESSERA_ASSIGN(const TensorView* w, kernel_input(context, 1));
  const TensorView* b = context.input(2);
  const Dims* bias_dims = b == nullptr ? nullptr : &b->dims;
  TESSERA_ASSIGN(const ConvSizes sizes,
                 transposed
                     ? conv_transpose_sizes(context.attributes(), x->dims, w->dims, bias_dims)
                     : conv_sizes("Conv", context.attributes(), x->dims, w->dims, bias_dims));
  TESSERA_ASSIGN(const MutableTensorView y, context.output(0, x->dtype, sizes.output_dims));
  return with_real(x->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    const Reals<T> xs(*x);
    const Reals<T> ws(*w);
    const TensorView no_bias{dtype_of<T>(), {0}, nullptr};
    const Reals<T> bs(b == nullptr ? no_bias : *b);
    RealResult<T> ys(y);
    const FloatConv<T> conv(sizes, xs.data(), ws.data(), b == nullptr ? nullptr : bs.data(),
                            transposed, ys.data());
    // Conv pads with zeros, ConvTranspose has no products there.
    const bool finite = std::all_of(ws.data(), ws.data() + w->numel(),
                                    [](T weight) { return std::isfinite(weight); });
    if (transposed && !finite) {
      conv.contract_met_taps(context);
    } else {
      contract(context, conv);
    }
    ys.finish();
    return {};
  });
}

}  // namespace

template <typename T>
ConvContraction<T>::ConvContraction(const ConvSizes& sizes, const T* x, const T* w, bool transposed)
    : sizes_(sizes),
      x_(x),
      w_(w),
      transposed_(transposed),
      taps_(sizes.window.taps()),
      input_plane_(product(sizes.spatial)) {
  count = sizes.batch * sizes.group;
  rows = sizes.out_channels;
  depth = sizes.in_channels * taps_;
  columns = product(sizes.output);
}

template <typename T>
std::unique_ptr<Contraction::Scratch> ConvContraction<T>::make_scratch() const {
  return std::make_unique<TapScratch>(
      TapTable(sizes_.window, sizes_.spatial, sizes_.output, transposed_));
}

template <typename T>
void ConvContraction<T>::load_left(std::int64_t index, std::int64_t row, std::int64_t k_begin,
                                   std::int64_t k_end, double* out) const {
  const std::int64_t group = index % sizes_.group;
  if (!transposed_) {
    const T* weights = w_ + (group * rows + row) * depth;
    for (std::int64_t k = k_begin; k < k_end; ++k)
      out[k - k_begin] = static_cast<double>(weights[k]);
    return;
  }
  for (std::int64_t k = k_begin; k < k_end; ++k) {  // w: [group * in_channels, out_channels, taps]
    const std::int64_t in_channel = group * sizes_.in_channels + k / taps_;
    out[k - k_begin] = static_cast<double>(w_[(in_channel * rows + row) * taps_ + k % taps_]);
  }
}

template <typename T>
void ConvContraction<T>::load_right(Scratch& scratch, std::int64_t index, std::int64_t k_begin,
                                    std::int64_t k_end, std::int64_t first, std::int64_t last,
                                    double* out, std::int64_t pitch) const {
  TapTable& table = static_cast<TapScratch&>(scratch).table;
  if (table.first() != first) table.build(first, last - first);
  for (std::int64_t k = k_begin; k < k_end; ++k) {
    const T* source = x_ + (index * sizes_.in_channels + k / taps_) * input_plane_;
    const std::int64_t* offsets = table.offsets(k % taps_);
    double* row = out + (k - k_begin) * pitch;
    for (std::int64_t j = 0; j < last - first; ++j)
      row[j] = offsets[j] < 0 ? 0.0 : static_cast<double>(source[offsets[j]]);
  }
}

template <typename T>
void ConvContraction<T>::contract_met_taps(KernelContext& context) const {
  constexpr std::int64_t kTile = 64;
  if (columns == 0) return;
  context.parallel_for((columns + kTile - 1) / kTile, 1, [&](std::int64_t begin, std::int64_t end) {
    TapTable table(sizes_.window, sizes_.spatial, sizes_.output, transposed_);
    std::vector<double> weights(static_cast<std::size_t>(depth));
    std::vector<double> sums(kTile);
    for (std::int64_t first = begin * kTile; first < std::min(end * kTile, columns);
         first += kTile) {
      const std::int64_t size = std::min(kTile, columns - first);
      table.build(first, size);
      for (std::int64_t i = 0; i < count * rows; ++i) {
        const std::int64_t index = i / rows;
        load_left(index, i % rows, 0, depth, weights.data());
        std::fill(sums.begin(), sums.end(), 0.0);
        for (std::int64_t k = 0; k < depth; ++k) {
          const T* source = x_ + (index * sizes_.in_channels + k / taps_) * input_plane_;
          const std::int64_t* offsets = table.offsets(k % taps_);
          for (std::int64_t j = 0; j < size; ++j) {
            if (offsets[j] >= 0)
              sums[static_cast<std::size_t>(j)] +=
                  weights[static_cast<std::size_t>(k)] * static_cast<double>(source[offsets[j]]);
          }
        }
        this->store(index, i % rows, first, first + size, sums.data());
      }
    }
  });
}

template <typename T>
std::int64_t ConvContraction<T>::channel(std::int64_t index, std::int64_t row) const {
  return index % sizes_.group * rows + row;
}

template <typename T>
std::int64_t ConvContraction<T>::plane(std::int64_t index, std::int64_t row) const {
  return (index * rows + row) * columns;
}

template class ConvContraction<float>;
template class ConvContraction<double>;

Status conv_kernel(KernelContext& context) {
  return run_conv(context, false);
}
Status conv_transpose_kernel(KernelContext& context) {
  return run_conv(context, true);
}

}  // namespace tessera::ops::nn
