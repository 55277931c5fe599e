// Recipes of reductions, softmax and normalisations.

#include <algorithm>

#include "random_models/recipes.h"

namespace tessera::random_models {
namespace {

bool reduce(Draft& draft, DType dtype, Node& node) {
  const std::string_view op = node.op->name;
  const bool logarithm = op == "ReduceLogSum";
  const bool small = op == "ReduceProd" || op == "ReduceSumSquare";
  node.inputs = {logarithm ? draft.operand(dtype, {}, {0.2, 4})
                 : small   ? draft.operand(dtype, {}, {-3, 3})
                           : draft.operand(dtype, {0, 5})};
  const std::size_t rank = draft.rank(node.inputs[0]);
  if (rank > 0 && draft.random().chance(0.75))
    node.inputs.push_back(draft.ints(some_axes(draft, rank, 1)));
  else if (draft.random().chance(0.3))
    node.inputs.push_back(draft.ints({}));
  maybe(draft, node, "keepdims", flag(draft), 0.6);
  maybe(draft, node, "noop_with_empty_axes", flag(draft), 0.25);
  node.outputs = {0};
  return true;
}

bool arg_reduce(Draft& draft, DType dtype, Node& node) {
  const ValueId x = draft.operand(dtype, {1, 4});
  maybe(draft, node, "axis", any_axis(draft, draft.rank(x)), 0.8);
  maybe(draft, node, "keepdims", flag(draft), 0.6);
  maybe(draft, node, "select_last_index", flag(draft));
  node.inputs = {x};
  node.outputs = {0};
  return true;
}

bool softmax(Draft& draft, DType dtype, Node& node) {
  const ValueId x = draft.operand(dtype, {1, 4});
  maybe(draft, node, "axis", any_axis(draft, draft.rank(x)), 0.7);
  node.inputs = {x};
  node.outputs = {0};
  return true;
}

// A tensor of rank 2 to 4 whose channel count is a number.
std::optional<ValueId> with_channels(Draft& draft, DType dtype, std::int64_t multiple = 1,
                                     std::size_t least_rank = 2) {
  for (int attempt = 0; attempt < 3; ++attempt) {
    const ValueId x = draft.operand(dtype, {least_rank, 5});
    const Size channels = draft.size(x, 1);
    if (is_fixed(channels) && channels[0] > 0 && channels[0] % multiple == 0) return x;
  }
  Sizes sizes = draft.draw_sizes(
      static_cast<std::size_t>(draft.random().integer(static_cast<std::int64_t>(least_rank), 4)));
  const std::int64_t channels = multiple * draft.random().integer(1, 3);
  sizes[1] = {channels, channels};
  return draft.fresh(dtype, sizes);
}

void epsilon(Draft& draft, Node& node) {
  maybe(draft, node, "epsilon", static_cast<float>(draft.random().real(1e-3, 0.1)), 0.6);
}

bool batch_normalization(Draft& draft, DType dtype, Node& node) {
  const auto x = with_channels(draft, dtype);
  if (!x) return false;
  const Dims dims = {draft.size(*x, 1)[0]};
  node.inputs = {*x, draft.weights(dtype, dims), draft.weights(dtype, dims),
                 draft.weights(dtype, dims), draft.weights(dtype, dims, {0.3, 2})};
  epsilon(draft, node);
  maybe(draft, node, "momentum", 0.8F, 0.2);
  maybe(draft, node, "training_mode", std::int64_t{0}, 0.2);
  node.outputs = {0};
  return true;
}

bool instance_normalization(Draft& draft, DType dtype, Node& node) {
  const auto x = with_channels(draft, dtype, 1, 3);
  if (!x) return false;
  const Dims dims = {draft.size(*x, 1)[0]};
  node.inputs = {*x, draft.weights(dtype, dims), draft.weights(dtype, dims)};
  epsilon(draft, node);
  node.outputs = {0};
  return true;
}

bool group_normalization(Draft& draft, DType dtype, Node& node) {
  const std::int64_t groups = draft.random().integer(1, 3);
  const auto x = with_channels(draft, dtype, groups, 3);
  if (!x) return false;
  const Dims dims = {draft.size(*x, 1)[0]};
  node.inputs = {*x, draft.weights(dtype, dims), draft.weights(dtype, dims)};
  node.attributes.set("num_groups", groups);
  epsilon(draft, node);
  maybe(draft, node, "stash_type", std::int64_t{1}, 0.3);
  node.outputs = {0};
  return true;
}

// The sizes from `axis` on, where they are numbers.
std::optional<Dims> trailing(Draft& draft, ValueId x, std::size_t axis) {
  Dims dims;
  for (std::size_t d = axis; d < draft.rank(x); ++d) {
    if (!is_fixed(draft.size(x, d))) return std::nullopt;
    dims.push_back(draft.size(x, d)[0]);
  }
  return dims;
}

bool layer_normalization(Draft& draft, DType dtype, Node& node) {
  const ValueId x = draft.operand(dtype, {1, 4});
  const std::int64_t axis = draft.random().chance(0.6) ? -1 : any_axis(draft, draft.rank(x));
  const auto dims = trailing(draft, x, from_front(axis, draft.rank(x)));
  if (!dims) return false;
  if (axis != -1 || draft.random().chance(0.4)) node.attributes.set("axis", axis);
  node.inputs = {x, draft.weights(dtype, *dims)};
  node.outputs = {0};
  if (node.op->name == "LayerNormalization") {
    if (draft.random().chance(0.6)) node.inputs.push_back(draft.weights(dtype, *dims));
    if (draft.random().chance(0.3))
      node.outputs.push_back(draft.random().chance(0.7) ? 0 : kOmitted);
    if (node.outputs.size() == 2 && draft.random().chance(0.6)) node.outputs.push_back(0);
    if (node.outputs.back() == kOmitted) node.outputs.pop_back();
  }
  epsilon(draft, node);
  maybe(draft, node, "stash_type", std::int64_t{1}, 0.3);
  return true;
}

bool lrn(Draft& draft, DType dtype, Node& node) {
  node.inputs = {draft.operand(dtype, {3, 4})};
  node.attributes.set("size", draft.random().integer(1, 4));
  maybe(draft, node, "alpha", static_cast<float>(draft.random().real(1e-4, 0.1)));
  maybe(draft, node, "beta", static_cast<float>(draft.random().real(0.3, 1)));
  maybe(draft, node, "bias", static_cast<float>(draft.random().real(1, 2)));
  node.outputs = {0};
  return true;
}

bool mean_variance(Draft& draft, DType dtype, Node& node) {
  const ValueId x = draft.operand(dtype, {4, 4});
  maybe(draft, node, "axes", some_axes(draft, 4, 1));
  node.inputs = {x};
  node.outputs = {0};
  return true;
}

bool lp_normalization(Draft& draft, DType dtype, Node& node) {
  const ValueId x = draft.operand(dtype, {1, 4});
  maybe(draft, node, "axis", any_axis(draft, draft.rank(x)));
  maybe(draft, node, "p", draft.random().integer(1, 2));
  node.inputs = {x};
  node.outputs = {0};
  return true;
}

constexpr Recipe kRecipes[] = {
    {"ArgMax", arg_reduce},
    {"ArgMin", arg_reduce},
    {"BatchNormalization", batch_normalization},
    {"GroupNormalization", group_normalization},
    {"Hardmax", softmax},
    {"InstanceNormalization", instance_normalization},
    {"LRN", lrn},
    {"LayerNormalization", layer_normalization},
    {"LogSoftmax", softmax},
    {"LpNormalization", lp_normalization},
    {"MeanVarianceNormalization", mean_variance},
    {"RMSNormalization", layer_normalization},
    {"ReduceL1", reduce},
    {"ReduceL2", reduce},
    {"ReduceLogSum", reduce},
    {"ReduceLogSumExp", reduce},
    {"ReduceMax", reduce},
    {"ReduceMean", reduce},
    {"ReduceMin", reduce},
    {"ReduceProd", reduce},
    {"ReduceSum", reduce},
    {"ReduceSumSquare", reduce},
    {"Softmax", softmax},
};

}  // namespace

std::span<const Recipe> reduce_recipes() {
  return kRecipes;
}

}  // namespace tessera::random_models
