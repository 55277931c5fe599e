#pragma once

// Models and data that stand beside the tree, too large for it. Tests that need some are skipped,
// with the path that they looked for, where they are missing.
//
//   TESSERA_SHARED_OR_SKIP(inputs, "models/resnet50/inputs.npz");
//   TESSERA_MODEL_OR_SKIP(model, "resnet50");
//
// Each declares a std::filesystem::path of the first name.

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace tessera::testing {

// The root of the tree: TESSERA_SOURCE_DIR, which ctest sets; else the working folder.
inline std::filesystem::path source_dir() {
  const char* text = std::getenv("TESSERA_SOURCE_DIR");
  return text != nullptr ? std::filesystem::path(text) : std::filesystem::current_path();
}

// The folder of shared data: TESSERA_SHARED; else `shared` beside the tree.
inline std::filesystem::path shared_dir() {
  const char* text = std::getenv("TESSERA_SHARED");
  return text != nullptr ? std::filesystem::path(text) : source_dir().parent_path() / "shared";
}

// Where model `name` stands with its weights: among the shared models, or filled by `./dev test`
// below build/models (TESSERA_MODELS). The first path is the one to complain about when none
// exists.
inline std::vector<std::filesystem::path> model_places(std::string_view name) {
  const char* text = std::getenv("TESSERA_MODELS");
  const std::filesystem::path filled =
      text != nullptr ? std::filesystem::path(text) : source_dir() / "build" / "models";
  return {shared_dir() / "models" / name / "model.onnx", filled / name / "model.onnx"};
}

// The first path of `places` that exists; empty if none does.
inline std::filesystem::path first_existing(const std::vector<std::filesystem::path>& places) {
  for (const std::filesystem::path& place : places) {
    if (std::filesystem::exists(place)) return place;
  }
  return {};
}

}  // namespace tessera::testing

#define TESSERA_SHARED_OR_SKIP(variable, relative)                                      \
  const std::filesystem::path variable = ::tessera::testing::shared_dir() / (relative); \
  if (!std::filesystem::exists(variable)) GTEST_SKIP() << "not here: " << variable

#define TESSERA_MODEL_OR_SKIP(variable, name)                                     \
  const std::filesystem::path variable =                                          \
      ::tessera::testing::first_existing(::tessera::testing::model_places(name)); \
  if (variable.empty())                                                           \
  GTEST_SKIP() << "not here: " << ::tessera::testing::model_places(name).front()
