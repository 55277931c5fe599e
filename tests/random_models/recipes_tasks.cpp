// Recipes of losses, detections and caches, and of a few operators that stand alone.

#include <algorithm>

#include "random_models/recipes.h"

namespace tessera::random_models {
namespace {

bool bit_cast(Draft& draft, DType dtype, Node& node) {
  std::vector<DType> as_wide;
  for (const DType other : kDrawnDtypes)
    if (bits_of(other) == bits_of(dtype) && bits_of(other) > 0 &&
        (other != DType::kBool || dtype == DType::kBool))
      as_wide.push_back(other);  // bits of a bool other than 0 and 1 mean nothing
  node.inputs = {draft.operand(dtype)};
  node.attributes.set("to", static_cast<std::int64_t>(draft.random().pick(as_wide)));
  node.outputs = {0};
  return true;
}

bool determinant(Draft& draft, DType dtype, Node& node) {
  Sizes sizes = draft.draw_sizes(draft.random().index(2));
  const std::int64_t size = draft.random().integer(1, 4);
  sizes.insert(sizes.end(), {number(size), number(size)});
  node.inputs = {draft.fresh(dtype, sizes)};
  node.outputs = {0};
  return true;
}

bool center_crop_pad(Draft& draft, DType dtype, Node& node) {
  const ValueId x = draft.operand(dtype, {1, 4});
  std::vector<std::int64_t> axes = some_axes(draft, draft.rank(x), 1);
  const bool all = draft.random().chance(0.3);
  if (!all) node.attributes.set("axes", axes);
  std::vector<double> sizes;
  for (std::size_t i = 0; i < (all ? draft.rank(x) : axes.size()); ++i)
    sizes.push_back(static_cast<double>(draft.random().integer(1, 5)));
  const auto count = static_cast<std::int64_t>(sizes.size());
  node.inputs = {x, draft.constant(constant_tensor(one_of(draft, {DType::kInt64, DType::kInt32}),
                                                   {count}, sizes))};
  node.outputs = {0};
  return true;
}

bool tensor_scatter(Draft& draft, DType dtype, Node& node) {
  const std::size_t rank = draft.random().chance(0.5) ? 3 : 4;
  Dims dims;
  for (std::size_t d = 0; d < rank; ++d) dims.push_back(draft.random().integer(1, 4));
  const auto front =
      static_cast<std::size_t>(draft.random().integer(1, static_cast<std::int64_t>(rank) - 1));
  const bool circular = draft.random().chance(0.5);
  Sizes cache;
  for (const std::int64_t size : dims) cache.push_back(number(size));
  const std::int64_t length = draft.random().integer(1, dims[front]);
  Sizes update = cache;
  update[front] = number(length);
  node.inputs = {draft.fresh(dtype, cache), draft.fresh(dtype, update)};
  if (draft.random().chance(0.7)) {
    std::vector<std::int64_t> places;
    for (std::int64_t i = 0; i < dims[0]; ++i)
      places.push_back(
          draft.random().integer(0, circular ? dims[front] - 1 : dims[front] - length));
    node.inputs.push_back(draft.ints(places));
  }
  if (front + 2 != rank || draft.random().chance(0.5))
    node.attributes.set("axis", draft.random().chance(0.5) ? static_cast<std::int64_t>(front)
                                                           : static_cast<std::int64_t>(front) -
                                                                 static_cast<std::int64_t>(rank));
  if (circular || draft.random().chance(0.3))
    node.attributes.set("mode", std::string(circular ? "circular" : "linear"));
  node.outputs = {0};
  return true;
}

bool loss(Draft& draft, DType dtype, Node& node) {
  const std::int64_t classes = draft.random().integer(1, 5);
  Sizes sizes = draft.draw_sizes(1 + draft.random().index(3));
  const Sizes labels = sizes;
  sizes.insert(sizes.begin() + 1, number(classes));
  const DType index = one_of(draft, {DType::kInt64, DType::kInt32});
  node.inputs = {draft.fresh(dtype, sizes),
                 draft.fresh(index, labels, {0, static_cast<double>(classes) - 0.5})};
  if (draft.random().chance(0.5))
    node.inputs.push_back(draft.weights(dtype, {classes}, {0.2, 1.5}));
  maybe(draft, node, "reduction", word(draft, {"none", "sum", "mean"}), 0.7);
  maybe(draft, node, "ignore_index", draft.random().integer(-1, classes - 1), 0.4);
  node.outputs = {0};
  if (node.op->name == "SoftmaxCrossEntropyLoss" && draft.random().chance(0.5))
    node.outputs.push_back(0);
  return true;
}

bool non_max_suppression(Draft& draft, DType dtype, Node& node) {
  const Size batch = draft.draw_sizes(1)[0];
  const Size count = number(draft.random().integer(1, 6));
  const Size classes = number(draft.random().integer(1, 3));
  node.inputs = {draft.fresh(dtype, {batch, count, number(4)}, {0, 3}),
                 draft.fresh(dtype, {batch, classes, count}, {0, 1}), kOmitted, kOmitted, kOmitted};
  const auto most = static_cast<double>(draft.random().integer(0, 4));
  if (draft.random().chance(0.9))
    node.inputs[2] = draft.random().chance(0.5) ? draft.scalar(DType::kInt64, most)
                                                : draft.ints({static_cast<std::int64_t>(most)});
  if (draft.random().chance(0.7)) node.inputs[3] = draft.scalar(dtype, draft.random().real(0, 1));
  if (draft.random().chance(0.5)) node.inputs[4] = draft.scalar(dtype, draft.random().real(0, 0.6));
  while (node.inputs.back() == kOmitted) node.inputs.pop_back();
  maybe(draft, node, "center_point_box", flag(draft));
  node.outputs = {0};
  return true;
}

bool linear_attention(Draft& draft, DType dtype, Node& node) {
  const std::int64_t heads = draft.random().integer(1, 2);
  const std::int64_t shared = draft.random().integer(1, 2);
  const std::int64_t key = draft.random().integer(1, 3);
  const std::int64_t value = draft.random().integer(1, 3);
  const Size batch = draft.draw_sizes(1)[0];
  const Size length = draft.draw_sizes(1)[0];
  const auto rows = [&](std::int64_t width, Range range = {-1, 1}) {
    return draft.fresh(dtype, {batch, length, number(width)}, range);
  };
  const std::string rule = word(draft, {"linear", "gated", "delta", "gated_delta"});
  const bool decays = rule.starts_with("gated");
  const bool corrects = rule.ends_with("delta");
  node.inputs = {rows(heads * shared * key), rows(heads * key), rows(heads * value)};
  node.inputs.resize(6, kOmitted);
  const DType state = draft.random().chance(0.7) ? dtype : DType::kFp32;
  if (draft.random().chance(0.5))
    node.inputs[3] =
        draft.fresh(state, {batch, number(heads), number(key), number(value)}, {-1, 1});
  if (decays) node.inputs[4] = rows(draft.random().chance(0.5) ? heads : heads * key, {-1, 0});
  if (corrects) node.inputs[5] = rows(draft.random().chance(0.5) ? heads : 1, {0, 1});
  while (node.inputs.back() == kOmitted) node.inputs.pop_back();
  if (rule != "gated_delta" || draft.random().chance(0.5)) node.attributes.set("update_rule", rule);
  node.attributes.set("q_num_heads", heads * shared);
  node.attributes.set("kv_num_heads", heads);
  maybe(draft, node, "scale", static_cast<float>(draft.random().real(0.2, 1)), 0.4);
  maybe(draft, node, "chunk_size", std::int64_t{2}, 0.3);
  node.outputs = {0, 0};
  return true;
}

constexpr Recipe kRecipes[] = {
    {"BitCast", bit_cast},
    {"CenterCropPad", center_crop_pad},
    {"Det", determinant},
    {"LinearAttention", linear_attention},
    {"NegativeLogLikelihoodLoss", loss},
    {"NonMaxSuppression", non_max_suppression},
    {"SoftmaxCrossEntropyLoss", loss},
    {"TensorScatter", tensor_scatter},
};

}  // namespace

std::span<const Recipe> task_recipes() {
  return kRecipes;
}

}  // namespace tessera::random_models
