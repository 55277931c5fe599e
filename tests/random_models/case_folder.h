#pragma once

// A failing model as a folder: the model, inputs and expected outputs at both points, and what the
// case runner is told of them.

#include <filesystem>

#include "random_models/differential.h"

namespace tessera::random_models {

// Writes model.onnx, inputs.npz, expected.npz, inputs_2.npz, expected_2.npz and case.json.
Status write_case(const std::filesystem::path& folder, const Model& model,
                  const Evaluation& evaluation, const Failure& failure, std::uint64_t seed);

}  // namespace tessera::random_models
