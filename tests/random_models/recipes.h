#pragma once

// How a node of each operator is made: operands that fit, attributes drawn from all that the
// operator has. A recipe may guess; Draft::add refuses what is not valid.

#include <span>
#include <string_view>

#include "random_models/draft.h"

namespace tessera::random_models {

// What a recipe fills: `node.op` is set, `dtype` is what its key operand shall have. False where
// nothing fits.
using RecipeFn = bool (*)(Draft& draft, DType dtype, Node& node);

struct Recipe {
  std::string_view op;
  RecipeFn make = nullptr;
  int key_input = 0;  // the operand that the dtype belongs to; -1: output 0
};

std::span<const Recipe> elementwise_recipes();
std::span<const Recipe> movement_recipes();
std::span<const Recipe> view_recipes();
std::span<const Recipe> reduce_recipes();
std::span<const Recipe> window_recipes();
std::span<const Recipe> product_recipes();
std::span<const Recipe> quantized_recipes();
std::span<const Recipe> sampling_recipes();
std::span<const Recipe> signal_recipes();
std::span<const Recipe> task_recipes();
std::span<const Recipe> text_recipes();
std::span<const Recipe> held_recipes();
std::span<const Recipe> body_recipes();

// All of them, sorted by operator.
const std::vector<Recipe>& all_recipes();
const Recipe& recipe_of(std::string_view op);

// Tries to add a node of that operator, several times; why the last try failed, or nothing.
std::string try_recipe(Draft& draft, const Recipe& recipe, DType dtype);

// Adds up to `count` nodes of drawn operators, most of them with `main` as their key dtype.
void grow(Draft& draft, DType main, std::int64_t count);

// An operator of the table without a recipe, and why.
struct Untested {
  std::string_view op;
  std::string_view reason;
};
std::span<const Untested> untested_operators();

// The dtypes that models draw: all.
inline constexpr std::array kDrawnDtypes = {
    DType::kFp32,        DType::kFp64,      DType::kFp16,        DType::kBf16,      DType::kInt8,
    DType::kInt16,       DType::kInt32,     DType::kInt64,       DType::kUInt8,     DType::kUInt16,
    DType::kUInt32,      DType::kUInt64,    DType::kBool,        DType::kFp8E4M3Fn, DType::kFp8E5M2,
    DType::kFp8E4M3FnUz, DType::kFp8E8M0,   DType::kFp8E5M2FnUz, DType::kInt4,      DType::kUInt4,
    DType::kFp4E2M1,     DType::kInt2,      DType::kUInt2,       DType::kFp6E2M3,   DType::kFp6E3M2,
    DType::kString,      DType::kComplex64, DType::kComplex128};

// Those of them that the recipe's key operand may have.
std::vector<DType> key_dtypes(const Recipe& recipe);

// ---- What recipes share

// Sets the attribute half of the time.
template <typename T>
void maybe(Draft& draft, Node& node, const char* name, T value, double chance = 0.5) {
  if (draft.random().chance(chance))
    node.attributes.set(name, ops::AttributeValue(std::move(value)));
}
inline std::int64_t flag(Draft& draft) {
  return draft.random().integer(0, 1);
}
// An axis of `rank` dims, counted from the front or from the back.
inline std::int64_t any_axis(Draft& draft, std::size_t rank) {
  const auto count = static_cast<std::int64_t>(rank);
  return draft.random().integer(-count, count - 1);
}
inline std::size_t from_front(std::int64_t axis, std::size_t rank) {
  return static_cast<std::size_t>(axis < 0 ? axis + static_cast<std::int64_t>(rank) : axis);
}
inline std::int64_t least(const Size& size) {
  return std::min(size[0], size[1]);
}
// One of a few, by value.
template <typename T>
T one_of(Draft& draft, std::initializer_list<T> values) {
  return *(values.begin() +
           draft.random().integer(0, static_cast<std::int64_t>(values.size()) - 1));
}
inline std::string word(Draft& draft, std::initializer_list<const char*> words) {
  return one_of<const char*>(draft, words);
}
// Adds a helper node of one output; its output, or nothing.
std::optional<ValueId> helper(Draft& draft, const char* op, std::vector<ValueId> inputs,
                              ops::Attributes attributes = {});
inline Size number(std::int64_t value) {
  return {value, value};
}
// Some of the axes of `rank` dims, each once, in any order and of either sign.
std::vector<std::int64_t> some_axes(Draft& draft, std::size_t rank, std::size_t at_least);

}  // namespace tessera::random_models
