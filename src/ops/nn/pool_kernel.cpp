#include "ops/nn/pool_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/kernel_util.h"
#include "ops/nn/nn_util.h"
#include "ops/nn/reals.h"
#include "ops/nn/window.h"

namespace tessera::ops::nn {
namespace {

// Sizes of one call: planes (batch times channels) of `spatial` elements, pooled to `output`.
struct PoolSizes {
  std::int64_t planes = 0;
  std::int64_t in_plane = 1;
  std::int64_t out_plane = 1;
  Dims spatial, output, output_dims;
  Window window;  // explicit pads
};

Result<PoolSizes> pool_sizes(std::string_view op, const Attributes& attributes, const Dims& x) {
  if (x.size() < 3)
    return op_error(op, fmt::format("input 'X': expected rank 3 or more, found rank {}", x.size()));
  PoolSizes sizes;
  sizes.spatial.assign(x.begin() + 2, x.end());
  TESSERA_ASSIGN(const Window window,
                 read_window(op, attributes, sizes.spatial.size(), std::nullopt));
  TESSERA_ASSIGN(sizes.output, output_dims(op, window, sizes.spatial));
  sizes.window = with_explicit_pads(window, sizes.spatial);
  sizes.output_dims = {x[0], x[1]};
  sizes.output_dims.insert(sizes.output_dims.end(), sizes.output.begin(), sizes.output.end());
  sizes.planes = x[0] * x[1];
  sizes.in_plane = numel(sizes.spatial);
  sizes.out_plane = numel(sizes.output);
  return sizes;
}

// Calls body(table, count) for runs of output positions, in parallel; the table holds the taps of
// those positions.
template <typename Body>
void for_each_tile(KernelContext& context, const PoolSizes& sizes, const Body& body) {
  const std::int64_t taps = sizes.window.taps();
  const std::int64_t tile = std::clamp<std::int64_t>((std::int64_t{1} << 18) / taps, 1, 64);
  const std::int64_t tiles = (sizes.out_plane + tile - 1) / tile;
  if (sizes.planes == 0) return;
  context.parallel_for(tiles, 1, [&](std::int64_t begin, std::int64_t end) {
    TapTable table(sizes.window, sizes.spatial, sizes.output, false);
    for (std::int64_t t = begin; t < end; ++t) {
      const std::int64_t count = std::min(tile, sizes.out_plane - t * tile);
      table.build(t * tile, count);
      body(table, count);
    }
  });
}

// Index of an element of a plane as MaxPool's Indices count it: the first spatial axis fastest
// where `column_major`.
std::int64_t index_in_plane(std::int64_t offset, const Dims& spatial, bool column_major) {
  if (!column_major) return offset;
  std::int64_t index = 0;
  std::int64_t stride = numel(spatial);
  for (std::size_t axis = spatial.size(); axis-- > 0;) {
    stride /= spatial[axis];
    index += offset % spatial[axis] * stride;
    offset /= spatial[axis];
  }
  return index;
}

// The tap with the largest element (the first of equals; a NaN wins), or -1 where the window holds
// no element.
template <typename T>
std::int64_t largest(const T* plane, const TapTable& table, std::int64_t taps,
                     std::int64_t position) {
  std::int64_t best = -1;
  for (std::int64_t tap = 0; tap < taps; ++tap) {
    const std::int64_t offset = table.offsets(tap)[position];
    if (offset < 0) continue;
    if (best < 0) {
      best = offset;
      continue;
    }
    const auto value = load(plane[offset]);
    const auto top = load(plane[best]);
    const auto is_nan = [](auto x) {
      return x != x;  // NOLINT(misc-redundant-expression): integers have none
    };
    if (value > top || (is_nan(value) && !is_nan(top))) best = offset;
  }
  return best;
}

template <typename T>
T lowest() {
  using C = Compute<T>;
  if constexpr (std::numeric_limits<C>::has_infinity)
    return store<T>(-std::numeric_limits<C>::infinity());
  return store<T>(std::numeric_limits<C>::lowest());
}

using MaxPoolTypes = decltype(join(FloatTypes{}, Types<std::int8_t, std::uint8_t>{}));

// What an averaging window divides by along one axis.
std::int64_t counted(const WindowAxis& axis, std::int64_t position, std::int64_t size,
                     bool include_pads) {
  const std::int64_t start = position * axis.stride - axis.pad_begin;
  const std::int64_t low = include_pads ? -axis.pad_begin : 0;
  const std::int64_t high = include_pads ? size + axis.pad_end : size;
  std::int64_t count = 0;
  for (std::int64_t tap = 0; tap < axis.kernel; ++tap) {
    const std::int64_t at = start + tap * axis.dilation;
    count += at >= low && at < high ? 1 : 0;
  }
  return count;
}

std::int64_t divisor(const PoolSizes& sizes, std::int64_t position, bool include_pads) {
  std::int64_t product = 1;
  for (std::size_t axis = sizes.spatial.size(); axis-- > 0;) {
    product *= counted(sizes.window.axes[axis], position % sizes.output[axis], sizes.spatial[axis],
                       include_pads);
    position /= sizes.output[axis];
  }
  return product;
}

double power_of(double value, std::int64_t p) {
  value = std::abs(value);
  return p == 1 ? value : p == 2 ? value * value : std::pow(value, static_cast<double>(p));
}

double root_of(double sum, std::int64_t p) {
  return p == 1 ? sum : p == 2 ? std::sqrt(sum) : std::pow(sum, 1.0 / static_cast<double>(p));
}

// The dims of a global pooling: all spatial sizes become 1.
Result<Dims> global_dims(std::string_view op, const Dims& x) {
  if (x.size() < 2)
    return op_error(op, fmt::format("input 'X': expected rank 2 or more, found rank {}", x.size()));
  Dims dims(x.size(), 1);
  dims[0] = x[0];
  dims[1] = x[1];
  return dims;
}

// Each plane reduced by reduce(elements, count).
template <typename Reduce>
Status run_global(KernelContext& context, std::string_view op, const Reduce& reduce) {
  TESSERA_ASSIGN(const TensorView* x, kernel_input(context, 0));
  TESSERA_ASSIGN(const Dims dims, global_dims(op, x->dims));
  TESSERA_ASSIGN(const MutableTensorView y, context.output(0, x->dtype, dims));
  const std::int64_t plane = count_between(x->dims, 2, x->dims.size());
  return with_real(x->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    const Reals<T> xs(*x);
    RealResult<T> ys(y);
    T* out = ys.data();
    context.parallel_for(numel(dims),
                         std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, plane)),
                         [&](std::int64_t begin, std::int64_t end) {
                           for (std::int64_t i = begin; i < end; ++i)
                             out[i] = static_cast<T>(reduce(xs.data() + i * plane, plane));
                         });
    ys.finish();
    return {};
  });
}

}  // namespace

Status max_pool_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* x, kernel_input(context, 0));
  TESSERA_ASSIGN(const PoolSizes sizes, pool_sizes("MaxPool", context.attributes(), x->dims));
  TESSERA_ASSIGN(const MutableTensorView y, context.output(0, x->dtype, sizes.output_dims));
  std::int64_t* indices = nullptr;
  if (context.output_count() > 1) {
    TESSERA_ASSIGN(const MutableTensorView view,
                   context.output(1, DType::kInt64, sizes.output_dims));
    indices = view.as<std::int64_t>();
  }
  const bool column_major = context.attributes().get_int("storage_order", 0) != 0;
  const std::int64_t taps = sizes.window.taps();
  return dispatch(MaxPoolTypes{}, x->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    for_each_tile(context, sizes, [&](const TapTable& table, std::int64_t count) {
      for (std::int64_t p = 0; p < sizes.planes; ++p) {
        const T* plane = x->as<T>() + p * sizes.in_plane;
        const std::int64_t out = p * sizes.out_plane + table.first();
        for (std::int64_t j = 0; j < count; ++j) {
          const std::int64_t best = largest(plane, table, taps, j);
          y.as<T>()[out + j] = best < 0 ? lowest<T>() : plane[best];
          if (indices == nullptr) continue;
          indices[out + j] =
              best < 0 ? -1
                       : p * sizes.in_plane + index_in_plane(best, sizes.spatial, column_major);
        }
      }
    });
    return {};
  });
}

namespace {

// Sums term(element) over each window, then finish(sum, position).
template <typename Term, typename Finish>
Status run_sums(KernelContext& context, std::string_view op, const Term& term,
                const Finish& finish) {
  TESSERA_ASSIGN(const TensorView* x, kernel_input(context, 0));
  TESSERA_ASSIGN(const PoolSizes sizes, pool_sizes(op, context.attributes(), x->dims));
  TESSERA_ASSIGN(const MutableTensorView y, context.output(0, x->dtype, sizes.output_dims));
  const std::int64_t taps = sizes.window.taps();
  return with_real(x->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    const Reals<T> xs(*x);
    RealResult<T> ys(y);
    T* out = ys.data();
    for_each_tile(context, sizes, [&](const TapTable& table, std::int64_t count) {
      const auto scale = finish(sizes, table.first(), count);
      for (std::int64_t p = 0; p < sizes.planes; ++p) {
        const T* plane = xs.data() + p * sizes.in_plane;
        for (std::int64_t j = 0; j < count; ++j) {
          double sum = 0;
          for (std::int64_t tap = 0; tap < taps; ++tap) {
            const std::int64_t offset = table.offsets(tap)[j];
            if (offset >= 0) sum += term(static_cast<double>(plane[offset]));
          }
          out[p * sizes.out_plane + table.first() + j] = static_cast<T>(scale(sum, j));
        }
      }
    });
    ys.finish();
    return {};
  });
}

}  // namespace

Status average_pool_kernel(KernelContext& context) {
  const bool include_pads = context.attributes().get_int("count_include_pad", 0) != 0;
  const auto finish = [&](const PoolSizes& sizes, std::int64_t first, std::int64_t count) {
    std::vector<double> divisors;
    for (std::int64_t j = 0; j < count; ++j)
      divisors.push_back(static_cast<double>(divisor(sizes, first + j, include_pads)));
    return [divisors](double sum, std::int64_t j) {
      const double by = divisors[static_cast<std::size_t>(j)];
      return by == 0 ? 0.0 : sum / by;
    };
  };
  return run_sums(
      context, "AveragePool", [](double value) { return value; }, finish);
}

Status lp_pool_kernel(KernelContext& context) {
  const std::int64_t p = context.attributes().get_int("p", 2);
  const auto finish = [p](const PoolSizes&, std::int64_t, std::int64_t) {
    return [p](double sum, std::int64_t) { return root_of(sum, p); };
  };
  return run_sums(
      context, "LpPool", [p](double value) { return power_of(value, p); }, finish);
}

Status global_average_pool_kernel(KernelContext& context) {
  return run_global(context, "GlobalAveragePool", [](const auto* elements, std::int64_t count) {
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(elements[i]);
    return sum / static_cast<double>(count);
  });
}

Status global_max_pool_kernel(KernelContext& context) {
  return run_global(context, "GlobalMaxPool", [](const auto* elements, std::int64_t count) {
    double best = -std::numeric_limits<double>::infinity();
    for (std::int64_t i = 0; i < count; ++i) {
      const double value = static_cast<double>(elements[i]);
      if (value > best || value != value) best = value;
      if (best != best) break;
    }
    return best;
  });
}

Status global_lp_pool_kernel(KernelContext& context) {
  const std::int64_t p = context.attributes().get_int("p", 2);
  return run_global(context, "GlobalLpPool", [p](const auto* elements, std::int64_t count) {
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) sum += power_of(static_cast<double>(elements[i]), p);
    return root_of(sum, p);
  });
}

}  // namespace tessera::ops::nn
