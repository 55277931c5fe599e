// LayerNormalization and RMSNormalization: over all axes from `axis` on, scaled by operands that
// broadcast to the input.

#include <fmt/format.h>

#include <cmath>

#include "ops/infer_util.h"
#include "ops/nn/nn_util.h"
#include "ops/nn/reals.h"
#include "ops/nn/schemas.h"
#include "ops/schema_util.h"

namespace tessera::ops::nn {
namespace {

constexpr float kDefaultEpsilon = 1e-5F;

// A parameter broadcasts to the input in one direction only.
Status check_broadcasts(std::string_view op, std::string_view name, const Shape& parameter,
                        const Shape& x) {
  bool fits = parameter.size() <= x.size();
  for (std::size_t i = 0; fits && i < parameter.size(); ++i) {
    const auto have = parameter[parameter.size() - 1 - i].constant();
    const auto want = x[x.size() - 1 - i].constant();
    fits = !have || !want || *have == 1 || *have == *want;
  }
  if (fits) return {};
  return op_error(op, fmt::format("input '{}': expected a shape that broadcasts to {}, found {}",
                                  name, to_string(x), to_string(parameter)));
}

Result<DType> stash_dtype(std::string_view op, const Attributes& attributes) {
  const std::int64_t type =
      attributes.get_int("stash_type", static_cast<std::int64_t>(DType::kFp32));
  for (const DType dtype : {DType::kFp32, DType::kBf16, DType::kFp16, DType::kFp64}) {
    if (type == static_cast<std::int64_t>(dtype)) return dtype;
  }
  return op_error(
      op, fmt::format("stash_type: expected 1 (fp32), 16 (bf16), 10 (fp16) or 11 (fp64), found {}",
                      type));
}

Result<std::size_t> first_axis(const Attributes& attributes, std::size_t rank) {
  TESSERA_ASSIGN(const std::int64_t axis,
                 normalize_axis(attributes.get_int("axis", -1), static_cast<std::int64_t>(rank)));
  return static_cast<std::size_t>(axis);
}

Status infer(InferContext& context) {
  const std::string_view op = context.op.name;
  TESSERA_ASSIGN(const InferInput* x, tensor_input(context, 0));
  TESSERA_ASSIGN(const InferInput* scale, tensor_input(context, 1));
  TESSERA_ASSIGN(const DType stash, stash_dtype(op, context.attributes));
  std::optional<Shape> statistics;
  if (x->type.shape) {
    const Shape& shape = *x->type.shape;
    TESSERA_ASSIGN(const std::size_t axis, first_axis(context.attributes, shape.size()));
    statistics = shape;
    for (std::size_t d = axis; d < shape.size(); ++d) (*statistics)[d] = Dim(1);
    for (std::size_t i = 1; i < context.inputs.size(); ++i) {
      if (!has_input(context, i) || !context.inputs[i].type.shape) continue;
      TESSERA_TRY(
          check_broadcasts(op, context.op.inputs[i].name, *context.inputs[i].type.shape, shape));
    }
  }
  set_output(context, 0, op == "RMSNormalization" ? scale->type.dtype : x->type.dtype,
             x->type.shape);
  set_output(context, 1, stash, statistics);
  set_output(context, 2, stash, std::move(statistics));
  return {};
}

struct Line {
  double mean;
  double inverse;  // 1 / sqrt(variance + epsilon)
};

// Statistics of `count` elements; around zero instead of the mean for RMSNormalization.
template <typename T>
Line statistics_of(const T* x, std::int64_t count, double epsilon, bool centred) {
  double mean = 0;
  if (centred) {
    for (std::int64_t i = 0; i < count; ++i) mean += static_cast<double>(x[i]);
    mean /= static_cast<double>(count);
  }
  double squares = 0;
  for (std::int64_t i = 0; i < count; ++i)
    squares += (static_cast<double>(x[i]) - mean) * (static_cast<double>(x[i]) - mean);
  return {mean, 1.0 / std::sqrt(squares / static_cast<double>(count) + epsilon)};
}

// Offset of the parameter's element for element `index` of the input.
std::int64_t parameter_offset(std::int64_t index, const Dims& dims, const Dims& strides) {
  std::int64_t offset = 0;
  for (std::size_t d = dims.size(); d-- > 0;) {
    offset += index % dims[d] * strides[d];
    index /= dims[d];
  }
  return offset;
}

struct Parameter {
  Parameter(const TensorView* view, const Dims& dims)
      : values(view == nullptr ? TensorView{DType::kFp64, {0}, nullptr} : *view) {
    if (view != nullptr) strides = broadcast_strides(view->dims, dims);
  }
  Reals<double> values;
  Dims strides;  // empty: no parameter
  [[nodiscard]] double at(std::int64_t index, const Dims& dims, double fallback) const {
    return strides.empty() ? fallback : values[parameter_offset(index, dims, strides)];
  }
};

Status store_statistics(KernelContext& context, DType dtype, const Dims& dims,
                        const std::vector<Line>& lines) {
  for (std::size_t index = 1; index < std::min<std::size_t>(3, context.output_count()); ++index) {
    TESSERA_ASSIGN(const MutableTensorView view, context.output(index, dtype, dims));
    RealResult<double> out(view);
    for (std::size_t i = 0; i < lines.size(); ++i)
      out.data()[i] = index == 1 ? lines[i].mean : lines[i].inverse;
    out.finish();
  }
  return {};
}

Status run(KernelContext& context, std::string_view op, bool centred) {
  TESSERA_ASSIGN(const TensorView* x, kernel_input(context, 0));
  TESSERA_ASSIGN(const TensorView* scale, kernel_input(context, 1));
  const TensorView* bias = context.input(2);
  const Dims& dims = x->dims;
  TESSERA_ASSIGN(const std::size_t axis, first_axis(context.attributes(), dims.size()));
  TESSERA_ASSIGN(const DType stash, stash_dtype(op, context.attributes()));
  for (const auto& [view, name] : {std::pair{scale, "scale"}, std::pair{bias, "B"}}) {
    if (view != nullptr)
      TESSERA_TRY(check_broadcasts(op, name, to_shape(view->dims), to_shape(dims)));
  }
  TESSERA_ASSIGN(const MutableTensorView y,
                 context.output(0, centred ? x->dtype : scale->dtype, dims));
  const std::int64_t count = count_between(dims, axis, dims.size());
  const auto epsilon =
      static_cast<double>(context.attributes().get_float("epsilon", kDefaultEpsilon));
  const Parameter scales(scale, dims);
  const Parameter biases(bias, dims);
  const Reals<double> xs(*x);
  RealResult<double> ys(y);
  std::vector<Line> lines(static_cast<std::size_t>(count_between(dims, 0, axis)));
  context.parallel_for(static_cast<std::int64_t>(lines.size()),
                       std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, count)),
                       [&](std::int64_t begin, std::int64_t end) {
                         for (std::int64_t line = begin; line < end; ++line) {
                           const Line s =
                               statistics_of(xs.data() + line * count, count, epsilon, centred);
                           lines[static_cast<std::size_t>(line)] = s;
                           for (std::int64_t i = line * count; i < (line + 1) * count; ++i) {
                             ys.data()[i] = (xs[i] - s.mean) * s.inverse * scales.at(i, dims, 1) +
                                            biases.at(i, dims, 0);
                           }
                         }
                       });
  ys.finish();
  Dims reduced = dims;
  for (std::size_t d = axis; d < reduced.size(); ++d) reduced[d] = 1;
  return store_statistics(context, stash, reduced, lines);
}

Status layer_kernel(KernelContext& context) {
  return run(context, "LayerNormalization", true);
}
Status rms_kernel(KernelContext& context) {
  return run(context, "RMSNormalization", false);
}

}  // namespace

std::vector<OpSchema> layer_normalization_schemas() {
  OpSchema layer;
  layer.name = "LayerNormalization";
  layer.versions = {17};
  layer.inputs = {required("X", "T"), required("Scale", "T"), optional("B", "T")};
  layer.outputs = {required("Y", "T"), optional("Mean", "U"), optional("InvStdDev", "U")};
  layer.attributes = {attr("axis", AttrType::kInt), attr("epsilon", AttrType::kFloat),
                      attr("stash_type", AttrType::kInt)};
  layer.type_variables = {{"T", kFloatTypes}, {"U", kFloatTypes}};
  layer.structure = Structure::kReduction;
  layer.infer = infer;
  layer.kernel = layer_kernel;
  layer.work = work_per_input_element<7>;
  layer.in_place_inputs = {0};

  OpSchema rms = layer;
  rms.name = "RMSNormalization";
  rms.versions = {23};
  rms.inputs = {required("X", "T"), required("scale", "V")};
  rms.outputs = {required("Y", "V")};
  rms.type_variables = {{"T", kFloatTypes}, {"V", kFloatTypes}};
  rms.kernel = rms_kernel;
  rms.work = work_per_input_element<4>;
  return {layer, rms};
}

}  // namespace tessera::ops::nn
