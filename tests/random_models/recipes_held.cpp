// Recipes of sequences and optionals.

#include <algorithm>

#include "random_models/recipes.h"

namespace tessera::random_models {
namespace {

using Kind = ValueType::Kind;

// One of that dtype that is there, or a new one of a few tensors.
std::optional<ValueId> sequence(Draft& draft, DType dtype, bool alike = false) {
  const auto known = draft.holder(Kind::kSequence, dtype);
  if (known && draft.random().chance(0.6)) return known;
  std::vector<ValueId> elements = {draft.operand(dtype)};
  for (std::int64_t more = draft.random().integer(0, 2); more > 0; --more)
    elements.push_back(alike ? elements.front() : draft.operand(dtype));
  return helper(draft, "SequenceConstruct", elements);
}

std::int64_t least_length(Draft& draft, ValueId id) {
  std::size_t least = SIZE_MAX;
  for (const Elements& elements : draft.elements(id))
    least = std::min(least, elements.held->elements.size());
  return static_cast<std::int64_t>(least);
}

// A position among `count`, from the front or from the back.
ValueId position(Draft& draft, std::int64_t count) {
  const auto at = static_cast<double>(draft.random().integer(-count, count - 1));
  const Dims dims = draft.random().chance(0.8) ? Dims{} : Dims{1};
  return draft.constant(constant_tensor(one_of(draft, {DType::kInt64, DType::kInt32}), dims, {at}));
}

bool construct(Draft& draft, DType dtype, Node& node) {
  for (std::int64_t more = draft.random().integer(1, 3); more > 0; --more)
    node.inputs.push_back(draft.operand(dtype));
  node.outputs = {0};
  return true;
}

bool empty(Draft& draft, DType dtype, Node& node) {
  if (dtype != DType::kFp32 || draft.random().chance(0.5))
    node.attributes.set("dtype", static_cast<std::int64_t>(dtype));
  node.outputs = {0};
  return true;
}

bool insert(Draft& draft, DType dtype, Node& node) {
  const auto into = sequence(draft, dtype);
  if (!into) return false;
  node.inputs = {*into, draft.operand(dtype)};
  const std::int64_t length = least_length(draft, *into);
  if (length > 0 && draft.random().chance(0.6)) node.inputs.push_back(position(draft, length));
  node.outputs = {0};
  return true;
}

bool erase(Draft& draft, DType dtype, Node& node) {
  const auto from = sequence(draft, dtype);
  if (!from || least_length(draft, *from) == 0) return false;
  node.inputs = {*from};
  if (draft.random().chance(0.6))
    node.inputs.push_back(position(draft, least_length(draft, *from)));
  node.outputs = {0};
  return true;
}

bool at(Draft& draft, DType dtype, Node& node) {
  const auto from = sequence(draft, dtype);
  if (!from || least_length(draft, *from) == 0) return false;
  node.inputs = {*from, position(draft, least_length(draft, *from))};
  node.outputs = {0};
  return true;
}

bool length(Draft& draft, DType dtype, Node& node) {
  const auto of = sequence(draft, dtype);
  if (!of) return false;
  node.inputs = {*of};
  node.outputs = {0};
  return true;
}

bool split(Draft& draft, DType dtype, Node& node) {
  const ValueId x = draft.operand(dtype, {1, 4});
  const std::int64_t axis = any_axis(draft, draft.rank(x));
  const Size size = draft.size(x, from_front(axis, draft.rank(x)));
  if (axis != 0 || draft.random().chance(0.3)) node.attributes.set("axis", axis);
  maybe(draft, node, "keepdims", flag(draft));
  node.inputs = {x};
  if (is_fixed(size) && size[0] > 0 && draft.random().chance(0.4)) {
    const std::int64_t first = draft.random().integer(0, size[0]);
    node.inputs.push_back(draft.ints({first, size[0] - first}));
  } else if (draft.random().chance(0.5)) {
    const auto each = static_cast<double>(draft.random().integer(1, 3));
    node.inputs.push_back(draft.scalar(DType::kInt64, each));
  }
  node.outputs = {0};
  return true;
}

bool concat(Draft& draft, DType dtype, Node& node) {
  const auto from = sequence(draft, dtype, draft.random().chance(0.7));
  if (!from || least_length(draft, *from) == 0) return false;
  const auto rank = draft.elements(*from)[0].held->elements.front().nominal.dims().size();
  const bool is_new = rank == 0 || draft.random().chance(0.4);
  node.attributes.set("axis", any_axis(draft, rank + (is_new ? 1 : 0)));
  if (is_new || draft.random().chance(0.3))
    node.attributes.set("new_axis", std::int64_t{is_new ? 1 : 0});
  node.inputs = {*from};
  node.outputs = {0};
  return true;
}

ValueType element_type(DType dtype, bool is_sequence) {
  const ValueType tensor = ValueType::tensor(dtype, std::nullopt);
  return is_sequence ? ValueType::sequence(tensor) : tensor;
}

// Of a tensor, of a sequence, or of nothing.
bool optional(Draft& draft, DType dtype, Node& node) {
  const bool is_sequence = draft.random().chance(0.3);
  const bool is_empty = draft.random().chance(0.25);
  if (is_empty || draft.random().chance(0.2))
    node.attributes.set("type", element_type(dtype, is_sequence));
  if (!is_empty) {
    const auto inside = is_sequence ? sequence(draft, dtype) : draft.operand(dtype);
    if (!inside) return false;
    node.inputs = {*inside};
  }
  node.outputs = {0};
  return true;
}

// An optional, or what it would hold.
bool of_optional(Draft& draft, DType dtype, Node& node) {
  const auto known = draft.holder(Kind::kOptional, dtype);
  const std::int64_t kind = draft.random().integer(0, 3);
  const auto from = kind == 0   ? std::optional(draft.operand(dtype))
                    : kind == 1 ? sequence(draft, dtype)
                    : known     ? known
                                : helper(draft, "Optional", {draft.operand(dtype)});
  if (!from) return false;
  node.inputs = {*from};
  node.outputs = {0};
  return true;
}

constexpr Recipe kRecipes[] = {
    {"ConcatFromSequence", concat, -1},
    {"Optional", optional, 0},
    {"OptionalGetElement", of_optional, 0},
    {"OptionalHasElement", of_optional, 0},
    {"SequenceAt", at, -1},
    {"SequenceConstruct", construct, 0},
    {"SequenceEmpty", empty, -1},
    {"SequenceErase", erase, 0},
    {"SequenceInsert", insert, 1},
    {"SequenceLength", length, 0},
    {"SplitToSequence", split, 0},
};

}  // namespace

std::span<const Recipe> held_recipes() {
  return kRecipes;
}

}  // namespace tessera::random_models
