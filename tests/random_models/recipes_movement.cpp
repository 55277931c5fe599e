// Recipes of the operators that move elements.

#include <algorithm>
#include <climits>
#include <numeric>

#include "random_models/recipes.h"

namespace tessera::random_models {
namespace {

bool transpose(Draft& draft, DType dtype, Node& node) {
  const ValueId x = draft.operand(dtype, {0, 5});
  std::vector<std::int64_t> order(draft.rank(x));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i)
    std::swap(order[i - 1], order[draft.random().index(i)]);
  maybe(draft, node, "perm", order, 0.85);
  node.inputs = {x};
  node.outputs = {0};
  return true;
}

// Values like `x` but for one axis.
std::vector<ValueId> concat_partners(Draft& draft, ValueId x, std::size_t axis) {
  std::vector<ValueId> partners;
  Sizes sizes = draft.sizes(x);
  for (std::int64_t more = draft.random().integer(0, 2); more > 0; --more) {
    if (!draft.can_be_input(sizes) || draft.random().chance(0.3)) {
      partners.push_back(x);
      continue;
    }
    if (draft.random().chance(0.5)) sizes[axis] = draft.draw_sizes(1)[0];
    partners.push_back(draft.fresh(draft.dtype(x), sizes));
  }
  return partners;
}

bool concat(Draft& draft, DType dtype, Node& node) {
  const ValueId x = draft.operand(dtype, {1, 5});
  const std::int64_t axis = any_axis(draft, draft.rank(x));
  node.inputs = concat_partners(draft, x, from_front(axis, draft.rank(x)));
  const auto at = draft.random().integer(0, static_cast<std::int64_t>(node.inputs.size()));
  node.inputs.insert(node.inputs.begin() + at, x);
  node.attributes.set("axis", axis);
  node.outputs = {0};
  return true;
}

bool split(Draft& draft, DType dtype, Node& node) {
  const ValueId x = draft.operand(dtype, {1, 5});
  const std::int64_t axis = any_axis(draft, draft.rank(x));
  const Size size = draft.size(x, from_front(axis, draft.rank(x)));
  if (axis == 0)
    maybe(draft, node, "axis", axis);
  else
    node.attributes.set("axis", axis);
  node.inputs = {x};
  if (is_fixed(size) && draft.random().chance(0.6)) {
    const std::int64_t first = draft.random().integer(0, size[0]);
    std::vector<std::int64_t> parts = {first, size[0] - first};
    if (parts[1] > 1 && draft.random().chance(0.3)) parts = {first, 1, parts[1] - 1};
    node.inputs.push_back(draft.ints(parts));
    node.outputs.assign(parts.size(), 0);
  } else {
    const std::int64_t count = draft.random().integer(
        1, std::max<std::int64_t>(1, std::min<std::int64_t>(3, least(size))));
    node.attributes.set("num_outputs", count);
    node.outputs.assign(static_cast<std::size_t>(count), 0);
  }
  return true;
}

bool slice(Draft& draft, DType dtype, Node& node) {
  const ValueId x = draft.operand(dtype, {1, 5});
  const std::size_t rank = draft.rank(x);
  std::vector<std::int64_t> axes = some_axes(draft, rank, 1);
  const bool all_in_order = draft.random().chance(0.2);
  if (all_in_order) {
    axes.resize(rank);
    std::iota(axes.begin(), axes.end(), 0);
  }
  std::vector<std::int64_t> starts;
  std::vector<std::int64_t> ends;
  std::vector<std::int64_t> steps;
  const bool stepped = draft.random().chance(0.5);
  for (const std::int64_t axis : axes) {
    const std::int64_t size = least(draft.size(x, from_front(axis, rank)));
    steps.push_back(stepped ? one_of<std::int64_t>(draft, {1, 2, 3, -1, -2}) : 1);
    const bool forward = steps.back() > 0;
    const std::int64_t low = draft.random().integer(0, std::max<std::int64_t>(0, size - 1));
    const std::int64_t high =
        draft.random().chance(0.4) ? INT64_MAX : draft.random().integer(low, size);
    starts.push_back(forward ? low : one_of<std::int64_t>(draft, {-1, INT64_MAX, size - 1}));
    ends.push_back(forward ? high
                           : one_of<std::int64_t>(draft, {INT64_MIN, 0, -size - 1, low - 1}));
    if (forward && high == INT64_MAX && draft.random().chance(0.3)) ends.back() = -1;
  }
  node.inputs = {x, draft.ints(starts), draft.ints(ends)};
  if (!all_in_order || draft.random().chance(0.5)) node.inputs.push_back(draft.ints(axes));
  if (stepped) {
    if (node.inputs.size() == 3) node.inputs.push_back(kOmitted);
    node.inputs.push_back(draft.ints(steps));
  }
  node.outputs = {0};
  return true;
}

bool pad(Draft& draft, DType dtype, Node& node) {
  const ValueId x = draft.operand(dtype, {1, 5});
  const std::string mode = word(draft, {"constant", "constant", "reflect", "edge", "wrap"});
  if (mode != "constant" || draft.random().chance(0.3)) node.attributes.set("mode", mode);
  std::vector<std::int64_t> axes(draft.rank(x));
  std::iota(axes.begin(), axes.end(), 0);
  const bool some = draft.random().chance(0.3);
  if (some) axes = some_axes(draft, draft.rank(x), 1);
  std::vector<std::int64_t> pads(2 * axes.size());
  for (std::size_t i = 0; i < pads.size(); ++i) {
    const std::int64_t size =
        least(draft.size(x, from_front(axes[i % axes.size()], draft.rank(x))));
    const std::int64_t most =
        mode == "reflect" || mode == "wrap" ? std::min<std::int64_t>(2, size - 1) : 2;
    pads[i] =
        draft.random().chance(0.5) ? draft.random().integer(0, std::max<std::int64_t>(0, most)) : 0;
    if (mode == "constant" && draft.random().chance(0.1) && size > 2) pads[i] = -1;
  }
  node.inputs = {x, draft.ints(pads)};
  if (mode == "constant" && draft.random().chance(0.5))
    node.inputs.push_back(draft.scalar(dtype, is_float(dtype) ? draft.random().real(-2, 2) : 1));
  if (some) {
    if (node.inputs.size() == 2) node.inputs.push_back(kOmitted);
    node.inputs.push_back(draft.ints(axes));
  }
  node.outputs = {0};
  return true;
}

// Positions within an axis of `size`, some counted from the back.
Tensor positions(Draft& draft, std::int64_t size, const Dims& dims, DType dtype,
                 bool distinct = false) {
  std::vector<double> values(static_cast<std::size_t>(numel(dims)));
  const std::int64_t first = draft.random().integer(0, std::max<std::int64_t>(0, size - 1));
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::int64_t at = distinct
                          ? (first + static_cast<std::int64_t>(i)) % std::max<std::int64_t>(1, size)
                          : draft.random().integer(0, std::max<std::int64_t>(0, size - 1));
    if (!distinct && draft.random().chance(0.2)) at = -1 - at;
    values[i] = static_cast<double>(at);
  }
  return constant_tensor(dtype, dims, values);
}

Dims small_dims(Draft& draft, std::size_t rank) {
  Dims dims;
  for (std::size_t i = 0; i < rank; ++i) dims.push_back(draft.random().integer(1, 3));
  return dims;
}

// As a constant, or as an input of the model.
ValueId index_value(Draft& draft, const Tensor& tensor) {
  return draft.random().chance(0.7) ? draft.constant(tensor) : draft.input(tensor);
}

DType index_dtype(Draft& draft) {
  return one_of(draft, {DType::kInt64, DType::kInt64, DType::kInt32});
}

bool gather(Draft& draft, DType dtype, Node& node) {
  const ValueId x = draft.operand(dtype, {1, 5});
  const std::int64_t axis = any_axis(draft, draft.rank(x));
  const std::int64_t size = least(draft.size(x, from_front(axis, draft.rank(x))));
  const Dims dims = small_dims(draft, draft.random().index(3));
  node.inputs = {x, index_value(draft, positions(draft, size, dims, index_dtype(draft)))};
  if (axis != 0 || draft.random().chance(0.5)) node.attributes.set("axis", axis);
  node.outputs = {0};
  return true;
}

bool gather_elements(Draft& draft, DType dtype, Node& node) {
  const ValueId x = draft.operand(dtype, {1, 4});
  const std::int64_t axis = any_axis(draft, draft.rank(x));
  const std::size_t front = from_front(axis, draft.rank(x));
  Dims dims;
  for (std::size_t d = 0; d < draft.rank(x); ++d)
    dims.push_back(d == front
                       ? draft.random().integer(1, 4)
                       : draft.random().integer(std::min<std::int64_t>(1, least(draft.size(x, d))),
                                                least(draft.size(x, d))));
  node.inputs = {x, index_value(draft, positions(draft, least(draft.size(x, front)), dims,
                                                 index_dtype(draft)))};
  if (axis != 0 || draft.random().chance(0.5)) node.attributes.set("axis", axis);
  node.outputs = {0};
  return true;
}

// Rows of positions, each at most one less than the axes from `first` on.
Tensor coordinates(Draft& draft, ValueId x, std::size_t first, std::size_t depth, Dims outer) {
  std::int64_t rows = numel(outer);
  std::vector<double> values;
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::size_t d = 0; d < depth; ++d) {
      const std::int64_t size = std::max<std::int64_t>(1, least(draft.size(x, first + d)));
      std::int64_t at = d == 0 ? row % size : draft.random().integer(0, size - 1);
      values.push_back(static_cast<double>(at));
    }
  outer.push_back(static_cast<std::int64_t>(depth));
  return constant_tensor(DType::kInt64, outer, values);
}

bool gather_nd(Draft& draft, DType dtype, Node& node) {
  const ValueId x = draft.operand(dtype, {1, 4});
  const bool batched =
      draft.rank(x) > 1 && is_fixed(draft.size(x, 0)) && draft.random().chance(0.4);
  const std::size_t first = batched ? 1 : 0;
  const auto depth = static_cast<std::size_t>(
      draft.random().integer(1, static_cast<std::int64_t>(draft.rank(x) - first)));
  Dims outer = small_dims(draft, draft.random().index(3));
  if (batched) outer.insert(outer.begin(), draft.size(x, 0)[0]);
  if (batched)
    node.attributes.set("batch_dims", std::int64_t{1});
  else
    maybe(draft, node, "batch_dims", std::int64_t{0}, 0.2);
  node.inputs = {x, index_value(draft, coordinates(draft, x, first, depth, outer))};
  node.outputs = {0};
  return true;
}

std::string reduction(Draft& draft, Node& node, DType dtype) {
  const bool numbers = has_numbers(dtype) && bits_of(dtype) >= 8 && dtype != DType::kBool;
  const std::string how =
      numbers ? word(draft, {"none", "none", "add", "mul", "min", "max"}) : "none";
  if (how != "none" || draft.random().chance(0.3)) node.attributes.set("reduction", how);
  return how;
}

bool scatter_elements(Draft& draft, DType dtype, Node& node) {
  const ValueId x = draft.operand(dtype, {1, 4});
  const std::int64_t axis = any_axis(draft, draft.rank(x));
  const std::size_t front = from_front(axis, draft.rank(x));
  Dims dims;
  for (std::size_t d = 0; d < draft.rank(x); ++d)
    dims.push_back(std::min<std::int64_t>(least(draft.size(x, d)), draft.random().integer(1, 3)));
  const bool distinct = reduction(draft, node, dtype) == "none";
  Tensor at = positions(draft, least(draft.size(x, front)), dims, index_dtype(draft));
  if (distinct) {  // the same place twice has no one answer: each line counts up from 0
    std::vector<double> counted(static_cast<std::size_t>(numel(dims)));
    std::int64_t inner = 1;
    for (std::size_t d = front + 1; d < dims.size(); ++d) inner *= dims[d];
    for (std::size_t i = 0; i < counted.size(); ++i)
      counted[i] = static_cast<double>(static_cast<std::int64_t>(i) / inner % dims[front]);
    at = constant_tensor(at.dtype(), dims, counted);
  }
  node.inputs = {x, index_value(draft, at), draft.weights(dtype, dims, {})};
  if (axis != 0 || draft.random().chance(0.5)) node.attributes.set("axis", axis);
  node.outputs = {0};
  return true;
}

bool scatter_nd(Draft& draft, DType dtype, Node& node) {
  const ValueId x = draft.operand(dtype, {1, 4});
  const auto depth =
      static_cast<std::size_t>(draft.random().integer(1, static_cast<std::int64_t>(draft.rank(x))));
  const std::int64_t rows =
      std::min<std::int64_t>(least(draft.size(x, 0)), draft.random().integer(1, 3));
  Dims dims = {rows};
  for (std::size_t d = depth; d < draft.rank(x); ++d) {
    if (!is_fixed(draft.size(x, d))) return false;
    dims.push_back(draft.size(x, d)[0]);
  }
  reduction(draft, node, dtype);
  node.inputs = {x, index_value(draft, coordinates(draft, x, 0, depth, {rows})),
                 draft.weights(dtype, dims, {})};
  node.outputs = {0};
  return true;
}

bool expand(Draft& draft, DType dtype, Node& node) {
  const ValueId x = draft.operand(dtype, {0, 4});
  std::vector<std::int64_t> sizes;
  for (const Size& size : draft.sizes(x)) {
    if (size == Size{1, 1})
      sizes.push_back(draft.random().integer(1, 3));
    else
      sizes.push_back(is_fixed(size) && draft.random().chance(0.5) ? size[0] : 1);
  }
  if (draft.random().chance(0.3) && sizes.size() < 4)
    sizes.insert(sizes.begin(), draft.random().integer(1, 3));
  else if (!sizes.empty() && sizes.front() == 1 && draft.random().chance(0.3))
    sizes.erase(sizes.begin());
  node.inputs = {x, draft.ints(sizes)};
  node.outputs = {0};
  return true;
}

bool tile(Draft& draft, DType dtype, Node& node) {
  const ValueId x = draft.operand(dtype, {0, 4});
  std::vector<std::int64_t> repeats;
  for (std::size_t d = 0; d < draft.rank(x); ++d)
    repeats.push_back(draft.random().chance(0.05) ? 0 : draft.random().integer(1, 2));
  node.inputs = {x, draft.ints(repeats)};
  node.outputs = {0};
  return true;
}

// Rank 4 with channels, height and width that the block divides.
ValueId block_input(Draft& draft, DType dtype, std::int64_t channels, std::int64_t space) {
  Sizes sizes = draft.draw_sizes(2);
  sizes[1] = {channels * draft.random().integer(1, 2), 0};
  sizes[1][1] = sizes[1][0];
  for (int i = 0; i < 2; ++i) {
    const std::int64_t size = space * draft.random().integer(1, 3);
    sizes.push_back({size, size});
  }
  return draft.fresh(dtype, sizes);
}

bool depth_to_space(Draft& draft, DType dtype, Node& node) {
  const std::int64_t block = draft.random().chance(0.8) ? 2 : 1;
  node.inputs = {block_input(draft, dtype, block * block, 1)};
  node.attributes.set("blocksize", block);
  maybe(draft, node, "mode", word(draft, {"DCR", "CRD"}), 0.7);
  node.outputs = {0};
  return true;
}

bool space_to_depth(Draft& draft, DType dtype, Node& node) {
  node.inputs = {block_input(draft, dtype, 1, 2)};
  maybe(draft, node, "mode", word(draft, {"DCR", "CRD"}));
  node.attributes.set("blocksize", draft.random().chance(0.8) ? std::int64_t{2} : std::int64_t{1});
  node.outputs = {0};
  return true;
}

bool reverse_sequence(Draft& draft, DType dtype, Node& node) {
  const ValueId x = draft.operand(dtype, {2, 4});
  const bool batch_first = draft.random().chance(0.5);
  const Size batch = draft.size(x, batch_first ? 0 : 1);
  const Size time = draft.size(x, batch_first ? 1 : 0);
  if (!is_fixed(batch) || least(time) < 1) return false;
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < batch[0]; ++i)
    lengths.push_back(draft.random().integer(1, least(time)));
  if (batch_first) {
    node.attributes.set("batch_axis", std::int64_t{0});
    node.attributes.set("time_axis", std::int64_t{1});
  }
  node.inputs = {x, draft.ints(lengths)};
  node.outputs = {0};
  return true;
}

bool trilu(Draft& draft, DType dtype, Node& node) {
  node.inputs = {draft.operand(dtype, {2, 4})};
  if (draft.random().chance(0.5))
    node.inputs.push_back(
        draft.scalar(DType::kInt64, static_cast<double>(draft.random().integer(-2, 2))));
  maybe(draft, node, "upper", flag(draft), 0.6);
  node.outputs = {0};
  return true;
}

bool top_k(Draft& draft, DType dtype, Node& node) {
  const ValueId x = draft.operand(dtype, {1, 4});
  const std::int64_t axis = any_axis(draft, draft.rank(x));
  const std::int64_t size = least(draft.size(x, from_front(axis, draft.rank(x))));
  if (axis != -1 || draft.random().chance(0.5)) node.attributes.set("axis", axis);
  maybe(draft, node, "largest", flag(draft));
  maybe(draft, node, "sorted", std::int64_t{1}, 0.3);
  node.inputs = {x, draft.ints({draft.random().integer(0, size)})};
  node.outputs = {0, 0};
  return true;
}

bool cumulative(Draft& draft, DType dtype, Node& node) {
  const ValueId x = draft.operand(dtype, {1, 4});
  const auto axis = static_cast<double>(any_axis(draft, draft.rank(x)));
  node.inputs = {x, draft.scalar(index_dtype(draft), axis)};
  maybe(draft, node, "exclusive", flag(draft));
  maybe(draft, node, "reverse", flag(draft));
  node.outputs = {0};
  return true;
}

// ---- Sizes that the data decides

bool non_zero(Draft& draft, DType dtype, Node& node) {
  node.inputs = {draft.operand(dtype, {1, 4})};
  node.outputs = {0};
  return true;
}

bool compress(Draft& draft, DType dtype, Node& node) {
  const ValueId x = draft.operand(dtype, {1, 4});
  const std::int64_t axis = any_axis(draft, draft.rank(x));
  maybe(draft, node, "axis", axis, 0.8);
  const std::int64_t size = node.attributes.has("axis")
                                ? least(draft.size(x, from_front(axis, draft.rank(x))))
                                : least(draft.size(x, 0));
  node.inputs = {x, draft.weights(DType::kBool, {size}, {0, 1})};
  node.outputs = {0};
  return true;
}

bool unique(Draft& draft, DType dtype, Node& node) {
  const ValueId x = draft.operand(dtype, {1, 4});
  maybe(draft, node, "axis", any_axis(draft, draft.rank(x)));
  maybe(draft, node, "sorted", flag(draft));
  node.inputs = {x};
  node.outputs = {0};
  for (int more = 0; more < 3 && draft.random().chance(0.5); ++more) node.outputs.push_back(0);
  return true;
}

constexpr Recipe kRecipes[] = {
    {"Compress", compress},
    {"Concat", concat},
    {"CumProd", cumulative},
    {"CumSum", cumulative},
    {"DepthToSpace", depth_to_space},
    {"Expand", expand},
    {"Gather", gather},
    {"GatherElements", gather_elements},
    {"GatherND", gather_nd},
    {"NonZero", non_zero},
    {"Pad", pad},
    {"ReverseSequence", reverse_sequence},
    {"ScatterElements", scatter_elements},
    {"ScatterND", scatter_nd},
    {"Slice", slice},
    {"SpaceToDepth", space_to_depth},
    {"Split", split},
    {"Tile", tile},
    {"TopK", top_k},
    {"Transpose", transpose},
    {"Trilu", trilu},
    {"Unique", unique},
};

}  // namespace

std::span<const Recipe> movement_recipes() {
  return kRecipes;
}

}  // namespace tessera::random_models
