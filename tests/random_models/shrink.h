#pragma once

// Makes a failing model as small as it gets.

#include <functional>

#include "random_models/evaluate.h"

namespace tessera::random_models {

// Whether a valid model still shows the failure.
using StillFails = std::function<bool(const Model& model, const Evaluation& evaluation)>;

// Cuts outputs, replaces results by inputs, bypasses nodes, drops attributes and optional operands,
// fixes symbols, halves dims and simplifies elements, as long as the model stays valid and fails.
// Asks `fails` at most `budget` times. The result fails, given that `model` does.
Model shrink(const Model& model, const StillFails& fails, std::size_t budget = 400);

}  // namespace tessera::random_models
