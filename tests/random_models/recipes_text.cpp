// Recipes of operators on strings, and of n-grams.

#include <algorithm>

#include "random_models/recipes.h"

namespace tessera::random_models {
namespace {

bool concat(Draft& draft, DType dtype, Node& node) {
  const ValueId x = draft.operand(dtype);
  const auto y = draft.partner(x, dtype);
  if (!y) return false;
  node.inputs = {x, *y};
  node.outputs = {0};
  return true;
}

bool split(Draft& draft, DType dtype, Node& node) {
  node.inputs = {draft.operand(dtype, {0, 3})};
  maybe(draft, node, "delimiter", word(draft, {"", " ", ",", "xy"}));
  maybe(draft, node, "maxsplit", draft.random().integer(0, 2));
  node.outputs = {0};
  if (draft.random().chance(0.5)) node.outputs.push_back(0);
  return true;
}

bool normalize(Draft& draft, DType dtype, Node& node) {
  Sizes sizes = draft.draw_sizes(1);
  if (draft.random().chance(0.4)) sizes.insert(sizes.begin(), number(1));
  node.inputs = {draft.random().chance(0.5) ? draft.operand(dtype, {1, 1})
                                            : draft.fresh(dtype, sizes)};
  maybe(draft, node, "case_change_action", word(draft, {"NONE", "LOWER", "UPPER"}), 0.7);
  maybe(draft, node, "is_case_sensitive", flag(draft));
  maybe(draft, node, "locale", std::string("en_US"), 0.2);
  maybe(draft, node, "stopwords", std::vector<std::string>{"a", "ab C", "3.5"});
  node.outputs = {0};
  return true;
}

bool match(Draft& draft, DType dtype, Node& node) {
  node.inputs = {draft.operand(dtype)};
  node.attributes.set(
      "pattern", word(draft, {"[a-z, ]+", "-?[0-9]+(\\.[0-9]*)?", ".*", "(x|y|,)*z?", "\\w*"}));
  node.outputs = {0};
  return true;
}

// Three words alone and two pairs of them.
bool n_grams(Draft& draft, DType dtype, Node& node) {
  const bool words = dtype == DType::kString;
  node.inputs = {draft.operand(dtype, {1, 2}, words ? Range{-1e300, 1e300} : Range{-3, 3})};
  node.attributes.set("mode", word(draft, {"TF", "IDF", "TFIDF"}));
  node.attributes.set("min_gram_length", draft.random().integer(1, 2));
  node.attributes.set("max_gram_length", std::int64_t{2});
  node.attributes.set("max_skip_count", draft.random().integer(0, 2));
  node.attributes.set("ngram_counts", std::vector<std::int64_t>{0, 3});
  node.attributes.set("ngram_indexes", std::vector<std::int64_t>{2, 0, 1, 4, 3});
  if (words)
    node.attributes.set("pool_strings",
                        std::vector<std::string>{"a", "1", "x,y,z", "a", "1", "", "a"});
  else
    node.attributes.set("pool_int64s", std::vector<std::int64_t>{1, 2, 0, 1, 2, 0, 1});
  maybe(draft, node, "weights", std::vector<float>{0.5F, 1, 2, 0.25F, 1.5F});
  node.outputs = {0};
  return true;
}

constexpr Recipe kRecipes[] = {
    {"RegexFullMatch", match}, {"StringConcat", concat},     {"StringNormalizer", normalize},
    {"StringSplit", split},    {"TfIdfVectorizer", n_grams},
};

}  // namespace

std::span<const Recipe> text_recipes() {
  return kRecipes;
}

}  // namespace tessera::random_models
