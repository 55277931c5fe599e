// Recipes of views, of shape arithmetic, and of what makes tensors from nothing.

#include <algorithm>

#include "ops/op_table.h"
#include "random_models/recipes.h"

namespace tessera::random_models {
namespace {

// The sizes of `x` as the model computes them, from axis `from` to `to`.
std::optional<ValueId> shape_of(Draft& draft, ValueId x, std::size_t from, std::size_t to) {
  ops::Attributes attributes;
  attributes.set("start", static_cast<std::int64_t>(from));
  attributes.set("end", static_cast<std::int64_t>(to));
  return helper(draft, "Shape", {x}, std::move(attributes));
}

std::optional<ValueId> joined(Draft& draft, ValueId a, ValueId b) {
  ops::Attributes attributes;
  attributes.set("axis", std::int64_t{0});
  return helper(draft, "Concat", {a, b}, std::move(attributes));
}

bool all_fixed(const Sizes& sizes) {
  return std::ranges::all_of(sizes, is_fixed);
}

// Two factors of the last dim, or one for it and the one before.
std::vector<std::int64_t> regrouped(Draft& draft, const Sizes& sizes) {
  std::vector<std::int64_t> target;
  for (const Size& size : sizes) target.push_back(size[0]);
  if (target.empty()) return {1};
  const std::size_t at = draft.random().index(target.size());
  if (draft.random().chance(0.5) && at + 1 < target.size()) {
    target[at] *= target[at + 1];
    target.erase(target.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  } else {
    const std::int64_t factor = target[at] % 2 == 0 && target[at] > 0 ? 2 : 1;
    target[at] /= factor;
    target.insert(target.begin() + static_cast<std::ptrdiff_t>(at), factor);
  }
  return target;
}

// Keeps the first dims by zeros and joins the rest.
std::vector<std::int64_t> kept_and_rest(Draft& draft, std::size_t rank) {
  std::vector<std::int64_t> target(
      static_cast<std::size_t>(draft.random().integer(0, static_cast<std::int64_t>(rank))), 0);
  target.push_back(-1);
  return target;
}

bool reshape(Draft& draft, DType dtype, Node& node) {
  const ValueId x = draft.operand(dtype, {0, 5});
  const Sizes sizes = draft.sizes(x);
  ValueId target = kOmitted;
  if (draft.random().chance(0.3) && !sizes.empty()) {
    const auto kept = static_cast<std::size_t>(
        draft.random().integer(1, static_cast<std::int64_t>(sizes.size())));
    const auto front = shape_of(draft, x, 0, kept);
    const auto whole = front ? joined(draft, *front, draft.ints({-1})) : std::nullopt;
    if (!whole) return false;
    target = *whole;
  } else if (all_fixed(sizes) && draft.random().chance(0.6)) {
    std::vector<std::int64_t> wanted = regrouped(draft, sizes);
    if (draft.random().chance(0.4)) wanted[draft.random().index(wanted.size())] = -1;
    target = draft.ints(wanted);
  } else {
    target = draft.ints(kept_and_rest(draft, sizes.size()));
  }
  maybe(draft, node, "allowzero", flag(draft), 0.15);
  node.inputs = {x, target};
  node.outputs = {0};
  return true;
}

bool flatten(Draft& draft, DType dtype, Node& node) {
  const ValueId x = draft.operand(dtype, {0, 5});
  const auto rank = static_cast<std::int64_t>(draft.rank(x));
  maybe(draft, node, "axis", draft.random().integer(-rank, rank), 0.7);
  node.inputs = {x};
  node.outputs = {0};
  return true;
}

bool squeeze(Draft& draft, DType dtype, Node& node) {
  ValueId x = draft.operand(dtype, {0, 5});
  std::vector<std::int64_t> ones;
  const Sizes sizes = draft.sizes(x);
  for (std::size_t axis = 0; axis < sizes.size(); ++axis)
    if (sizes[axis] == Size{1, 1})
      ones.push_back(static_cast<std::int64_t>(axis) -
                     (draft.random().chance(0.3) ? static_cast<std::int64_t>(sizes.size()) : 0));
  node.inputs = {x};
  // Without axes the rank would hang on dims that are 1 at one size only.
  const bool surely = std::ranges::all_of(sizes, [](const Size& size) { return is_fixed(size); });
  if (!surely || draft.random().chance(0.7)) {
    if (ones.empty()) {
      const auto rank = static_cast<std::size_t>(draft.random().integer(0, 3));
      Sizes fresh = draft.draw_sizes(rank);
      const auto at = draft.random().integer(0, static_cast<std::int64_t>(rank));
      fresh.insert(fresh.begin() + at, {1, 1});
      node.inputs = {draft.fresh(dtype, fresh)};
      ones = {at};
    }
    node.inputs.push_back(draft.ints(ones));
  }
  node.outputs = {0};
  return true;
}

bool unsqueeze(Draft& draft, DType dtype, Node& node) {
  const ValueId x = draft.operand(dtype, {0, 4});
  const std::size_t added = draft.random().chance(0.3) ? 2 : 1;
  std::vector<std::int64_t> axes = some_axes(draft, draft.rank(x) + added, added);
  axes.resize(added);
  node.inputs = {x, draft.ints(axes)};
  node.outputs = {0};
  return true;
}

bool shape(Draft& draft, DType dtype, Node& node) {
  const ValueId x = draft.operand(dtype, {0, 5});
  const auto rank = static_cast<std::int64_t>(draft.rank(x));
  maybe(draft, node, "start", draft.random().integer(-rank - 1, rank), 0.4);
  maybe(draft, node, "end", draft.random().integer(-rank, rank + 1), 0.4);
  node.inputs = {x};
  node.outputs = {0};
  return true;
}

bool size(Draft& draft, DType dtype, Node& node) {
  node.inputs = {draft.operand(dtype, {0, 5})};
  node.outputs = {0};
  return true;
}

Tensor single(Draft& draft, DType dtype, const Dims& dims) {
  std::vector<double> values(static_cast<std::size_t>(numel(dims)));
  for (double& value : values)
    value = is_float(dtype) ? draft.random().real(-2, 2)
                            : static_cast<double>(draft.random().integer(0, 1));
  return constant_tensor(dtype, dims, values);
}

bool constant(Draft& draft, DType dtype, Node& node) {
  const auto kind = draft.random().integer(0, 4);
  const bool words = dtype == DType::kString;
  if (dtype == DType::kInt64 && kind == 0) {
    node.attributes.set("value_int", draft.random().integer(-3, 3));
  } else if (dtype == DType::kInt64 && kind == 1) {
    node.attributes.set("value_ints", std::vector<std::int64_t>{1, 2, 3});
  } else if (dtype == DType::kFp32 && kind < 2) {
    node.attributes.set("value_float", static_cast<float>(draft.random().real(-1, 1)));
  } else if (dtype == DType::kFp32 && kind < 4) {
    node.attributes.set("value_floats", draft.random().floats(3));
  } else if (words && kind < 2) {
    node.attributes.set("value_string", std::string("Ab c"));
  } else if (words && kind == 2) {
    node.attributes.set("value_strings", std::vector<std::string>{"a", "", "x,y"});
  } else {
    node.attributes.set("value",
                        single(draft, dtype, draft.random().chance(0.5) ? Dims{} : Dims{2, 3}));
  }
  node.outputs = {0};
  return true;
}

// A shape as a constant, or computed from the shape of a value.
std::optional<ValueId> any_shape(Draft& draft) {
  if (draft.random().chance(0.5)) {
    std::vector<std::int64_t> sizes;
    for (std::int64_t rank = draft.random().integer(0, 3); rank > 0; --rank)
      sizes.push_back(draft.random().integer(1, 4));
    return draft.ints(sizes);
  }
  const ValueId x = draft.operand(DType::kFp32, {1, 4});
  return shape_of(draft, x, 0, draft.rank(x));
}

bool constant_of_shape(Draft& draft, DType dtype, Node& node) {
  const auto sizes = any_shape(draft);
  if (!sizes) return false;
  if (dtype != DType::kFp32 || draft.random().chance(0.7))
    node.attributes.set("value", single(draft, dtype, {1}));
  node.inputs = {*sizes};
  node.outputs = {0};
  return true;
}

bool range(Draft& draft, DType dtype, Node& node) {
  const bool real = is_float(dtype);
  const double start = static_cast<double>(draft.random().integer(0, 3));
  const bool down = draft.random().chance(0.3) && dtype != DType::kUInt8;
  const double step =
      real ? one_of<double>(draft, {0.5, 1, 0.25}) : one_of<double>(draft, {1, 2, 3});
  const double length = static_cast<double>(draft.random().integer(0, 9));
  node.inputs = {draft.scalar(dtype, start),
                 draft.scalar(dtype, down ? start - length : start + length),
                 draft.scalar(dtype, down ? -step : step)};
  maybe(draft, node, "stash_type", std::int64_t{1});
  node.outputs = {0};
  return true;
}

bool eye_like(Draft& draft, DType dtype, Node& node) {
  node.inputs = {draft.operand(dtype, {2, 2})};
  const DType to = kDrawnDtypes[draft.random().index(kDrawnDtypes.size())];
  maybe(draft, node, "dtype", static_cast<std::int64_t>(to));
  maybe(draft, node, "k", draft.random().integer(-2, 2));
  node.outputs = {0};
  return true;
}

bool one_hot(Draft& draft, DType dtype, Node& node) {
  const DType index = one_of(draft, {DType::kInt64, DType::kInt32, DType::kFp32, DType::kUInt8});
  const DType depth = one_of(draft, {DType::kInt64, DType::kInt32, DType::kFp32});
  const auto rank = static_cast<std::size_t>(draft.random().integer(0, 2));
  const ValueId indices = is_float(index) ? draft.constant(constant_tensor(index, {3}, {0, 2, 1}))
                                          : draft.fresh(index, draft.draw_sizes(rank), {-4, 4});
  node.inputs = {indices, draft.scalar(depth, static_cast<double>(draft.random().integer(1, 5))),
                 draft.constant(single(draft, dtype, {2}))};
  maybe(draft, node, "axis", any_axis(draft, draft.rank(indices) + 1), 0.6);
  node.outputs = {0};
  return true;
}

constexpr Recipe kRecipes[] = {
    {"Constant", constant, -1},
    {"ConstantOfShape", constant_of_shape, -1},
    {"EyeLike", eye_like},
    {"Flatten", flatten},
    {"OneHot", one_hot, 2},
    {"Range", range},
    {"Reshape", reshape},
    {"Shape", shape},
    {"Size", size},
    {"Squeeze", squeeze},
    {"Unsqueeze", unsqueeze},
};

}  // namespace

std::span<const Recipe> view_recipes() {
  return kRecipes;
}

}  // namespace tessera::random_models
