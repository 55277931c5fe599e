#include "random_models/recipes.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "ops/op_table.h"

namespace tessera::random_models {
namespace {

constexpr std::string_view kRandom = "random numbers: two runs differ";
constexpr int kTries = 8;
constexpr int kDeepest = 2;  // bodies in bodies

constexpr Untested kUntested[] = {
    {"Bernoulli", kRandom},
    {"CausalConvWithState", "import makes Concat, Conv and Slice of it"},
    {"ImageDecoder", "drawn bytes are no picture"},
    {"Multinomial", kRandom},
    {"RandomNormal", kRandom},
    {"RandomNormalLike", kRandom},
    {"RandomUniform", kRandom},
    {"RandomUniformLike", kRandom},
    {"Scatter", "the newest opset has ScatterElements instead"},
    {"SimplifiedLayerNormalization", "import makes RMSNormalization of it"},
    {"SwiGLU", "import makes Swish and Mul of it"},
    {"Upsample", "the newest opset has Resize instead"},
};

}  // namespace

const std::vector<Recipe>& all_recipes() {
  static const std::vector<Recipe> recipes = [] {
    std::vector<Recipe> all;
    for (const auto group :
         {elementwise_recipes(), movement_recipes(), view_recipes(), reduce_recipes(),
          window_recipes(), product_recipes(), quantized_recipes(), sampling_recipes(),
          signal_recipes(), task_recipes(), text_recipes(), held_recipes(), body_recipes()})
      all.insert(all.end(), group.begin(), group.end());
    std::ranges::sort(all, {}, &Recipe::op);
    return all;
  }();
  return recipes;
}

const Recipe& recipe_of(std::string_view op) {
  const auto found = std::ranges::lower_bound(all_recipes(), op, {}, &Recipe::op);
  TESSERA_CHECK(found != all_recipes().end() && found->op == op);
  return *found;
}

std::string try_recipe(Draft& draft, const Recipe& recipe, DType dtype) {
  std::string why;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    Node node;
    node.op = ops::find_op("", recipe.op);
    if (!recipe.make(draft, dtype, node)) {
      why = "no operand fits";
      continue;
    }
    const Status added = draft.add(std::move(node));
    if (added) return "";
    why = added.error().to_string();
  }
  return why;
}

void grow(Draft& draft, DType main, std::int64_t count) {
  testing::Random& random = draft.random();
  static const std::vector<std::string_view> with_bodies = {"If", "Loop", "Scan"};
  for (; count > 0; --count) {
    const bool nests = draft.depth() > 0 && draft.depth() < kDeepest && random.chance(0.1);
    const Recipe& recipe = nests ? recipe_of(random.pick(with_bodies))
                                 : all_recipes()[random.index(all_recipes().size())];
    const bool has_bodies = ops::find_op("", recipe.op)->structure == ops::Structure::kControlFlow;
    if (has_bodies && draft.depth() >= kDeepest) continue;
    const std::vector<DType> allowed = key_dtypes(recipe);
    const bool fits = std::ranges::count(allowed, main) > 0 && random.chance(0.85);
    (void)try_recipe(draft, recipe, fits ? main : random.pick(allowed));
  }
}

std::optional<ValueId> helper(Draft& draft, const char* op, std::vector<ValueId> inputs,
                              ops::Attributes attributes) {
  Node node;
  node.op = ops::find_op("", op);
  node.inputs = std::move(inputs);
  node.attributes = std::move(attributes);
  node.outputs = {0};
  if (!draft.add(std::move(node))) return std::nullopt;
  return draft.newest();
}

std::span<const Untested> untested_operators() {
  return kUntested;
}

std::vector<DType> key_dtypes(const Recipe& recipe) {
  const ops::OpSchema* op = ops::find_op("", recipe.op);
  TESSERA_CHECK(op != nullptr);
  const auto& key = recipe.key_input < 0 ? op->outputs.front()
                                         : op->inputs[static_cast<std::size_t>(recipe.key_input)];
  std::vector<DType> dtypes;
  for (const DType dtype : kDrawnDtypes) {
    const auto allows = [&](const ops::TypeVariable& variable) {
      return variable.name == key.type && (variable.allowed & ops::dtype_bit(dtype)) == 0;
    };
    if (std::ranges::none_of(op->type_variables, allows)) dtypes.push_back(dtype);
  }
  return dtypes;
}

std::vector<std::int64_t> some_axes(Draft& draft, std::size_t rank, std::size_t at_least) {
  std::vector<std::int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  for (std::size_t i = axes.size(); i > 1; --i)
    std::swap(axes[i - 1], axes[draft.random().index(i)]);
  const auto kept = draft.random().integer(static_cast<std::int64_t>(std::min(at_least, rank)),
                                           static_cast<std::int64_t>(rank));
  axes.resize(static_cast<std::size_t>(kept));
  for (std::int64_t& axis : axes)
    if (draft.random().chance(0.3)) axis -= static_cast<std::int64_t>(rank);
  return axes;
}

}  // namespace tessera::random_models
