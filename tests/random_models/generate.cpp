#include "random_models/generate.h"

#include <algorithm>

#include "ops/op_table.h"
#include "random_models/recipes.h"

namespace tessera::random_models {
namespace {

// Most nodes of a model have its main dtype, so that they can use each other's results.
DType main_dtype(testing::Random& random) {
  static const std::vector<DType> likely = {
      DType::kFp32, DType::kFp32, DType::kFp32,  DType::kFp32,  DType::kFp32, DType::kFp16,
      DType::kBf16, DType::kFp64, DType::kInt64, DType::kInt32, DType::kInt8};
  return random.pick(likely);
}

// Models give tensors, so that what is in the others comes out too.
void read_holders(Draft& draft) {
  for (const ValueId id : draft.unread_holders()) {
    const Held& held = *draft.elements(id)[0].held;
    if (held.kind == ValueType::Kind::kOptional) {
      (void)helper(draft, held.elements.empty() ? "OptionalHasElement" : "OptionalGetElement",
                   {id});
    } else if (held.elements.empty() || draft.random().chance(0.3)) {
      (void)helper(draft, "SequenceLength", {id});
    } else {
      const auto last = static_cast<std::int64_t>(held.elements.size()) - 1;
      const auto at = static_cast<double>(draft.random().integer(-1, last));
      (void)helper(draft, "SequenceAt", {id, draft.scalar(DType::kInt64, at)});
    }
  }
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
  for (std::size_t i = 0; i < kTargetsPerModel; ++i) {
    const Target& target = all_targets()[(seed * kTargetsPerModel + i) % all_targets().size()];
    const std::string why = try_recipe(draft, recipe_of(target.op), target.dtype);
    if (!why.empty())
      made.refused.push_back(std::string(target.op) + "/" + std::string(to_string(target.dtype)) +
                             ": " + why);
  }
  grow(draft, main, random.integer(0, 9));
  for (int depth = 0; depth < 2; ++depth) read_holders(draft);
  made.model = draft.finish();
  return made;
}

}  // namespace tessera::random_models
