#include "passes/fold_batch_normalization.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "passes/float_elements.h"
#include "passes/rewrite.h"

namespace tessera::passes {
namespace {

constexpr const char* kPattern = "fold_batch_normalization";

// y = factor * x + shift, by channel.
struct Affine {
  std::vector<double> factor;
  std::vector<double> shift;
};

struct Folded {
  Tensor weights;
  Tensor bias;
};

template <typename... Args>
tl::unexpected<Error> declined(fmt::format_string<Args...> format, Args&&... args) {
  return fail(ErrorCode::kFailedPrecondition, fmt::format(format, std::forward<Args>(args)...));
}

Result<std::vector<double>> constant_elements(const ir::Graph& graph, const ir::Node& node,
                                              std::size_t index) {
  const std::string_view name = node.op->inputs[index].name;
  const Tensor* tensor = constant_of(graph, input_of(node, index));
  if (tensor == nullptr) return declined("input '{}' of '{}' is not a constant", name, node.name);
  if (!has_float_elements(tensor->dtype()))
    return declined("input '{}' of '{}' is {}", name, node.name, to_string(tensor->dtype()));
  return float_elements(tensor->view());
}

Result<Affine> affine_of(const ir::Graph& graph, const ir::Node& norm) {
  if (norm.attributes.get_int("training_mode", 0) != 0)
    return declined("'{}' is in training mode", norm.name);
  TESSERA_ASSIGN(const std::vector<double> scale, constant_elements(graph, norm, 1));
  TESSERA_ASSIGN(const std::vector<double> offset, constant_elements(graph, norm, 2));
  TESSERA_ASSIGN(const std::vector<double> mean, constant_elements(graph, norm, 3));
  TESSERA_ASSIGN(const std::vector<double> variance, constant_elements(graph, norm, 4));
  if (offset.size() != scale.size() || mean.size() != scale.size() ||
      variance.size() != scale.size()) {
    return declined("the statistics of '{}' differ in size", norm.name);
  }
  const double epsilon = norm.attributes.get_float("epsilon", 1e-5F);
  Affine affine;
  for (std::size_t c = 0; c < scale.size(); ++c) {
    affine.factor.push_back(scale[c] / std::sqrt(variance[c] + epsilon));
    affine.shift.push_back(offset[c] - mean[c] * affine.factor[c]);
  }
  return affine;
}

// ---- Weights ------------------------------------------------------------------------------------

// The weights as runs of consecutive elements that belong to one output channel.
struct Runs {
  std::size_t length = 1;
  std::size_t per_row = 1;  // runs of one input channel (a row): channels that follow each other
  std::size_t rows = 1;     // input channels of a group; the next group has the next channels
};

Runs runs_of(const ir::Node& node, const Dims& dims) {
  const auto size = [&](std::size_t axis) { return static_cast<std::size_t>(dims[axis]); };
  std::size_t window = 1;
  for (std::size_t axis = 2; axis < dims.size(); ++axis) window *= size(axis);
  if (is_op(node, "Conv")) return {size(1) * window, size(0), 1};
  if (is_op(node, "Gemm")) {
    const bool transposed = node.attributes.get_int("transB", 0) != 0;
    return transposed ? Runs{size(1), size(0), 1} : Runs{1, size(1), size(0)};
  }
  // ConvTranspose: [C, M / group, ...].
  const auto groups = static_cast<std::size_t>(node.attributes.get_int("group", 1));
  return {window, size(1), size(0) / groups};
}

std::size_t channel_of(const Runs& runs, std::size_t run) {
  return run / (runs.per_row * runs.rows) * runs.per_row + run % runs.per_row;
}

std::size_t channel_count(const ir::Node& node, const Dims& dims) {
  if (is_op(node, "Conv")) return static_cast<std::size_t>(dims[0]);
  if (is_op(node, "Gemm"))
    return static_cast<std::size_t>(dims[node.attributes.get_int("transB", 0) != 0 ? 0 : 1]);
  return static_cast<std::size_t>(dims[1] * node.attributes.get_int("group", 1));
}

// Whether `rounded` can stand for `value`: finite, and not lost to zero.
bool holds(double value, double rounded) {
  return std::isfinite(rounded) && (rounded != 0 || value == 0);
}

// The largest error of rounding to a dtype, relative to the number.
double unit_roundoff(DType dtype) {
  switch (dtype) {
    case DType::kFp16: return 0x1p-11;
    case DType::kBf16: return 0x1p-8;
    case DType::kFp64: return 0x1p-53;
    default: return 0x1p-24;
  }
}

tl::unexpected<Error> out_of_range(DType dtype, double value, std::string_view what,
                                   std::size_t channel) {
  const double rounded = round_to(dtype, value);
  const char* loss = !std::isfinite(rounded) ? "leaves the range of"
                     : rounded == 0          ? "becomes zero in"
                                             : "loses digits in";
  return declined("a folded {} of channel {}, {:.6g}, {} {}", what, channel, value, loss,
                  to_string(dtype));
}

Result<Tensor> scaled_weights(const ir::Graph& graph, const ir::Node& node, const Affine& affine) {
  TESSERA_ASSIGN(std::vector<double> elements, constant_elements(graph, node, 1));
  const Tensor& weights = *constant_of(graph, node.inputs[1]);
  const std::size_t channels = channel_count(node, weights.dims());
  if (channels != affine.factor.size())
    return declined("expected {} channels, found {}", channels, affine.factor.size());
  const Runs runs = runs_of(node, weights.dims());
  std::vector<double> largest(channels, 0);  // of each channel
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const std::size_t channel = channel_of(runs, i / runs.length);
    elements[i] *= affine.factor[channel];
    largest[channel] = std::max(largest[channel], std::abs(elements[i]));
  }
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const std::size_t channel = channel_of(runs, i / runs.length);
    const double rounded = round_to(weights.dtype(), elements[i]);
    // What weights below the smallest normal number lose must be small against the sum that they
    // are a part of.
    if (!(std::abs(rounded - elements[i]) <= unit_roundoff(weights.dtype()) * largest[channel]))
      return out_of_range(weights.dtype(), elements[i], "weight", channel);
    elements[i] = rounded;
  }
  return from_float_elements(weights.dtype(), weights.dims(), elements);
}

// The bias by channel, zeros where there is none, times beta for Gemm.
Result<std::vector<double>> bias_by_channel(const ir::Graph& graph, const ir::Node& node,
                                            std::size_t channels) {
  if (input_of(node, 2) == ir::kNoValue) return std::vector<double>(channels, 0.0);
  TESSERA_ASSIGN(std::vector<double> elements, constant_elements(graph, node, 2));
  const Dims& dims = constant_of(graph, node.inputs[2])->dims();
  const bool by_channel =
      elements.size() == 1 ||
      (elements.size() == channels && dims.back() == static_cast<std::int64_t>(channels));
  if (!by_channel)
    return declined("input '{}' of '{}' does not go by channel", node.op->inputs[2].name,
                    node.name);
  elements.resize(channels, elements[0]);
  const double beta = is_op(node, "Gemm") ? node.attributes.get_float("beta", 1) : 1;
  for (double& element : elements) element *= beta;
  return elements;
}

Result<Folded> fold(const ir::Graph& graph, const ir::Node& node, const Affine& affine) {
  TESSERA_ASSIGN(Tensor weights, scaled_weights(graph, node, affine));
  const std::size_t channels = affine.factor.size();
  TESSERA_ASSIGN(std::vector<double> bias, bias_by_channel(graph, node, channels));
  for (std::size_t c = 0; c < channels; ++c) {
    const double shifted = bias[c] * affine.factor[c] + affine.shift[c];
    bias[c] = round_to(weights.dtype(), shifted);
    if (!holds(shifted, bias[c])) return out_of_range(weights.dtype(), shifted, "bias", c);
  }
  Tensor bias_tensor =
      from_float_elements(weights.dtype(), {static_cast<std::int64_t>(channels)}, bias);
  return Folded{std::move(weights), std::move(bias_tensor)};
}

// ---- The pattern --------------------------------------------------------------------------------

bool can_take(const ir::Node* node) {
  return is_op(node, "Conv") || is_op(node, "ConvTranspose") || is_op(node, "Gemm");
}

Status fold_into(ir::Graph& graph, ir::Node& node, ir::Node& norm) {
  const std::size_t readers = graph.use_count(norm.inputs[0]);
  if (readers != 1) return declined("the result of '{}' is read {} times", node.name, readers);
  TESSERA_ASSIGN(const Affine affine, affine_of(graph, norm));
  TESSERA_ASSIGN(Folded folded, fold(graph, node, affine));
  const ir::ValueId weights = graph.add_constant(graph.fresh_name(graph.value(node.inputs[1]).name),
                                                 std::move(folded.weights));
  const ir::ValueId bias =
      graph.add_constant(graph.fresh_name(node.name + "/bias"), std::move(folded.bias));
  if (!eliminate(graph, norm, node.outputs[0]))
    return declined("the statistics of '{}' are read", norm.name);
  graph.set_inputs(node, {node.inputs[0], weights, bias});
  node.attributes.erase("beta");
  return {};
}

}  // namespace

Result<bool> fold_batch_normalization(PassContext& context, ir::Graph& graph) {
  bool changed = false;
  for (const ir::NodeId id : node_ids(graph)) {
    ir::Node& norm = *graph.find_node(id);
    if (!is_op(norm, "BatchNormalization")) continue;
    ir::Node* node = graph.producer(norm.inputs[0]);
    if (!can_take(node)) continue;
    const std::vector<std::string> names = {node->name, norm.name};
    const Status folded = fold_into(graph, *node, norm);
    if (!folded) context.note(kPattern, names, folded.error().message);
    changed = changed || folded.has_value();
  }
  return changed;
}

}  // namespace tessera::passes
