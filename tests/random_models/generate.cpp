#include "random_models/generate.h"

#include <algorithm>

#include "ops/op_table.h"
#include "random_models/recipes.h"

namespace tessera::random_models {
namespace {

constexpr int kTries = 8;

// Tries to add a node of that operator; why the last try failed, or nothing.
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

const Recipe& recipe_of(std::string_view op) {
  return *std::ranges::lower_bound(all_recipes(), op, {}, &Recipe::op);
}

// Most nodes of a model have its main dtype, so that they can use each other's results.
DType main_dtype(testing::Random& random) {
  static const std::vector<DType> likely = {
      DType::kFp32, DType::kFp32, DType::kFp32,  DType::kFp32,  DType::kFp32, DType::kFp16,
      DType::kBf16, DType::kFp64, DType::kInt64, DType::kInt32, DType::kInt8};
  return random.pick(likely);
}

}  // namespace

const std::vector<Target>& all_targets() {
  static const std::vector<Target> targets = [] {
    std::vector<Target> all;
    // Dtype by dtype: three targets of one model are different operators.
    for (const DType dtype : kDrawnDtypes)
      for (const Recipe& recipe : all_recipes())
        if (std::ranges::count(key_dtypes(recipe), dtype) > 0) all.push_back({recipe.op, dtype});
    return all;
  }();
  return targets;
}

Generated generate(std::uint64_t seed) {
  Draft draft(seed);
  Generated made;
  testing::Random& random = draft.random();
  const DType main = main_dtype(random);
  const auto more = static_cast<std::size_t>(random.integer(0, 9));
  for (std::size_t i = 0; i < kTargetsPerModel + more; ++i) {
    const bool steered = i < kTargetsPerModel;
    const Target& target = all_targets()[(seed * kTargetsPerModel + i) % all_targets().size()];
    const Recipe& recipe =
        steered ? recipe_of(target.op) : all_recipes()[random.index(all_recipes().size())];
    DType dtype = target.dtype;
    if (!steered) {
      const std::vector<DType> allowed = key_dtypes(recipe);
      const bool fits = std::ranges::count(allowed, main) > 0 && random.chance(0.85);
      dtype = fits ? main : random.pick(allowed);
    }
    const std::string why = try_recipe(draft, recipe, dtype);
    if (steered && !why.empty())
      made.refused.push_back(std::string(recipe.op) + "/" + std::string(to_string(dtype)) + ": " +
                             why);
  }
  made.model = draft.finish();
  return made;
}

}  // namespace tessera::random_models
