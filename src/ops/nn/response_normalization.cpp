// LRN (across channels), MeanVarianceNormalization and LpNormalization.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ops/infer_util.h"
#include "ops/nn/nn_util.h"
#include "ops/nn/reals.h"
#include "ops/nn/schemas.h"
#include "ops/schema_util.h"

namespace tessera::ops::nn {
namespace {

// What MeanVarianceNormalization adds to the standard deviation, as its function body in the
// standard does.
constexpr double kMvnEpsilon = 1e-9;

Status check_lrn(const Attributes& attributes, std::size_t rank) {
  if (rank < 2)
    return op_error(
        "LRN",
        fmt::format("input 'X': expected rank 2 or more (batch, channels, ...), found rank {}",
                    rank));
  const std::int64_t size = attributes.get_int("size", 1);
  if (size < 1) return op_error("LRN", fmt::format("size: expected at least 1, found {}", size));
  return {};
}

Status infer_lrn(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* x, tensor_input(context, 0));
  if (x->type.shape) TESSERA_TRY(check_lrn(context.attributes, x->type.shape->size()));
  return infer_same_as_first(context);
}

// One element: x / (bias + alpha / size * sum of squares over neighbouring channels) ^ beta.
struct Lrn {
  std::int64_t size;
  double alpha, beta, bias;
  template <typename T>
  [[nodiscard]] double at(const T* column, std::int64_t channel, std::int64_t channels,
                          std::int64_t plane) const {
    const std::int64_t low = std::max<std::int64_t>(0, channel - (size - 1) / 2);
    const std::int64_t high = std::min<std::int64_t>(channels - 1, channel + size / 2);
    double squares = 0;
    for (std::int64_t c = low; c <= high; ++c)
      squares += static_cast<double>(column[c * plane]) * static_cast<double>(column[c * plane]);
    return static_cast<double>(column[channel * plane]) /
           std::pow(bias + alpha / static_cast<double>(size) * squares, beta);
  }
};

Status lrn_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* x, kernel_input(context, 0));
  const Attributes& a = context.attributes();
  TESSERA_TRY(check_lrn(a, x->dims.size()));
  TESSERA_ASSIGN(const MutableTensorView y, context.output(0, x->dtype, x->dims));
  const Lrn lrn{std::min<std::int64_t>(a.get_int("size", 1), std::int64_t{1} << 31),
                static_cast<double>(a.get_float("alpha", 1e-4F)),
                static_cast<double>(a.get_float("beta", 0.75F)),
                static_cast<double>(a.get_float("bias", 1.0F))};
  const std::int64_t channels = x->dims[1];
  const std::int64_t plane = count_between(x->dims, 2, x->dims.size());
  return with_real(x->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    const Reals<T> xs(*x);
    RealResult<T> ys(y);
    T* out = ys.data();
    context.parallel_for(x->dims[0] * channels, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t p = begin; p < end; ++p) {
        const T* item = xs.data() + p / channels * channels * plane;
        for (std::int64_t i = 0; i < plane; ++i)
          out[p * plane + i] = static_cast<T>(lrn.at(item + i, p % channels, channels, plane));
      }
    });
    ys.finish();
    return {};
  });
}

Result<std::vector<std::int64_t>> mvn_axes(const Attributes& attributes, std::size_t rank) {
  return normalize_axes(attributes.get_ints("axes", {0, 2, 3}), static_cast<std::int64_t>(rank));
}

Status infer_mvn(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* x, tensor_input(context, 0));
  if (x->type.shape)
    TESSERA_TRY(mvn_axes(context.attributes, x->type.shape->size()).map([](const auto&) {}));
  return infer_same_as_first(context);
}

// Elements that share statistics: offset of the first of each set, and offsets of its members from
// there.
struct ReducedSets {
  std::vector<std::int64_t> starts, members;
};

std::vector<std::int64_t> offsets_over(const Dims& dims, const std::vector<bool>& use) {
  std::vector<std::int64_t> offsets{0};
  const Dims strides = row_major_strides(dims);
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (!use[d]) continue;
    std::vector<std::int64_t> next;
    for (const std::int64_t offset : offsets) {
      for (std::int64_t i = 0; i < dims[d]; ++i) next.push_back(offset + i * strides[d]);
    }
    offsets = std::move(next);
  }
  return offsets;
}

ReducedSets reduced_sets(const Dims& dims, const std::vector<std::int64_t>& axes) {
  std::vector<bool> reduced(dims.size(), false);
  for (const std::int64_t axis : axes) reduced[static_cast<std::size_t>(axis)] = true;
  std::vector<bool> kept = reduced;
  kept.flip();
  return {offsets_over(dims, kept), offsets_over(dims, reduced)};
}

// Each set of elements goes through body(x + start, y + start, members).
template <typename Body>
Status over_sets(KernelContext& context, const TensorView& x, const std::vector<std::int64_t>& axes,
                 const Body& body) {
  TESSERA_ASSIGN(const MutableTensorView y, context.output(0, x.dtype, x.dims));
  const ReducedSets sets = reduced_sets(x.dims, axes);
  return with_real(x.dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    const Reals<T> xs(x);
    RealResult<T> ys(y);
    T* out = ys.data();
    context.parallel_for(static_cast<std::int64_t>(sets.starts.size()), 1,
                         [&](std::int64_t begin, std::int64_t end) {
                           for (std::int64_t s = begin; s < end; ++s) {
                             const std::int64_t start = sets.starts[static_cast<std::size_t>(s)];
                             body(xs.data() + start, out + start, sets.members);
                           }
                         });
    ys.finish();
    return {};
  });
}

Status mvn_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* x, kernel_input(context, 0));
  TESSERA_ASSIGN(const auto axes, mvn_axes(context.attributes(), x->dims.size()));
  return over_sets(
      context, *x, axes, [](const auto* in, auto* out, const std::vector<std::int64_t>& members) {
        const auto count = static_cast<double>(members.size());
        double sum = 0;
        for (const std::int64_t m : members) sum += static_cast<double>(in[m]);
        const double mean = sum / count;
        double squares = 0;
        for (const std::int64_t m : members)
          squares += (static_cast<double>(in[m]) - mean) * (static_cast<double>(in[m]) - mean);
        const double deviation = std::sqrt(squares / count) + kMvnEpsilon;
        for (const std::int64_t m : members)
          out[m] = static_cast<std::decay_t<decltype(*out)>>((static_cast<double>(in[m]) - mean) /
                                                             deviation);
      });
}

Status check_lp(const Attributes& attributes) {
  const std::int64_t p = attributes.get_int("p", 2);
  if (p != 1 && p != 2)
    return op_error("LpNormalization", fmt::format("p: expected 1 or 2, found {}", p));
  return {};
}

Status infer_lp(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* x, tensor_input(context, 0));
  TESSERA_TRY(check_lp(context.attributes));
  if (x->type.shape) {
    TESSERA_TRY(normalize_axis(context.attributes.get_int("axis", -1),
                               static_cast<std::int64_t>(x->type.shape->size())));
  }
  return infer_same_as_first(context);
}

// Sets whose norm is 0 stay 0.
Status lp_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* x, kernel_input(context, 0));
  TESSERA_TRY(check_lp(context.attributes()));
  TESSERA_ASSIGN(const std::int64_t axis,
                 normalize_axis(context.attributes().get_int("axis", -1),
                                static_cast<std::int64_t>(x->dims.size())));
  const std::int64_t p = context.attributes().get_int("p", 2);
  return over_sets(context, *x, {axis},
                   [p](const auto* in, auto* out, const std::vector<std::int64_t>& members) {
                     double sum = 0;
                     for (const std::int64_t m : members) {
                       const double value = std::abs(static_cast<double>(in[m]));
                       sum += p == 1 ? value : value * value;
                     }
                     const double norm = p == 1 ? sum : std::sqrt(sum);
                     for (const std::int64_t m : members) {
                       out[m] = static_cast<std::decay_t<decltype(*out)>>(
                           norm == 0 ? 0.0 : static_cast<double>(in[m]) / norm);
                     }
                   });
}

OpSchema schema(std::string_view name, std::vector<int> versions, InferFn infer, KernelFn kernel) {
  OpSchema op;
  op.name = name;
  op.versions = std::move(versions);
  op.inputs = {required("X", "T")};
  op.outputs = {required("Y", "T")};
  op.type_variables = {{"T", kFloatTypes}};
  op.structure = Structure::kReduction;
  op.infer = infer;
  op.kernel = kernel;
  op.work = work_per_input_element<5>;
  return op;
}

}  // namespace

std::vector<OpSchema> response_normalization_schemas() {
  OpSchema lrn = schema("LRN", {1, 13}, infer_lrn, lrn_kernel);
  lrn.structure = Structure::kWindow;
  lrn.attributes = {attr("alpha", AttrType::kFloat), attr("beta", AttrType::kFloat),
                    attr("bias", AttrType::kFloat), required_attr("size", AttrType::kInt)};
  OpSchema mvn = schema("MeanVarianceNormalization", {9, 13}, infer_mvn, mvn_kernel);
  mvn.attributes = {attr("axes", AttrType::kInts)};
  OpSchema lp = schema("LpNormalization", {1, 22}, infer_lp, lp_kernel);
  lp.attributes = {attr("axis", AttrType::kInt), attr("p", AttrType::kInt)};
  return {lrn, mvn, lp};
}

}  // namespace tessera::ops::nn
