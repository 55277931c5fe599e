#pragma once

// Random models out of the op table, each from its seed.

#include "random_models/model.h"

namespace tessera::random_models {

// What a model is steered to: an operator at a dtype of its key operand. Seed s gets the targets
// from s * kTargetsPerModel on, round and round, so that a run over successive seeds reaches all of
// them in turn, and a seed alone repeats its model.
struct Target {
  std::string_view op;
  DType dtype = DType::kUndefined;
};
inline constexpr std::size_t kTargetsPerModel = 3;
const std::vector<Target>& all_targets();

struct Generated {
  Model model;
  std::vector<std::string> refused;  // "Op/dtype: why": targets that found no valid node
};

// Valid at both points, with results that do not hang on rounding; one to twelve nodes or so.
Generated generate(std::uint64_t seed);

}  // namespace tessera::random_models
