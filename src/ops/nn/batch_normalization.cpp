// BatchNormalization: (x - mean) / sqrt(variance + epsilon) * scale + bias for each channel, with
// the statistics that are given or, in training mode, those of the batch.

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

constexpr std::string_view kName = "BatchNormalization";
constexpr std::string_view kParameters[] = {"scale", "B", "input_mean", "input_var"};
constexpr float kDefaultEpsilon = 1e-5F;
constexpr float kDefaultMomentum = 0.9F;

// A single dimension is a batch of one channel.
Dim channels_of(const Shape& x) {
  return x.size() > 1 ? x[1] : Dim(1);
}

Status check_parameter(std::string_view name, const Shape& shape, const Dim& channels) {
  if (shape.size() != 1)
    return op_error(kName,
                    fmt::format("input '{}': expected rank 1, found rank {}", name, shape.size()));
  return require_size(kName, fmt::format("elements of input '{}'", name), channels,
                      "one for each channel", shape[0]);
}

Status infer_batch_normalization(InferContext& context) {
  TESSERA_ASSIGN(const InferInput* x, tensor_input(context, 0));
  if (x->type.shape && x->type.shape->empty())
    return op_error(kName, "input 'X': expected rank 1 or more, found rank 0");
  std::optional<Shape> channel_shape;
  if (x->type.shape) channel_shape = Shape{channels_of(*x->type.shape)};
  for (std::size_t i = 0; i < 4; ++i) {
    TESSERA_ASSIGN(const InferInput* parameter, tensor_input(context, i + 1));
    if (channel_shape && parameter->type.shape) {
      TESSERA_TRY(check_parameter(kParameters[i], *parameter->type.shape, (*channel_shape)[0]));
    }
  }
  if (context.attributes.get_int("training_mode", 0) == 0 && context.outputs.size() > 1) {
    return op_error(kName, fmt::format("training_mode: expected 1 for {} outputs, found 0",
                                       context.outputs.size()));
  }
  set_output(context, 0, x->type.dtype, x->type.shape);
  const DType statistics = context.inputs[3].type.dtype;
  set_output(context, 1, statistics, channel_shape);
  set_output(context, 2, statistics, channel_shape);
  return {};
}

struct Channels {
  std::int64_t batch, channels, plane;
};

struct Statistics {
  std::vector<double> mean, variance;
};

template <typename T>
Statistics batch_statistics(const T* x, const Channels& sizes) {
  Statistics result;
  const auto count = static_cast<double>(sizes.batch * sizes.plane);
  for (std::int64_t c = 0; c < sizes.channels; ++c) {
    const auto sum_of = [&](const auto& term) {
      double sum = 0;
      for (std::int64_t n = 0; n < sizes.batch; ++n) {
        const T* plane = x + (n * sizes.channels + c) * sizes.plane;
        for (std::int64_t i = 0; i < sizes.plane; ++i) sum += term(static_cast<double>(plane[i]));
      }
      return sum;
    };
    const double mean = sum_of([](double v) { return v; }) / count;
    result.mean.push_back(mean);
    result.variance.push_back(sum_of([mean](double v) { return (v - mean) * (v - mean); }) / count);
  }
  return result;
}

Status store_running(KernelContext& context, std::size_t index, const TensorView& old,
                     const std::vector<double>& now, double momentum) {
  if (context.output_count() <= index) return {};
  TESSERA_ASSIGN(const MutableTensorView out, context.output(index, old.dtype, old.dims));
  return with_real(old.dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    const Reals<T> before(old);
    RealResult<T> after(out);
    for (std::size_t c = 0; c < now.size(); ++c) {
      after.data()[c] = static_cast<T>(static_cast<double>(before.data()[c]) * momentum +
                                       now[c] * (1 - momentum));
    }
    after.finish();
    return {};
  });
}

template <typename T>
void normalize(KernelContext& context, const T* x, const Channels& sizes,
               const Statistics& statistics, const Reals<double>& scale, const Reals<double>& bias,
               double epsilon, T* y) {
  const std::int64_t grain =
      std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, sizes.plane));
  context.parallel_for(
      sizes.batch * sizes.channels, grain, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t p = begin; p < end; ++p) {
          const std::int64_t c = p % sizes.channels;
          const auto at = static_cast<std::size_t>(c);
          const double factor = scale[c] / std::sqrt(statistics.variance[at] + epsilon);
          for (std::int64_t i = p * sizes.plane; i < (p + 1) * sizes.plane; ++i) {
            y[i] = static_cast<T>((static_cast<double>(x[i]) - statistics.mean[at]) * factor +
                                  bias[c]);
          }
        }
      });
}

Status batch_normalization_kernel(KernelContext& context) {
  const TensorView* in[5] = {};
  for (std::size_t i = 0; i < 5; ++i) {
    TESSERA_ASSIGN(in[i], kernel_input(context, i));
  }
  const Dims& dims = in[0]->dims;
  if (dims.empty()) return op_error(kName, "input 'X': expected rank 1 or more, found rank 0");
  const Channels sizes{dims[0], dims.size() > 1 ? dims[1] : 1,
                       count_between(dims, 2, std::max<std::size_t>(2, dims.size()))};
  for (std::size_t i = 0; i < 4; ++i)
    TESSERA_TRY(check_parameter(kParameters[i], to_shape(in[i + 1]->dims), Dim(sizes.channels)));
  TESSERA_ASSIGN(const MutableTensorView y, context.output(0, in[0]->dtype, dims));
  const Attributes& attributes = context.attributes();
  const bool training = attributes.get_int("training_mode", 0) != 0;
  const auto epsilon = static_cast<double>(attributes.get_float("epsilon", kDefaultEpsilon));
  const auto momentum = static_cast<double>(attributes.get_float("momentum", kDefaultMomentum));
  const Reals<double> scale(*in[1]);
  const Reals<double> bias(*in[2]);
  return with_real(in[0]->dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    const Reals<T> x(*in[0]);
    RealResult<T> result(y);
    Statistics statistics;
    if (training) {
      statistics = batch_statistics(x.data(), sizes);
      TESSERA_TRY(store_running(context, 1, *in[3], statistics.mean, momentum));
      TESSERA_TRY(store_running(context, 2, *in[4], statistics.variance, momentum));
    } else {
      const Reals<double> mean(*in[3]);
      const Reals<double> variance(*in[4]);
      statistics = {{mean.data(), mean.data() + sizes.channels},
                    {variance.data(), variance.data() + sizes.channels}};
    }
    normalize(context, x.data(), sizes, statistics, scale, bias, epsilon, result.data());
    result.finish();
    return {};
  });
}

bool uses_output(const UpgradeNode& node, std::size_t index) {
  return index < node.output_count && (index >= node.output_used.size() || node.output_used[index]);
}

// spatial = 0: statistics for each element of [C, D1, ...], which broadcast over the batch.
Status build_per_element(UpgradeNode& node, UpgradeBuilder& builder) {
  TESSERA_ASSIGN(const float epsilon, old_float(node, "epsilon", kDefaultEpsilon));
  TESSERA_ASSIGN(const DType dtype,
                 known_dtype(builder, node.inputs[4], "BatchNormalization with spatial = 0"));
  const auto op = [&](std::string name, std::vector<Operand> inputs) {
    return builder.node(std::move(name), {}, std::move(inputs), 1)[0];
  };
  const Operand centred = op("Sub", {node.inputs[0], node.inputs[3]});
  const Operand shifted =
      op("Add", {node.inputs[4], constant_float(builder, dtype, static_cast<double>(epsilon))});
  const Operand unit = op("Div", {centred, op("Sqrt", {shifted})});
  std::vector<Operand> results(node.output_count, kNoOperand);
  results[0] = op("Add", {op("Mul", {unit, node.inputs[1]}), node.inputs[2]});
  node.replacement = std::move(results);
  return {};
}

// Training mode with at most Y, mean and variance: the outputs saved_mean and saved_var of old
// versions must be unused.
Status build_training(UpgradeNode& node, UpgradeBuilder& builder) {
  for (std::size_t i = 3; i < node.output_count; ++i) {
    if (uses_output(node, i)) {
      return fail(
          ErrorCode::kUnimplemented,
          fmt::format("{}: the outputs saved_mean and saved_var of training are not supported",
                      kName));
    }
  }
  node.attributes.set("training_mode", std::int64_t{1});
  if (node.output_count <= 3) return {};
  std::vector<Operand> results = builder.node(node.op_type, node.attributes, node.inputs, 3);
  results.resize(node.output_count, kNoOperand);
  node.replacement = std::move(results);
  return {};
}

// Versions 1 to 13: training where is_test is 0 (1, 6), or where more outputs than Y are used (7,
// 9).
Status upgrade_batch_normalization(UpgradeNode& node, int opset, UpgradeBuilder& builder) {
  TESSERA_TRY(require_inputs(node, 5));
  TESSERA_ASSIGN(const std::int64_t is_test, old_int(node, "is_test", 0));
  TESSERA_ASSIGN(const std::int64_t spatial, old_int(node, "spatial", 1));
  bool training = false;
  for (std::size_t i = 1; i < node.output_count; ++i) training = training || uses_output(node, i);
  if (opset < 7) training = is_test == 0;
  erase_attributes(node, {"consumed_inputs", "is_test", "spatial"});
  if (spatial == 0) {
    if (!training) return build_per_element(node, builder);
    return fail(ErrorCode::kUnimplemented,
                fmt::format("{}: training with spatial = 0 is not supported", kName));
  }
  if (training) return build_training(node, builder);
  if (node.output_count == 1) return {};
  std::vector<Operand> results = builder.node(node.op_type, node.attributes, node.inputs, 1);
  results.resize(node.output_count, kNoOperand);
  node.replacement = std::move(results);
  return {};
}

}  // namespace

OpSchema batch_normalization_schema() {
  OpSchema op;
  op.name = kName;
  op.versions = {1, 6, 7, 9, 14, 15};
  op.inputs = {required("X", "T"), required("scale", "T1"), required("B", "T1"),
               required("input_mean", "T2"), required("input_var", "T2")};
  op.outputs = {required("Y", "T"), optional("running_mean", "T2"), optional("running_var", "T2")};
  op.attributes = {attr("epsilon", AttrType::kFloat), attr("momentum", AttrType::kFloat),
                   attr("training_mode", AttrType::kInt)};
  op.type_variables = {{"T", kFloatTypes}, {"T1", kFloatTypes}, {"T2", kFloatTypes}};
  op.structure = Structure::kElementwise;
  op.infer = infer_batch_normalization;
  op.kernel = batch_normalization_kernel;
  op.work = work_per_input_element<2>;
  op.upgrades = {{1, 13, upgrade_batch_normalization}};
  op.in_place_inputs = {0};
  return op;
}

}  // namespace tessera::ops::nn
