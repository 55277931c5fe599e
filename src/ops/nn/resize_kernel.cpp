#include "ops/nn/resize_kernel.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/nn/nn_util.h"
#include "ops/nn/reals.h"
#include "ops/nn/resize_plan.h"

namespace tessera::ops::nn {
namespace {

struct Call {
  ResizeOptions options;
  std::vector<ResizeAxis> axes;
  std::vector<AxisTaps> taps;  // for each axis
  Dims in, out;
};

// Copies the element that each output position is nearest to.
template <typename T>
void copy_nearest(KernelContext& context, const Call& call, const T* x, T* y) {
  const Dims strides = row_major_strides(call.in);
  const std::size_t rank = call.out.size();
  const std::int64_t inner = rank == 0 ? 1 : call.out[rank - 1];
  const std::int64_t rows = inner == 0 ? 0 : numel(call.out) / inner;
  context.parallel_for(
      rows, std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, inner)),
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          std::int64_t rest = row;
          std::int64_t offset = 0;
          for (std::size_t d = rank == 0 ? 0 : rank - 1; d-- > 0;) {
            offset += call.taps[d].index[static_cast<std::size_t>(rest % call.out[d])] * strides[d];
            rest /= call.out[d];
          }
          for (std::int64_t i = 0; i < inner; ++i) {
            y[row * inner + i] =
                x[offset +
                  (rank == 0 ? 0 : call.taps[rank - 1].index[static_cast<std::size_t>(i)])];
          }
        }
      });
}

// One axis resized: values of [outer, axis.in, inner] to [outer, axis.out, inner].
std::vector<double> filter_axis(KernelContext& context, const std::vector<double>& from,
                                const AxisTaps& taps, std::int64_t outer, const ResizeAxis& axis,
                                std::int64_t inner) {
  std::vector<double> to(static_cast<std::size_t>(outer * axis.out * inner));
  context.parallel_for(
      outer * axis.out, std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, inner)),
      [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t line = begin; line < end; ++line) {
          const auto at = static_cast<std::size_t>(line % axis.out);
          double* out = to.data() + line * inner;
          for (std::size_t t = taps.begin[at]; t < taps.begin[at + 1]; ++t) {
            const double* in = from.data() + (line / axis.out * axis.in + taps.index[t]) * inner;
            const double weight = taps.weight[t];
            for (std::int64_t i = 0; i < inner; ++i) out[i] += weight * in[i];
          }
        }
      });
  return to;
}

// Integers: the fraction cut off, kept inside the range.
template <typename T>
T from_double(double value) {
  if constexpr (std::is_integral_v<T>) {
    if (!(value > static_cast<double>(std::numeric_limits<T>::lowest())))
      return std::numeric_limits<T>::lowest();
    if (value >= static_cast<double>(std::numeric_limits<T>::max()))
      return std::numeric_limits<T>::max();
    return static_cast<T>(value);
  } else {
    return store<T>(static_cast<Compute<T>>(value));
  }
}

template <typename T>
void filter(KernelContext& context, const Call& call, const T* x, T* y) {
  std::vector<double> values(static_cast<std::size_t>(numel(call.in)));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(load(x[i]));
  Dims dims = call.in;
  for (std::size_t d = dims.size(); d-- > 0;) {
    if (call.taps[d].is_identity(call.axes[d])) continue;
    values = filter_axis(context, values, call.taps[d], count_between(dims, 0, d), call.axes[d],
                         count_between(dims, d + 1, dims.size()));
    dims[d] = call.axes[d].out;
  }
  for (std::size_t i = 0; i < values.size(); ++i) y[i] = from_double<T>(values[i]);
}

// Positions that lie outside of the input get the extrapolation value.
template <typename T>
void fill_outside(const Call& call, T* y) {
  const std::int64_t count = numel(call.out);
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t rest = i;
    bool outside = false;
    for (std::size_t d = call.out.size(); d-- > 0;) {
      outside = outside || call.taps[d].outside[static_cast<std::size_t>(rest % call.out[d])];
      rest /= call.out[d];
    }
    if (outside) y[i] = from_double<T>(static_cast<double>(call.options.extrapolation_value));
  }
}

using AllTypes = decltype(join(
    NumericTypes{}, Types<bool, std::string, std::complex<float>, std::complex<double>>{}));

Status run_nearest(KernelContext& context, const Call& call, const TensorView& x,
                   const MutableTensorView& y) {
  return dispatch(AllTypes{}, x.dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    copy_nearest<T>(context, call, x.as<T>(), y.as<T>());
    return {};
  });
}

Result<Call> plan_call(const KernelContext& context, const TensorView& x) {
  Call call;
  TESSERA_ASSIGN(call.options, read_resize(context.attributes()));
  const auto floats = [&](std::size_t index) {
    return context.input(index) == nullptr ? std::vector<float>{}
                                           : float_elements(*context.input(index));
  };
  const std::vector<std::int64_t> sizes = context.input(3) == nullptr
                                              ? std::vector<std::int64_t>{}
                                              : to_int64_vector(*context.input(3));
  TESSERA_ASSIGN(call.axes, plan_resize(call.options, x.dims, floats(1), floats(2), sizes));
  call.in = x.dims;
  for (const ResizeAxis& axis : call.axes) {
    call.out.push_back(axis.out);
    call.taps.push_back(axis_taps(call.options, axis));
  }
  return call;
}

}  // namespace

std::vector<float> float_elements(const TensorView& view) {
  std::vector<float> elements(static_cast<std::size_t>(view.numel()));
  cast_elements(view, {DType::kFp32, view.dims, elements.data()}, true);
  return elements;
}

Status resize_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* x, kernel_input(context, 0));
  TESSERA_ASSIGN(const Call call, plan_call(context, *x));
  TESSERA_ASSIGN(const MutableTensorView y, context.output(0, x->dtype, call.out));
  if (numel(call.out) == 0) return {};
  const bool nearest = call.options.mode == ResizeOptions::Mode::kNearest;
  const bool crops = call.options.coordinates == ResizeOptions::Coordinates::kTfCropAndResize;
  if (nearest) TESSERA_TRY(run_nearest(context, call, *x, y));
  if (nearest && !crops) return {};
  return dispatch(NumericTypes{}, x->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    if (!nearest) filter<T>(context, call, x->as<T>(), y.as<T>());
    if (crops) fill_outside<T>(call, y.as<T>());
    return {};
  });
}

}  // namespace tessera::ops::nn
