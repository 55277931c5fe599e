#pragma once

// How TreeEnsembleClassifier and TreeEnsembleRegressor spell an ensemble: nodes by the numbers of
// their tree and their own, weights beside them.

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "ops/attributes.h"
#include "ops/ml/ensemble.h"

namespace tessera::ops::ml {

// Reads nodes and weights. `kind` is "class" or "target", as in 'target_weights'; `targets` how
// many there are. The first node of each tree is its root. Errors name the attribute.
Result<Ensemble> read_trees(const Attributes& attributes, const std::string& kind,
                            std::int64_t targets);

// The elements of a list of floats, or of the tensor in its place: 'base_values', or
// 'base_values_as_tensor'. Empty where neither is there. Error: both are.
Result<std::vector<double>> reals_of(const Attributes& attributes, const std::string& name);

}  // namespace tessera::ops::ml
