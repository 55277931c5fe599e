// Softmax, LogSoftmax, Hardmax along one axis. Before version 13 they worked on the input flattened
// to a matrix at `axis`.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/groups.h"
#include "ops/infer_util.h"
#include "ops/nn/nn_util.h"
#include "ops/nn/reals.h"
#include "ops/schema_util.h"
#include "ops/upgrade_util.h"

namespace tessera::ops {
namespace {

Status infer_softmax(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* x, tensor_input(context, 0));
  if (x->type.shape) {
    const auto rank = static_cast<std::int64_t>(x->type.shape->size());
    TESSERA_TRY(
        normalize_axis(context.attributes.get_int("axis", -1), std::max<std::int64_t>(rank, 1)));
  }
  return infer_same_as_first(context);
}

// A line of elements along the axis; `step` apart.
template <typename T>
struct Line {
  const T* in;
  T* out;
  std::int64_t count;
  std::int64_t step;
  [[nodiscard]] double at(std::int64_t i) const { return static_cast<double>(in[i * step]); }
  [[nodiscard]] double largest() const {
    double best = -std::numeric_limits<double>::infinity();
    for (std::int64_t i = 0; i < count; ++i) best = std::max(best, at(i));
    return best;
  }
  [[nodiscard]] double sum_of_exponentials(double shift) const {
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) sum += std::exp(at(i) - shift);
    return sum;
  }
};

struct SoftmaxLine {
  template <typename T>
  void operator()(const Line<T>& line) const {
    const double shift = line.largest();
    const double sum = line.sum_of_exponentials(shift);
    for (std::int64_t i = 0; i < line.count; ++i)
      line.out[i * line.step] = static_cast<T>(std::exp(line.at(i) - shift) / sum);
  }
};

struct LogSoftmaxLine {
  template <typename T>
  void operator()(const Line<T>& line) const {
    const double shift = line.largest();
    const double log_sum = std::log(line.sum_of_exponentials(shift));
    for (std::int64_t i = 0; i < line.count; ++i)
      line.out[i * line.step] = static_cast<T>(line.at(i) - shift - log_sum);
  }
};

struct HardmaxLine {
  template <typename T>
  void operator()(const Line<T>& line) const {
    std::int64_t best = 0;
    for (std::int64_t i = 1; i < line.count; ++i) best = line.at(i) > line.at(best) ? i : best;
    for (std::int64_t i = 0; i < line.count; ++i)
      line.out[i * line.step] = static_cast<T>(i == best ? 1 : 0);
  }
};

template <typename LineFn>
Status softmax_kernel(KernelContext& context) {
  TESSERA_ASSIGN(const TensorView* x, kernel_input(context, 0));
  const Dims dims = x->dims.empty() ? Dims{1} : x->dims;
  TESSERA_ASSIGN(const std::int64_t axis, normalize_axis(context.attributes().get_int("axis", -1),
                                                         static_cast<std::int64_t>(dims.size())));
  TESSERA_ASSIGN(const MutableTensorView y, context.output(0, x->dtype, x->dims));
  const auto at = static_cast<std::size_t>(axis);
  const std::int64_t count = dims[at];
  const std::int64_t step = count_between(dims, at + 1, dims.size());
  const std::int64_t lines = count_between(dims, 0, at) * step;
  return nn::with_real(x->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    const nn::Reals<T> xs(*x);
    nn::RealResult<T> ys(y);
    T* out = ys.data();
    context.parallel_for(count == 0 ? 0 : lines,
                         std::max<std::int64_t>(1, 4096 / std::max<std::int64_t>(1, count)),
                         [&](std::int64_t begin, std::int64_t end) {
                           for (std::int64_t i = begin; i < end; ++i) {
                             const std::int64_t start = i / step * count * step + i % step;
                             LineFn{}(Line<T>{xs.data() + start, out + start, count, step});
                           }
                         });
    ys.finish();
    return {};
  });
}

// Whether all sizes after `axis` are known to be 1, so that the flattened matrix has the axis alone
// in its rows.
bool axis_stands_alone(const Shape& shape, std::int64_t axis) {
  return std::all_of(shape.begin() + axis + 1, shape.end(),
                     [](const Dim& dim) { return dim.constant() == 1; });
}

// Versions 1 to 12: Reshape(op(Flatten(x, axis), axis 1), Shape(x)).
Status upgrade_flattened(UpgradeNode& node, int, UpgradeBuilder& builder) {
  TESSERA_TRY(nn::require_inputs(node, 1));
  TESSERA_ASSIGN(const std::int64_t axis, old_int(node, "axis", 1));
  const ValueType* type = builder.type(node.inputs[0]);
  if (type != nullptr && type->shape) {
    const auto rank = static_cast<std::int64_t>(type->shape->size());
    if (axis < -rank || axis > rank) {
      return nn::op_error(
          node.op_type,
          fmt::format("axis: expected a value from {} to {}, found {}", -rank, rank, axis));
    }
    const std::int64_t front = axis < 0 ? axis + rank : axis;
    if (front < rank && axis_stands_alone(*type->shape, front)) {
      node.attributes.set("axis", front);
      return {};
    }
  }
  Attributes flatten;
  flatten.set("axis", axis);
  Attributes last;
  last.set("axis", std::int64_t{-1});
  const Operand x = node.inputs[0];
  const Operand shape = builder.node("Shape", {}, {x}, 1)[0];
  const Operand matrix = builder.node("Flatten", std::move(flatten), {x}, 1)[0];
  const Operand result = builder.node(node.op_type, std::move(last), {matrix}, 1)[0];
  Attributes reshape;
  reshape.set("allowzero", std::int64_t{1});
  node.replacement = builder.node("Reshape", std::move(reshape), {result, shape}, 1);
  return {};
}

OpSchema softmax_schema(std::string_view name, KernelFn kernel) {
  OpSchema op;
  op.name = name;
  op.versions = {1, 11, 13};
  op.unspecified = "a line that holds a NaN or plus infinity, or minus infinity alone, becomes NaN";
  op.inputs = {required("input", "T")};
  op.outputs = {required("output", "T")};
  op.attributes = {attr("axis", AttrType::kInt)};
  op.type_variables = {{"T", kFloatTypes}};
  op.structure = Structure::kReduction;
  op.infer = infer_softmax;
  op.kernel = kernel;
  op.work = nn::work_per_input_element<5>;
  op.upgrades = {{1, 12, upgrade_flattened}};
  op.in_place_inputs = {0};
  return op;
}

}  // namespace

std::vector<OpSchema> softmax_ops() {
  OpSchema hardmax = softmax_schema("Hardmax", softmax_kernel<HardmaxLine>);
  hardmax.unspecified =
      "a NaN is the largest where it comes first in its line, else it does not count";
  return {softmax_schema("Softmax", softmax_kernel<SoftmaxLine>),
          softmax_schema("LogSoftmax", softmax_kernel<LogSoftmaxLine>), hardmax};
}

}  // namespace tessera::ops
