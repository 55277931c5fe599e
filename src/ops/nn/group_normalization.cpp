// InstanceNormalization and GroupNormalization: statistics over the elements of a group of channels
// of one batch item.

#include <fmt/format.h>

#include <cmath>

#include "ops/infer_util.h"
#include "ops/nn/nn_util.h"
#include "ops/nn/reals.h"
#include "ops/nn/schemas.h"
#include "ops/schema_util.h"
#include "ops/upgrade_util.h"

namespace tessera::ops::nn {
namespace {

constexpr float kDefaultEpsilon = 1e-5F;

Status check_operands(std::string_view op, const Shape& x, const Shape* scale, const Shape* bias,
                      std::int64_t groups) {
  if (x.size() < 2)
    return op_error(
        op, fmt::format("input 0: expected rank 2 or more (batch, channels, ...), found rank {}",
                        x.size()));
  const std::pair<std::string_view, const Shape*> parameters[] = {{"scale", scale}, {"bias", bias}};
  for (const auto& [name, shape] : parameters) {
    if (shape == nullptr) continue;
    if (shape->size() != 1)
      return op_error(op, fmt::format("{}: expected rank 1, found rank {}", name, shape->size()));
    TESSERA_TRY(require_size(op, fmt::format("elements of {}", name), x[1], "one for each channel",
                             (*shape)[0]));
  }
  if (groups < 1)
    return op_error(op, fmt::format("num_groups: expected at least 1, found {}", groups));
  if (const auto channels = x[1].constant(); channels && *channels % groups != 0) {
    return op_error(op, fmt::format("num_groups: expected a divisor of the {} channels, found {}",
                                    *channels, groups));
  }
  return {};
}

Status infer_normalization(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* x, tensor_input(context, 0));
  TESSERA_ASSIGN(const InferInput* scale, tensor_input(context, 1));
  TESSERA_ASSIGN(const InferInput* bias, tensor_input(context, 2));
  if (x->type.shape) {
    const auto shape_of = [](const InferInput* input) {
      return input->type.shape ? &*input->type.shape : nullptr;
    };
    TESSERA_TRY(check_operands(context.op.name, *x->type.shape, shape_of(scale), shape_of(bias),
                               context.attributes.get_int("num_groups", 1)));
  }
  return infer_same_as_first(context);
}

// Mean and 1 / sqrt(variance + epsilon) of a run of elements.
template <typename T>
std::pair<double, double> moments(const T* x, std::int64_t count, double epsilon) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(x[i]);
  const double mean = sum / static_cast<double>(count);
  double squares = 0;
  for (std::int64_t i = 0; i < count; ++i)
    squares += (static_cast<double>(x[i]) - mean) * (static_cast<double>(x[i]) - mean);
  return {mean, 1.0 / std::sqrt(squares / static_cast<double>(count) + epsilon)};
}

Status run(KernelContext& context, std::string_view op, std::int64_t groups) {
  TESSERA_ASSIGN(const TensorView* x, kernel_input(context, 0));
  TESSERA_ASSIGN(const TensorView* scale, kernel_input(context, 1));
  TESSERA_ASSIGN(const TensorView* bias, kernel_input(context, 2));
  const Shape scale_shape = to_shape(scale->dims);
  const Shape bias_shape = to_shape(bias->dims);
  const bool each_channel = groups == 0;  // InstanceNormalization: as many groups as channels
  if (each_channel && x->dims.size() > 1) groups = std::max<std::int64_t>(1, x->dims[1]);
  TESSERA_TRY(check_operands(op, to_shape(x->dims), &scale_shape, &bias_shape, groups));
  TESSERA_ASSIGN(const MutableTensorView y, context.output(0, x->dtype, x->dims));
  const std::int64_t plane = count_between(x->dims, 2, x->dims.size());
  const std::int64_t channels = x->dims[1] / groups;  // in a group
  const auto epsilon =
      static_cast<double>(context.attributes().get_float("epsilon", kDefaultEpsilon));
  const Reals<double> scales(*scale);
  const Reals<double> biases(*bias);
  return with_real(x->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    const Reals<T> xs(*x);
    RealResult<T> ys(y);
    T* out = ys.data();
    context.parallel_for(x->dims[0] * groups, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t g = begin; g < end; ++g) {
        const std::int64_t start = g * channels * plane;
        const auto [mean, inverse] = moments(xs.data() + start, channels * plane, epsilon);
        for (std::int64_t i = 0; i < channels * plane; ++i) {
          const std::int64_t c = g % groups * channels + i / plane;
          out[start + i] = static_cast<T>(
              (static_cast<double>(xs[start + i]) - mean) * inverse * scales[c] + biases[c]);
        }
      }
    });
    ys.finish();
    return {};
  });
}

Status instance_kernel(KernelContext& context) {
  return run(context, "InstanceNormalization", 0);
}

Status group_kernel(KernelContext& context) {
  return run(context, "GroupNormalization", context.attributes().get_int("num_groups", 1));
}

// GroupNormalization-18 had one scale and bias for each group: each is repeated for the channels of
// its group.
Operand repeat_for_channels(UpgradeBuilder& builder, Operand parameter, Operand per_group) {
  const Operand column =
      builder.node("Unsqueeze", {}, {parameter, constant_ints(builder, {1})}, 1)[0];
  Attributes concat;
  concat.set("axis", std::int64_t{0});
  const Operand shape =
      builder.node("Concat", std::move(concat), {constant_ints(builder, {1}), per_group}, 1)[0];
  const Operand expanded = builder.node("Expand", {}, {column, shape}, 1)[0];
  return builder.node("Reshape", {}, {expanded, constant_ints(builder, {-1})}, 1)[0];
}

Status upgrade_group_18(UpgradeNode& node, int, UpgradeBuilder& builder) {
  TESSERA_TRY(require_inputs(node, 3));
  TESSERA_ASSIGN(const std::int64_t groups, old_int(node, "num_groups", 1));
  if (groups < 1)
    return op_error(node.op_type, fmt::format("num_groups: expected at least 1, found {}", groups));
  Attributes slice;
  slice.set("start", std::int64_t{1});
  slice.set("end", std::int64_t{2});
  const Operand channels = builder.node("Shape", std::move(slice), {node.inputs[0]}, 1)[0];
  const Operand per_group =
      builder.node("Div", {}, {channels, constant_ints(builder, {groups})}, 1)[0];
  for (const std::size_t i : {std::size_t{1}, std::size_t{2}})
    node.inputs[i] = repeat_for_channels(builder, node.inputs[i], per_group);
  return {};
}

}  // namespace

std::vector<OpSchema> group_normalization_schemas() {
  OpSchema instance;
  instance.name = "InstanceNormalization";
  instance.versions = {1, 6, 22};
  instance.inputs = {required("input", "T"), required("scale", "T"), required("B", "T")};
  instance.outputs = {required("output", "T")};
  instance.attributes = {attr("epsilon", AttrType::kFloat)};
  instance.type_variables = {{"T", kFloatTypes}};
  instance.structure = Structure::kReduction;
  instance.infer = infer_normalization;
  instance.kernel = instance_kernel;
  instance.work = work_per_input_element<6>;
  instance.upgrades = {{1, 1, upgrade_consumed_inputs}};

  OpSchema group = instance;
  group.name = "GroupNormalization";
  group.versions = {18, 21};
  group.inputs = {required("X", "T"), required("scale", "T"), required("bias", "T")};
  group.outputs = {required("Y", "T")};
  group.attributes = {attr("epsilon", AttrType::kFloat),
                      required_attr("num_groups", AttrType::kInt),
                      attr("stash_type", AttrType::kInt)};
  group.kernel = group_kernel;
  group.upgrades = {{18, 18, upgrade_group_18}};
  return {instance, group};
}

}  // namespace tessera::ops::nn
